import type { ArrivalStore, RecordedArrival } from '../usage-store.ts'
import { readRows, type Database, type Row } from '../../../store/database.ts'
import { IS_REQUEST } from '../../../ledger/queries/usage-sums.ts'

// A request is never admitted before it arrives, so the bound on started_at is safe, and it lets the index find the
// rows. Lines of batches and flex requests are left out: they ran in the gaps of the others.
const ARRIVALS = `SELECT started_at - queue_wait_ms AS arrived_at, input_tokens, max_tokens, output_tokens,
    duration_ms, first_token_ms FROM ledger
  WHERE lane = ? AND ${IS_REQUEST} AND tier = 'default' AND started_at >= ? AND started_at - queue_wait_ms >= ? AND started_at - queue_wait_ms < ?`

export function arrivalQueries(database: Database): ArrivalStore {
  return {
    async arrivals({ lane, from, to, limit, offset }) {
      const inOrder = `${ARRIVALS} ORDER BY started_at, request_id LIMIT ? OFFSET ?`
      return (await readRows(database, inOrder, lane, from, from, to, limit, offset)).map(toArrival)
    },
    async newestArrivals({ lane, from, to, limit }) {
      const newestFirst = `${ARRIVALS} ORDER BY started_at DESC, request_id DESC LIMIT ?`
      return (await readRows(database, newestFirst, lane, from, from, to, limit)).map(toArrival)
    },
  }
}

function toArrival(row: Row): RecordedArrival {
  return {
    arrivedAt: Number(row['arrived_at']),
    inputTokens: Number(row['input_tokens']),
    maxTokens: Number(row['max_tokens']),
    outputTokens: Number(row['output_tokens']),
    durationMs: Number(row['duration_ms']),
    firstTokenMs: row['first_token_ms'] === null ? null : Number(row['first_token_ms']),
  }
}
