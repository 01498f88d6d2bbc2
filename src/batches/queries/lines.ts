import {
  command,
  commandForEach,
  commandForGiven,
  query,
  queryForGiven,
  readRows,
  transacted,
  writeOne,
  type Database,
  type Row,
} from '../../store/database.ts'
import type { GivenColumn } from '../../store/fragments.ts'
import type { ClaimedRange, LineRange, LineResult, LineStore } from '../batch-store.ts'

const ROWS_CLEARED = 1000
const RESULT_COLUMNS: readonly GivenColumn[] = [
  { name: 'line', type: 'integer' },
  { name: 'state', type: 'text' },
  { name: 'request_id', type: 'text' },
  { name: 'owner', type: 'text' },
  { name: 'error_code', type: 'text' },
  { name: 'ended_at', type: 'integer' },
  { name: 'body', type: 'text' },
]
const CLAIM_COLUMNS: readonly GivenColumn[] = [
  { name: 'batch_id', type: 'text' },
  { name: 'first_line', type: 'integer' },
  { name: 'claims', type: 'integer' },
]
const STORED_COLUMNS: readonly GivenColumn[] = [
  { name: 'ended_at', type: 'integer' },
  { name: 'batch_id', type: 'text' },
  { name: 'line', type: 'integer' },
  { name: 'request_id', type: 'text' },
]

/** Ranges of lines, and the results of lines. */
export function lineQueries(database: Database): LineStore {
  const { skipLocked, forShare, givenValue, fromGiven } = database.dialect

  /** The lines of a workspace that have no result, in ranges that are claimed. */
  const openLines = `SELECT coalesce(sum(claimed.lines - (
      SELECT count(*) FROM batch_results WHERE batch_results.batch_id = claimed.batch_id AND state <> 'stored'
        AND line >= claimed.first_line AND line < claimed.first_line + claimed.lines
    )), 0) FROM batches JOIN batch_ranges AS claimed ON claimed.batch_id = batches.id
    WHERE batches.has_lines = 1 AND batches.workspace_id = ? AND claimed.is_done = 0 AND claimed.lease_until > ?`

  const claimRange = `UPDATE batch_ranges SET lease_until = ?, claims = claims + 1
    WHERE is_done = 0 AND lease_until <= ? AND (batch_id, first_line) = (
      SELECT batch_id, first_line FROM batch_ranges WHERE batch_id = ? AND is_done = 0 AND lease_until <= ?
        AND EXISTS (SELECT 1 FROM batches WHERE id = batch_id AND state = 'in_progress')
        AND coalesce(nullif((${openLines}), 0) + lines, 0) <= ?
      ORDER BY first_line LIMIT 1 ${skipLocked}
    ) RETURNING batch_id, first_line, lines, byte_start, byte_end, claims`

  const claimed = `(SELECT batch_id FROM batch_ranges WHERE batch_id = ${givenValue('batch_id')}
      AND first_line = ${givenValue('first_line')} AND claims = ${givenValue('claims')} ${forShare}) AS claimed`
  /** A result that is final stays. */
  const writeResults = `INSERT INTO batch_results (batch_id, ${RESULT_COLUMNS.map(({ name }) => name).join(', ')})
    SELECT claimed.batch_id, ${RESULT_COLUMNS.map(({ name }) => givenValue(name)).join(', ')}
    ${fromGiven([...RESULT_COLUMNS, ...CLAIM_COLUMNS], claimed)} WHERE true
    ON CONFLICT (batch_id, line) DO UPDATE SET state = excluded.state, request_id = excluded.request_id,
      owner = excluded.owner, error_code = excluded.error_code, ended_at = excluded.ended_at, body = excluded.body
    WHERE batch_results.state = 'stored'
    RETURNING request_id`
  const completeResults = `UPDATE batch_results SET state = 'completed', ended_at = ${givenValue('ended_at')} ${fromGiven(STORED_COLUMNS)}
    WHERE batch_results.batch_id = ${givenValue('batch_id')} AND batch_results.line = ${givenValue('line')}
      AND batch_results.request_id = ${givenValue('request_id')} AND state = 'stored'`

  return {
    clearRanges: async ({ id, claims }) => {
      await transacted(
        database,
        command(
          'DELETE FROM batch_ranges WHERE batch_id = ? AND EXISTS (SELECT 1 FROM batches WHERE id = ? AND claims = ?)',
          id,
          id,
          claims,
        ),
      )
    },
    addRanges: async ({ id, claims }, ranges) => {
      await transacted(
        database,
        commandForEach(
          `INSERT INTO batch_ranges (batch_id, first_line, lines, byte_start, byte_end, is_done, lease_until, claims)
           SELECT id, ?, ?, ?, ?, 0, 0, 0 FROM batches WHERE id = ? AND claims = ?`,
          ranges.map((it) => [it.firstLine, it.lines, it.byteStart, it.byteEnd, id, claims]),
        ),
      )
    },
    closeRanges: async ({ id }) => {
      await transacted(
        database,
        command('UPDATE batch_ranges SET claims = claims + 1 WHERE batch_id = ? AND is_done = 0', id),
      )
    },
    async ranges(batchId, after, limit) {
      const rows = await readRows(
        database,
        `SELECT first_line, lines, byte_start, byte_end FROM batch_ranges WHERE batch_id = ? AND first_line > ?
         ORDER BY first_line LIMIT ?`,
        batchId,
        after,
        limit,
      )
      return rows.map(toRange)
    },
    async claimRange({ id, workspaceId }, maxInFlight, now, leaseUntil) {
      const claiming = query(claimRange, leaseUntil, now, id, now, workspaceId, now, maxInFlight)
      const [claimed] = await database.transact({ access: 'write', locks: ['batches'], statements: [claiming] })
      return claimed?.[0] && toClaimedRange(claimed[0])
    },
    renewRanges: async (ranges, leaseUntil) => {
      await transacted(
        database,
        commandForEach(
          'UPDATE batch_ranges SET lease_until = ? WHERE batch_id = ? AND first_line = ? AND claims = ? AND is_done = 0',
          ranges.toSorted(inLockOrder).map((it) => [leaseUntil, it.batchId, it.firstLine, it.claims]),
        ),
      )
    },
    releaseRange: ({ batchId, firstLine, claims }) =>
      writeOne(
        database,
        'UPDATE batch_ranges SET lease_until = 0 WHERE batch_id = ? AND first_line = ? AND claims = ?',
        batchId,
        firstLine,
        claims,
      ),
    endRange: ({ batchId, firstLine, claims }) =>
      writeOne(
        database,
        'UPDATE batch_ranges SET is_done = 1, lease_until = 0 WHERE batch_id = ? AND first_line = ? AND claims = ?',
        batchId,
        firstLine,
        claims,
      ),
    async clearLines({ id }) {
      const deleted = (
        table: string,
        column: string,
      ): string => `DELETE FROM ${table} WHERE batch_id = ? AND ${column} IN (
          SELECT ${column} FROM ${table} WHERE batch_id = ? ORDER BY ${column} LIMIT ${ROWS_CLEARED}
        ) RETURNING ${column}`
      const [results = [], ranges = []] = await transacted(
        database,
        query(deleted('batch_results', 'line'), id, id),
        query(deleted('batch_ranges', 'first_line'), id, id),
      )
      if (results.length > 0 || ranges.length > 0) return true
      await writeOne(database, 'UPDATE batches SET has_lines = 0 WHERE id = ? AND ended_at IS NOT NULL', id)
      return false
    },
    async results(batchId, { firstLine, lines }) {
      const rows = await readRows(
        database,
        `SELECT line, state, request_id, owner, error_code, body FROM batch_results
         WHERE batch_id = ? AND line >= ? AND line < ? ORDER BY line`,
        batchId,
        firstLine,
        firstLine + lines,
      )
      return rows.map(toResult)
    },
    async writeResults(results, stored, at) {
      const inOrder = results.toSorted((one, other) => inLockOrder(one.range, other.range))
      const [written = []] = await transacted(
        database,
        queryForGiven(
          writeResults,
          inOrder.map(({ range, line, state, requestId, owner, errorCode, body }) => {
            const endedAt = state === 'stored' ? 0 : at
            return [
              line,
              state,
              requestId,
              owner,
              errorCode,
              endedAt,
              body,
              range.batchId,
              range.firstLine,
              range.claims,
            ]
          }),
        ),
        commandForGiven(
          completeResults,
          stored.map(({ range, line, requestId }) => [at, range.batchId, line, requestId]),
        ),
      )
      const ids = new Set(written.map((row) => row['request_id']))
      return results.map(({ requestId }) => ids.has(requestId))
    },
  }
}

/** Transactions that lock several ranges lock them in the same order, so that there are no deadlocks. */
function inLockOrder(one: ClaimedRange, other: ClaimedRange): number {
  if (one.batchId === other.batchId) return one.firstLine - other.firstLine
  return one.batchId < other.batchId ? -1 : 1
}

function toRange(row: Row): LineRange {
  return {
    firstLine: Number(row['first_line']),
    lines: Number(row['lines']),
    byteStart: Number(row['byte_start']),
    byteEnd: Number(row['byte_end']),
  }
}

function toClaimedRange(row: Row): ClaimedRange {
  return { ...toRange(row), batchId: String(row['batch_id']), claims: Number(row['claims']) }
}

function toResult(row: Row): LineResult & { readonly body: string } {
  return {
    line: Number(row['line']),
    state: String(row['state']) as LineResult['state'],
    requestId: String(row['request_id']),
    owner: String(row['owner']),
    errorCode: row['error_code'] as string | null,
    body: String(row['body']),
  }
}
