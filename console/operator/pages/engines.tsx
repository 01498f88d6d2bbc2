import { useData } from '../../shared/data.ts'
import { bytes, count, percent } from '../../shared/format.ts'
import { Empty, PageHead, Ready, State, Table } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'
import { lanePath, live } from '../live.ts'

/** The engines, whether they answer, and the files of models that are on their way. */

type Engine = Answer<'listEngines'>['data'][number]

export function EnginesPage() {
  const { samples } = live.use()
  const loaded = useData((signal) => api('listEngines', { signal }), [Math.floor(samples.length / 5)])
  const inFlight = new Map(samples.at(-1)?.lanes.map((it) => [it.lane, it.in_flight_requests]))
  return (
    <>
      <PageHead title="Engines" about="One for each deployment. Failures are counted since the service started." />
      <Ready of={loaded}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="There are no engines">Add models with engines to the catalog.</Empty>
          ) : (
            <Table
              caption="Engines"
              rows={data}
              keyOf={({ lane }) => lane}
              columns={[
                { title: 'Lane', cell: ({ lane }) => <a href={lanePath(lane)}>{lane}</a> },
                { title: 'Kind', cell: ({ kind }) => kind ?? '–' },
                { title: 'State', cell: (engine) => <EngineState of={engine} /> },
                { title: 'In flight', isNumber: true, cell: ({ lane }) => count(inFlight.get(lane) ?? 0) },
                {
                  title: 'Failures',
                  isNumber: true,
                  cell: ({ addresses }) => count(addresses.reduce((sum, it) => sum + it.failures, 0)),
                },
                {
                  title: 'Addresses',
                  cell: ({ addresses }) =>
                    addresses.map(({ url, up, last_failure: failure }) => (
                      <div key={url} class="name-cell">
                        <code class="small">{url}</code> {up ? '' : <span class="soft small">down</span>}
                        {failure === null ? null : <div class="small soft">Last failure: {failure}</div>}
                      </div>
                    )),
                },
              ]}
            />
          )
        }
      </Ready>
    </>
  )
}

function EngineState({ of: { kind, addresses, download } }: { of: Engine }) {
  if (download) {
    const { received_bytes: received, total_bytes: total, problem } = download
    const share = total === null || total === 0 ? bytes(received) : percent(received / total)
    return (
      <State is={problem === null ? 'warn' : 'bad'}>
        {problem === null ? `Downloading, ${share}` : 'Download failed'}
      </State>
    )
  }
  if (kind === null) return <State is="idle">No engine yet</State>
  const up = addresses.filter((it) => it.up).length
  if (addresses.length === 0) return <State is="idle">Starts when needed</State>
  if (up === addresses.length) return <State is="good">Up</State>
  return up === 0 ? <State is="bad">Down</State> : <State is="warn">{`${up} of ${addresses.length} up`}</State>
}
