import { useState } from 'preact/hooks'
import { brief, milliseconds, picoAud } from '../shared/format.ts'
import { pulseIcon } from '../shared/icons.ts'
import { OutcomeState } from '../shared/outcome.tsx'
import { Paged, usePages } from '../shared/pages.tsx'
import { Empty, Moment, Table } from '../shared/parts.tsx'
import { requestPath } from '../shared/request-path.ts'
import { api, type Answer } from './api.ts'

/** Requests one by one, the newest first. */

export type RequestRow = Answer<'requests'>['data'][number]

export { RequestSearch } from '../shared/request.tsx'

/** Of one model or one key alone. */
export interface RequestFilter {
  readonly model?: string
  readonly key?: string
}

/** The newest first, page by page. */
export function RequestsTable({ filter }: { filter: RequestFilter }) {
  const [onlyFailed, setOnlyFailed] = useState(false)
  const pages = usePages(
    (before: string | undefined, signal) =>
      api('requests', {
        query: {
          limit: 25,
          ...filter,
          ...(before === undefined ? {} : { before }),
          ...(onlyFailed ? { outcome: 'failed' as const } : {}),
        },
        signal,
      }),
    [onlyFailed, filter],
  )
  return (
    <>
      <label class="inline">
        <input type="checkbox" checked={onlyFailed} onChange={(event) => setOnlyFailed(event.currentTarget.checked)} />
        Only requests that did not complete
      </label>
      <Paged of={pages}>
        {(rows, isLast) =>
          rows.length === 0 ? (
            <Empty icon={pulseIcon} title={isLast ? 'There are no requests here' : 'None among these; look further'}>
              <a href="/console/playground">Send one in the playground</a>
            </Empty>
          ) : (
            <Table caption="Requests" rows={rows} keyOf={(it) => it.request_id} columns={requestColumns} />
          )
        }
      </Paged>
    </>
  )
}

export const requestColumns = [
  {
    title: 'Settled',
    cell: (row: RequestRow) => (
      <a href={requestPath(row.request_id)}>
        <Moment at={row.settled} />
      </a>
    ),
  },
  { title: 'Model', cell: (row: RequestRow) => <span class="name-cell">{row.model}</span> },
  { title: 'Outcome', cell: (row: RequestRow) => <OutcomeState of={row} /> },
  { title: 'Input', isNumber: true, cell: (row: RequestRow) => brief(row.input_tokens) },
  { title: 'Output', isNumber: true, cell: (row: RequestRow) => brief(row.output_tokens) },
  { title: 'Waited', isNumber: true, cell: (row: RequestRow) => milliseconds(row.queue_wait_ms) },
  { title: 'Took', isNumber: true, cell: (row: RequestRow) => milliseconds(row.duration_ms) },
  { title: 'Cost', isNumber: true, cell: (row: RequestRow) => picoAud(row.amount_pico_aud) },
]
