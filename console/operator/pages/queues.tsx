import { brief, count, milliseconds } from '../../shared/format.ts'
import { Empty, Loading, Meter, PageHead, Stale, Table } from '../../shared/parts.tsx'
import type { Lane } from '../api.ts'
import { live } from '../live.ts'
import { lanePath } from '../paths.ts'

/** The current state of every lane: running and waiting requests, and how much of its limits is in use. */
export function QueuesPage() {
  const { samples, isStale } = live.use()
  const sample = samples.at(-1)
  return (
    <>
      <PageHead
        title="Queues"
        about="Every lane, live. Batch work has a column of its own: all others are of online requests. Waits are of those that were admitted in the last five minutes."
      />
      <Stale is={isStale} />
      {sample === undefined ? (
        <Loading />
      ) : sample.lanes.length === 0 ? (
        <Empty title="There are no lanes">
          The catalog has no models. <a href="/console/catalog">See the catalog</a>
        </Empty>
      ) : (
        <Table caption="Queues" rows={busiestFirst(sample.lanes)} keyOf={({ lane }) => lane} columns={columns} />
      )}
    </>
  )
}

const busiestFirst = (lanes: readonly Lane[]): readonly Lane[] =>
  lanes.toSorted(
    (one, other) =>
      other.queue_depth - one.queue_depth ||
      other.in_flight_requests - one.in_flight_requests ||
      one.lane.localeCompare(other.lane),
  )

const columns = [
  { title: 'Lane', cell: ({ lane }: Lane) => <a href={lanePath(lane)}>{lane}</a> },
  {
    title: 'In flight',
    isNumber: true,
    cell: ({ in_flight_requests: value, batch, limits }: Lane) => (
      <Used
        value={value - batch.in_flight_requests}
        max={limits.max_concurrent_requests}
        label="In flight of the most"
      />
    ),
  },
  {
    title: 'Tokens',
    isNumber: true,
    cell: ({ committed_tokens: value, batch, limits }: Lane) => (
      <Used value={value - batch.committed_tokens} max={limits.token_budget} label="Committed tokens of the budget" />
    ),
  },
  {
    title: 'Waiting',
    isNumber: true,
    cell: ({ queue_depth: value, limits }: Lane) => (
      <Used value={value} max={limits.max_queue_depth} label="Waiting of the most" />
    ),
  },
  {
    title: 'Oldest wait',
    isNumber: true,
    cell: ({ queue_depth: waiting, oldest_wait_ms: oldest }: Lane) => (waiting === 0 ? '–' : milliseconds(oldest)),
  },
  {
    title: 'Median, 95 %',
    isNumber: true,
    cell: ({ wait_ms_p50: median, wait_ms_p95: most }: Lane) =>
      median === null || most === null ? '–' : `${milliseconds(median)}, ${milliseconds(most)}`,
  },
  // Last, because it is empty in most lanes.
  { title: 'Batch', isNumber: true, cell: ({ batch }: Lane) => <BatchWork of={batch} /> },
]

function BatchWork({ of: { in_flight_requests: running, queue_depth: waiting } }: { of: Lane['batch'] }) {
  if (running + waiting === 0) return <>–</>
  return (
    <>
      {count(running)} in flight
      <div class="small soft">{count(waiting)} waiting</div>
    </>
  )
}

function Used({ value, max, label }: { value: number; max: number; label: string }) {
  return (
    <div class="used">
      <span>
        {count(value)} <span class="soft">/ {brief(max)}</span>
      </span>
      <Meter value={value} max={max} label={label} />
    </div>
  )
}
