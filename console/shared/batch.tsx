import type { ComponentChildren } from 'preact'
import { useRoute } from 'preact-iso/router'
import { useState } from 'preact/hooks'
import type { Operations } from '../generated/console-api.ts'
import { Confirm } from './action.tsx'
import { useData, useReloading } from './data.ts'
import { brief, count, time } from './format.ts'
import { ErrorLink } from './outcome.tsx'
import { tasklistIcon } from './icons.ts'
import { Paged, usePages, type Page } from './pages.tsx'
import {
  Amount,
  Empty,
  Facts,
  Figures,
  Moment,
  PageHead,
  Ready,
  State,
  Table,
  type Column,
  type Health,
} from './parts.tsx'

/** Batches, as both consoles show them. */

export type BatchInList = Operations['batches']['answer']['data'][number]
export type BatchDetail = Operations['batch']['answer']

const active: ReadonlySet<string> = new Set(['validating', 'in_progress', 'cancelling', 'finalizing'])
const isActive = ({ status }: BatchInList): boolean => active.has(status)
const isCancellable = ({ status }: BatchInList): boolean => status === 'validating' || status === 'in_progress'

const healths: Readonly<Partial<Record<BatchInList['status'], Health>>> = {
  completed: 'good',
  failed: 'bad',
  expired: 'warn',
}

function BatchState({ of: { status, paused } }: { of: BatchInList }) {
  if (paused) return <State is="warn">paused</State>
  return <State is={healths[status] ?? 'idle'}>{status.replaceAll('_', ' ')}</State>
}

const ended = ({ request_counts: { completed, failed } }: BatchInList): number => completed + failed

function Progress({ of }: { of: BatchInList }) {
  const { total } = of.request_counts
  return total === 0 ? null : <progress max={total} value={ended(of)} aria-label="Lines that have ended" />
}

export const batchPath = (id: string): string => `/console/batches/${id}`

/** Batches in pages, which are read again while one of them is unfinished. */
export function BatchTable<Row extends BatchInList>({
  load,
  others = [],
  children,
}: {
  load: (query: { before?: string }, signal: AbortSignal) => Promise<Page<Row, string>>
  others?: readonly Column<Row>[]
  /** If there are none. */
  children: ComponentChildren
}) {
  const pages = usePages((before: string | undefined, signal) => load(before === undefined ? {} : { before }, signal))
  const { loaded, reload } = pages
  useReloading(loaded.state === 'ready' && loaded.data.data.some(isActive), reload)
  return (
    <Paged of={pages}>
      {(rows) =>
        rows.length === 0 ? (
          <Empty icon={tasklistIcon} title="There are no batches yet">
            {children}
          </Empty>
        ) : (
          <Table caption="Batches" rows={rows} keyOf={({ id }) => id} columns={columns(others)} />
        )
      }
    </Paged>
  )
}

const columns = <Row extends BatchInList>(others: readonly Column<Row>[]): readonly Column<Row>[] => [
  { title: 'Batch', cell: ({ id, filename }) => <a href={batchPath(id)}>{filename ?? id}</a> },
  ...others,
  { title: 'State', cell: (row) => <BatchState of={row} /> },
  {
    title: 'Lines',
    cell: (row) => {
      const { total, failed } = row.request_counts
      return total === 0 ? (
        '–'
      ) : (
        <div class="used">
          <span>
            {brief(ended(row))} <span class="soft">/ {brief(total)}</span>
            {failed === 0 ? null : <span class="soft">, {brief(failed)} failed</span>}
          </span>
          <Progress of={row} />
        </div>
      )
    },
  },
  { title: 'Endpoint', cell: ({ endpoint }) => <code class="unbroken">{endpoint}</code> },
  { title: 'Created', cell: ({ created_at: at }) => <Moment at={at} /> },
]

type FactList = Parameters<typeof Facts>[0]['of']

/** The page of one batch, which is read again until the batch has ended. */
export function OneBatch<Batch extends BatchDetail>({
  load,
  actions,
  factsOf = () => [],
}: {
  load: (id: string, signal: AbortSignal) => Promise<Batch>
  actions: (batch: Batch, reload: () => void) => ComponentChildren
  factsOf?: (batch: Batch) => FactList
}) {
  const id = useRoute().params['id'] ?? ''
  const loaded = useData((signal) => load(id, signal), [id])
  useReloading(loaded.state === 'ready' && isActive(loaded.data), loaded.reload)
  return (
    <Ready of={loaded} shape="report">
      {(batch) => (
        <>
          <PageHead title={batch.filename ?? batch.id} about={`Requests to ${batch.endpoint}`}>
            {actions(batch, loaded.reload)}
          </PageHead>
          <BatchView of={batch} facts={factsOf(batch)} />
        </>
      )}
    </Ready>
  )
}

/** How far it is, what it costs, and what went wrong. */
function BatchView({ of: batch, facts }: { of: BatchDetail; facts: FactList }) {
  const { request_counts: counts, paused, errors, failures } = batch
  return (
    <>
      <div role="status">
        {paused ? (
          <div class="notice warn">
            <strong>Paused since {time(paused.since)}</strong>
            {paused.message} Once there is room, the batch resumes by itself within seconds. It expires on{' '}
            {time(batch.expires_at)}.
          </div>
        ) : null}
      </div>
      <section class="panel stack tight" aria-label="Progress">
        <div class="row apart">
          <BatchState of={batch} />
          <span>
            {counts.total === 0 ? linesUnknown(batch) : `${count(ended(batch))} of ${count(counts.total)} lines`}
          </span>
        </div>
        <Progress of={batch} />
      </section>
      <Figures
        of={[
          ['Completed', count(counts.completed)],
          ['Failed', count(counts.failed)],
          [isActive(batch) ? 'Cost so far' : 'Cost', <Amount of={batch.amount} />],
          ...(isActive(batch) ? paceFigures(batch) : []),
        ]}
      />
      {errors === null ? null : <WrongLines errors={errors} />}
      {failures.length === 0 ? null : <Failures of={failures} />}
      <section class="panel">
        <Facts
          of={[
            ['Id', <code>{batch.id}</code>],
            ...facts,
            ['Created', <Moment at={batch.created_at} />],
            batch.ended_at === null
              ? ['Expires', <Moment at={batch.expires_at} />]
              : ['Ended', <Moment at={batch.ended_at} />],
          ]}
        />
      </section>
    </>
  )
}

const linesUnknown = ({ status }: BatchDetail): string =>
  status === 'validating' ? 'The lines are being checked' : 'No line was run'

function paceFigures({
  status,
  paused,
  lines_per_minute: pace,
  expected_end: end,
  expires_at: expiry,
}: BatchDetail): readonly (readonly [string, ComponentChildren, string?])[] {
  if (pace === null || end === null) {
    return status === 'in_progress' && !paused
      ? [['Pace', '–', 'too few lines in the last minutes; they wait while their models are busy']]
      : []
  }
  const isLate = end > expiry
  return [
    ['Pace', count(pace), 'lines per minute'],
    ['Expected end', <time dateTime={end}>{time(isLate ? expiry : end)}</time>, isLate ? 'expires unfinished' : ''],
  ]
}

/** Why the batch did not begin, or could not go on. */
function WrongLines({ errors }: { errors: NonNullable<BatchDetail['errors']> }) {
  const ofLines = errors.data.filter(({ line }) => line !== null)
  return (
    <section class="stack" aria-label="What is wrong">
      {errors.data
        .filter(({ line }) => line === null)
        .map(({ message }) => (
          <div key={message} class="notice bad">
            {message}
          </div>
        ))}
      {ofLines.length === 0 ? null : (
        <>
          <h2>Wrong lines</h2>
          <p class="soft">
            {count(errors.count)} {errors.count === 1 ? 'line is' : 'lines are'} wrong
            {errors.count > ofLines.length ? `; here are the first ${count(ofLines.length)}` : ''}. Nothing was run and
            nothing is billed. Correct the file and submit it again.
          </p>
          <Table
            caption="Wrong lines"
            rows={ofLines}
            keyOf={({ line, param }) => `${line} ${param}`}
            columns={[
              { title: 'Line', cell: ({ line }) => count(line ?? 0) },
              { title: 'Field', cell: ({ param }) => (param === null ? 'the whole line' : <code>{param}</code>) },
              { title: 'What is wrong', cell: ({ message }) => <span class="wrap">{message}</span> },
            ]}
          />
        </>
      )}
    </section>
  )
}

function Failures({ of }: { of: BatchDetail['failures'] }) {
  return (
    <section class="stack" aria-labelledby="failures">
      <h2 id="failures">Failed lines</h2>
      <Table
        caption="Failed lines by error"
        rows={of}
        keyOf={({ code }) => code}
        columns={[
          // Lines that were not run have codes of their own, which no request gets.
          {
            title: 'Error',
            cell: ({ code }) => (code.startsWith('batch_') ? <code>{code}</code> : <ErrorLink code={code} />),
          },
          { title: 'Lines', isNumber: true, cell: (kind) => count(kind.count) },
          {
            title: 'Example',
            cell: ({ line, custom_id: id, message }) => (
              <span class="wrap">
                Line {count(line)}, <code>{id}</code>: {message}
              </span>
            ),
          },
        ]}
      />
    </section>
  )
}

export function CancelBatch({ of: batch, act }: { of: BatchInList; act: () => Promise<void> }) {
  const [isAsking, setAsking] = useState(false)
  if (!isCancellable(batch)) return null
  return (
    <>
      <button type="button" class="danger" onClick={() => setAsking(true)}>
        Cancel the batch
      </button>
      {isAsking ? (
        <Confirm title="Cancel the batch?" verb="Cancel the batch" act={act} close={() => setAsking(false)}>
          <p>
            No further line is run. Lines that an engine has finish and are billed, and their answers can be downloaded.
          </p>
        </Confirm>
      ) : null}
    </>
  )
}
