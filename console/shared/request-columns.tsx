import { brief, clock, milliseconds, sydneyDate, time } from './format.ts'
import { OutcomeState } from './outcome.tsx'
import { requestCostColumn, type Column } from './parts.tsx'
import { requestPath } from './request-path.ts'
import type { RequestRow } from './request.tsx'

/** Every list of requests has these columns, and after the model those that say whose they are. */
export const requestColumns = <Row extends RequestRow>(whose: readonly Column<Row>[] = []): readonly Column<Row>[] => [
  {
    title: 'Settled',
    cell: ({ request_id: id, settled }) => (
      <a href={requestPath(id)}>
        <time dateTime={settled} title={time(settled)}>
          {sydneyDate(Date.parse(settled)) === sydneyDate(Date.now()) ? clock(settled) : time(settled)}
        </time>
      </a>
    ),
  },
  { title: 'Outcome', cell: (row) => <OutcomeState of={row} /> },
  { title: 'Model', cell: ({ model }) => <span class="name-cell">{model}</span> },
  ...whose,
  { title: 'Tokens', isNumber: true, cell: (row) => brief(row.input_tokens + row.output_tokens) },
  { title: 'Waited', isNumber: true, cell: (row) => milliseconds(row.queue_wait_ms) },
  { title: 'Took', isNumber: true, cell: (row) => milliseconds(row.duration_ms) },
  requestCostColumn,
]
