import { Chart, type Line } from './chart.tsx'
import { count } from './format.ts'
import { counts } from './measures.ts'
import { requestPath } from './request-path.ts'
import { Paged, usePages } from './pages.tsx'
import { Empty, Moment, State, Table, type Column } from './parts.tsx'
import { ErrorLink } from './outcome.tsx'

/** Requests that were refused before they reached a model: counts over time by code and key, and the newest ones. */

interface ErrorFields {
  readonly http_status: number | null
  readonly error_code: string
}

export interface RefusedGroup extends ErrorFields {
  readonly key_id: string | null
  readonly requests: number
}

export interface RefusedRequest extends ErrorFields {
  readonly request_id: string
  readonly at: string
  readonly key_id: string | null
  readonly endpoint: string | null
  readonly model: string | null
  readonly param: string | null
  readonly reason: string
}

export interface RefusedReport<Group extends RefusedGroup, Request extends RefusedRequest> {
  readonly unit: 'hour' | 'day'
  readonly times: readonly number[]
  readonly total: number
  readonly codes: readonly (ErrorFields & {
    readonly requests: number
    readonly series: readonly { readonly at: number; readonly requests: number }[]
  })[]
  readonly groups: readonly Group[]
  readonly newest: readonly Request[]
  readonly next: string | null
}

/** Of the newest ones, on a page. */
export const REFUSED_SHOWN = 25
const LINES_SHOWN = 6
const GROUPS_SHOWN = 20

export function RefusedSection<Group extends RefusedGroup, Request extends RefusedRequest>({
  load,
  dependencies,
  whose,
}: {
  load: (before: string | undefined, signal: AbortSignal) => Promise<RefusedReport<Group, Request>>
  dependencies: readonly unknown[]
  /** Who sent them: the key, and the workspace for those who see several. */
  whose: Column<Group | Request>
}) {
  const pages = usePages(async (before: string | undefined, signal) => {
    const report = await load(before, signal)
    return { data: [report], next: report.next }
  }, dependencies)
  return (
    <section class="stack" aria-labelledby="refused">
      <div>
        <h2 id="refused">Refused requests</h2>
        <p class="soft">
          They never reached a model and cost nothing. Counts are kept for 31 days, and of each error code the newest 20
          requests.
        </p>
      </div>
      <Paged of={pages}>
        {([report]) =>
          !report || report.total === 0 ? (
            <Empty title="Nothing was refused in this period">
              A refused request appears here with its error code.
            </Empty>
          ) : (
            <Refused of={report} whose={whose} />
          )
        }
      </Paged>
    </section>
  )
}

function Refused<Group extends RefusedGroup, Request extends RefusedRequest>({
  of: { unit, times, total, codes, groups, newest },
  whose,
}: {
  of: RefusedReport<Group, Request>
  whose: Column<Group | Request>
}) {
  const [first] = codes
  const lines: Line[] = codes.slice(0, LINES_SHOWN).map(({ error_code, series }) => {
    const byTime = new Map(series.map(({ at, requests }) => [at, requests]))
    return { title: error_code, values: times.map((at) => byTime.get(at) ?? 0) }
  })
  return (
    <>
      <div class="charts">
        <Chart
          title="Refused"
          summary={`${count(total)} in all${first ? `; ${count(first.requests)} with ${first.error_code}` : ''}.`}
          times={times}
          unit={unit}
          kind="bars"
          measure={counts}
          lines={lines}
        />
        <Table
          caption="Refused by key and code"
          rows={groups.slice(0, GROUPS_SHOWN)}
          keyOf={(it) => JSON.stringify(it)}
          columns={[
            whose,
            { title: 'Error', cell: (it) => <ErrorCode of={it} /> },
            { title: 'Requests', isNumber: true, cell: (it) => count(it.requests) },
          ]}
        />
      </div>
      <RefusedTable rows={newest} whose={whose} />
    </>
  )
}

function RefusedTable<Request extends RefusedRequest>({
  rows,
  whose,
}: {
  rows: readonly Request[]
  whose: Column<Request>
}) {
  if (rows.length === 0) {
    return <Empty title="No refused request fits">Leave a field of the search empty, or choose other days.</Empty>
  }
  return (
    <Table
      caption="Newest refused requests"
      rows={rows}
      keyOf={(it) => it.request_id}
      columns={[
        {
          title: 'When',
          cell: (it) => (
            <>
              <Moment at={it.at} />
              <br />
              <a class="small short-id" href={requestPath(it.request_id)} title={it.request_id}>
                <code>{it.request_id}</code>
              </a>
            </>
          ),
        },
        { title: 'Why', cell: (it) => <Why of={it} /> },
        whose,
        {
          title: 'Asked for',
          cell: (it) => (
            <>
              <code>{it.endpoint ?? 'no such path'}</code>
              {it.model === null ? null : <div class="small soft name-cell">{it.model}</div>}
            </>
          ),
        },
      ]}
    />
  )
}

export function ErrorCode({ of: { http_status, error_code } }: { of: ErrorFields }) {
  return (
    <State is="warn">
      {http_status} <ErrorLink code={error_code} />
    </State>
  )
}

function Why({ of: request }: { of: RefusedRequest }) {
  const { reason, param } = request
  return (
    <div class="reason">
      <ErrorCode of={request} />
      <br />
      {reason}
      {param === null ? null : (
        <>
          {' '}
          Parameter: <code>{param}</code>.
        </>
      )}
    </div>
  )
}
