import { query, type Database, type Row } from '../../store/database.ts'
import type { BatchStore, FailureKind } from '../batch-store.ts'
import { failureKind } from '../result-lines.ts'

const ENDED_LINES = `SELECT count(*) AS lines FROM batch_results WHERE batch_id = ? AND state <> 'stored' AND ended_at >= ?`

/** With the first line of each. */
const FAILURES = `SELECT kinds.error_code, kinds.number, kinds.line, first.body FROM (
    SELECT error_code, count(*) AS number, min(line) AS line FROM batch_results
    WHERE batch_id = ? AND state = 'failed' GROUP BY error_code
  ) AS kinds JOIN batch_results AS first ON first.batch_id = ? AND first.line = kinds.line
  ORDER BY kinds.number DESC, kinds.error_code`

export function progressQuery(database: Database): BatchStore['batchProgress'] {
  const { sumOfAmounts } = database.dialect
  /** The id of a line's request begins with that of its batch, and ids are in an index. */
  const amount = `SELECT ${sumOfAmounts('amount_pico_aud')} FROM ledger WHERE request_id > ? AND request_id < ?`

  return async (id, since) => {
    const [ended, sums, failures = []] = await database.transact({
      access: 'read',
      statements: [query(ENDED_LINES, id, since), query(amount, `${id}-`, `${id}.`), query(FAILURES, id, id)],
    })
    const sum = (column: string): bigint => BigInt(sums?.[0]?.[column] as bigint | string)
    return {
      endedLines: Number(ended?.[0]?.['lines']),
      amount: sum('amount_high') * 1_000_000_000n + sum('amount_low'),
      failures: failures.map(toFailureKind),
    }
  }
}

function toFailureKind(row: Row): FailureKind {
  const code = (row['error_code'] as string | null) ?? 'unknown'
  return failureKind({ code, line: Number(row['line']), body: String(row['body']) }, Number(row['number']))
}
