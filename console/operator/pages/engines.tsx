import { useState } from 'preact/hooks'
import { Confirm, Problem, useAction } from '../../shared/action.tsx'
import { useData, useReloading } from '../../shared/data.ts'
import { reloadKey } from '../../shared/live.ts'
import { count, percent } from '../../shared/format.ts'
import { Empty, PageHead, Ready, State, Table } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'
import { may, May } from '../session.tsx'
import { live } from '../live.ts'
import { isChanging, OnDemandFacts, OnDemandState, type EngineOrder } from '../on-demand.tsx'
import { lanePath } from '../paths.ts'

/** The engines, whether they are up, and the models that are not downloaded. */

type Engine = Answer<'listEngines'>['data'][number]
type Address = Engine['addresses'][number]

export function EnginesPage() {
  const loaded = useData((signal) => api('listEngines', { signal }), [reloadKey(live.use())])
  useReloading(loaded.state === 'ready' && loaded.data.data.some(isChanging), loaded.reload)
  const [draining, setDraining] = useState<{ readonly engine: Engine; readonly address: Address }>()
  const undraining = useAction()
  const ordering = useAction()
  const order = (lane: string, given: EngineOrder): void =>
    void ordering.run(async () => {
      await api('orderEngine', { body: { lane, order: given } })
      loaded.reload()
    })
  return (
    <>
      <PageHead
        title="Engines"
        about="One for each deployment. Failures are counted since the service started. A drained address gets no new calls."
      />
      <Problem of={undraining} />
      <Problem of={ordering} />
      {loaded.state === 'ready' && loaded.data.drained_without_engine.length > 0 ? (
        <LeftDrained
          urls={loaded.data.drained_without_engine}
          forget={(url) =>
            void undraining.run(async () => {
              await api('undrainEngine', { body: { url } })
              loaded.reload()
            })
          }
        />
      ) : null}
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
                {
                  title: 'In flight',
                  isNumber: true,
                  cell: ({ addresses }) => count(addresses.reduce((sum, it) => sum + it.in_flight, 0)),
                },
                {
                  title: 'Failures',
                  isNumber: true,
                  cell: ({ addresses }) => count(addresses.reduce((sum, it) => sum + it.failures, 0)),
                },
                {
                  title: 'Addresses and memory',
                  cell: (engine) =>
                    engine.download ? (
                      <span class="small soft">{engine.download.problem ?? engine.download.message}</span>
                    ) : (
                      <>
                        {engine.addresses.map((address) => (
                          <AddressLine
                            key={address.url}
                            of={address}
                            isOurs={engine.kind === 'embedded'}
                            drain={() => setDraining({ engine, address })}
                            undrain={() =>
                              void undraining.run(async () => {
                                await api('undrainEngine', { body: { url: address.url } })
                                loaded.reload()
                              })
                            }
                          />
                        ))}
                        {engine.on_demand === null ? null : (
                          <OnDemandFacts
                            lane={engine.lane}
                            of={engine.on_demand}
                            order={(given) => order(engine.lane, given)}
                          />
                        )}
                      </>
                    ),
                },
              ]}
            />
          )
        }
      </Ready>
      {draining === undefined ? null : (
        <DrainDialog {...draining} close={() => setDraining(undefined)} drained={loaded.reload} />
      )}
    </>
  )
}

function LeftDrained({ urls, forget }: { urls: readonly string[]; forget: (url: string) => void }) {
  return (
    <section class="panel stack" aria-labelledby="left">
      <h2 id="left">Drained, and no longer in the catalog</h2>
      <p class="soft">If the catalog names such an address again, it is still drained, unless you forget it.</p>
      {urls.map((url) => (
        <div key={url} class="address">
          <code class="small">{url}</code>
          <May call="undrainEngine">
            <button type="button" class="plain small" aria-label={`Forget ${url}`} onClick={() => forget(url)}>
              Forget
            </button>
          </May>
        </div>
      ))}
    </section>
  )
}

function AddressLine({
  of: { url, up, drained, in_flight: inFlight, last_failure: failure, reported },
  isOurs,
  drain,
  undrain,
}: {
  of: Address
  /** Weir runs it itself, so it has nothing to drain. */
  isOurs: boolean
  drain: () => void
  undrain: () => void
}) {
  return (
    <div class="address">
      <code class="small">{url}</code>
      {up ? null : <State is="bad">Down</State>}
      {drained ? <State is="idle">{inFlight === 0 ? 'Drained' : `Draining, ${count(inFlight)} left`}</State> : null}
      {isOurs || !may('drainEngine') ? null : (
        <button
          type="button"
          class="plain small"
          aria-label={`${drained ? 'Undrain' : 'Drain'} ${url}`}
          onClick={drained ? undrain : drain}
        >
          {drained ? 'Undrain' : 'Drain'}
        </button>
      )}
      {reported === null ? null : (
        <div class="small soft">
          By its own count: {count(reported.running)} running, {count(reported.waiting)} waiting
          {reported.cache_use === null ? '' : `, ${percent(reported.cache_use)} of its cache used`}
        </div>
      )}
      {failure === null ? null : <div class="small soft">Last failure: {failure}</div>}
    </div>
  )
}

function DrainDialog({
  engine,
  address,
  close,
  drained,
}: {
  engine: Engine
  address: Address
  close: () => void
  drained: () => void
}) {
  const isLast = engine.addresses.every((it) => it.url === address.url || it.drained || !it.up)
  async function drain(): Promise<void> {
    await api('drainEngine', { body: { url: address.url } })
    drained()
  }
  return (
    <Confirm title={`Drain ${address.url}?`} verb="Drain" act={drain} close={close}>
      <p>
        It gets no new calls, from any model, until you undrain it. Running calls may finish; there are{' '}
        {count(address.in_flight)} now.
      </p>
      {isLast ? (
        <div class="notice warn">
          <strong>{engine.lane} has no other address that is up</strong>Its requests will be refused meanwhile.
        </div>
      ) : null}
    </Confirm>
  )
}

function EngineState({ of: { kind, addresses, download, on_demand: onDemand } }: { of: Engine }) {
  if (download) {
    const { state, received_bytes: received, total_bytes: total } = download
    if (state === 'not_downloaded') return <State is="idle">Not downloaded</State>
    if (state === 'paused') return <State is="idle">Paused</State>
    if (state === 'failed') return <State is="bad">Download failed</State>
    return <State is="warn">{`Downloading, ${percent(total === 0 ? 0 : received / total)}`}</State>
  }
  if (kind === null) return <State is="idle">No engine yet</State>
  if (onDemand && onDemand.state !== 'ready') return <OnDemandState of={onDemand} />
  const up = addresses.filter((it) => it.up && !it.drained).length
  if (up === addresses.length) return <State is="good">Up</State>
  if (addresses.every((it) => it.drained)) return <State is="warn">Drained</State>
  return up === 0 ? <State is="bad">Down</State> : <State is="warn">{`${up} of ${addresses.length} up`}</State>
}
