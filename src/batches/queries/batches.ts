import { command, commandForEach, query, readRows, writeOne, type Database, type Row } from '../../store/database.ts'
import type {
  Batch,
  BatchEnding,
  BatchState,
  BatchStore,
  ClaimedBatch,
  ClaimedRange,
  LineRange,
  LineResult,
} from '../batch-store.ts'
import { ADD_FILE, fileValues } from './stored-files.ts'

const NEW_COLUMNS =
  'id, workspace_id, key_id, endpoint, input_file_id, input_bytes, place, completion_window, metadata, created_at, expires_at'
const COLUMNS = `${NEW_COLUMNS}, state, ending, lines, errors, pause, output_file_id, error_file_id, in_progress_at, finalizing_at,
  cancelling_at, ended_at, claims`

const countOf = (state: 'completed' | 'failed'): string => `CASE WHEN ended_at IS NULL
    THEN (SELECT count(*) FROM batch_results WHERE batch_id = batches.id AND batch_results.state = '${state}')
    ELSE ${state}_lines END AS ${state}`
const WITH_COUNTS = `${COLUMNS}, ${countOf('completed')}, ${countOf('failed')}`

const UNFINISHED = `state IN ('validating', 'in_progress', 'cancelling', 'finalizing')`
const QUEUED_LINES = `SELECT coalesce(sum(lines), 0) AS lines FROM batches WHERE workspace_id = ? AND ${UNFINISHED}`

/** No process is running one of its lines. */
const IS_IDLE =
  'NOT EXISTS (SELECT 1 FROM batch_ranges WHERE batch_id = batches.id AND is_done = 0 AND lease_until > ?)'
const HAS_OPEN_RANGE = 'EXISTS (SELECT 1 FROM batch_ranges WHERE batch_id = batches.id AND is_done = 0)'

const ROWS_CLEARED = 1000

export function batchQueries(database: Database): BatchStore {
  const { skipLocked, forShare } = database.dialect

  /** PostgreSQL checks the outer condition again after waiting for another process that claims the same row. */
  const claimBatch = `UPDATE batches SET lease_until = ?, claims = claims + 1 WHERE lease_until <= ? AND id = (
      SELECT id FROM batches WHERE has_lines = 1 AND place = ? AND lease_until <= ? AND (
        state = 'validating' OR (state IN ('cancelling', 'finalizing') AND ${IS_IDLE})
        OR (state = 'in_progress' AND (expires_at <= ? OR NOT ${HAS_OPEN_RANGE})) OR ended_at IS NOT NULL
      ) ORDER BY created_at, id LIMIT 1 ${skipLocked}
    ) RETURNING ${COLUMNS}`

  const claimRange = `UPDATE batch_ranges SET lease_until = ?, claims = claims + 1
    WHERE is_done = 0 AND lease_until <= ? AND (batch_id, first_line) = (
      SELECT batch_id, first_line FROM batch_ranges WHERE batch_id = ? AND is_done = 0 AND lease_until <= ?
        AND EXISTS (SELECT 1 FROM batches WHERE id = batch_id AND state = 'in_progress')
      ORDER BY first_line LIMIT 1 ${skipLocked}
    ) RETURNING batch_id, first_line, lines, byte_start, byte_end, claims`

  async function write(
    ...statements: Parameters<Database['transact']>[0]['statements'][number][]
  ): Promise<readonly (readonly Row[])[]> {
    return database.transact({ access: 'write', locks: [], statements })
  }

  return {
    async createBatch(it) {
      await writeOne(
        database,
        `INSERT INTO batches (${NEW_COLUMNS}, state, lines, completed_lines, failed_lines, resume_at, lease_until, claims, has_lines)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'validating', 0, 0, 0, 0, 0, 0, 1)`,
        it.id,
        it.workspaceId,
        it.keyId,
        it.endpoint,
        it.inputFileId,
        it.inputBytes,
        it.place,
        it.completionWindow,
        it.metadata && JSON.stringify(it.metadata),
        it.createdAt,
        it.expiresAt,
      )
    },
    async batch(workspaceId, id) {
      const sql = `SELECT ${WITH_COUNTS} FROM batches WHERE id = ? AND workspace_id = ?`
      const [row] = await readRows(database, sql, id, workspaceId)
      return row && toBatch(row)
    },
    async batches({ workspaceId, after, limit }) {
      const rows = await readRows(
        database,
        `SELECT ${WITH_COUNTS} FROM batches WHERE workspace_id = ? ${after ? 'AND (created_at, id) < (?, ?)' : ''}
         ORDER BY created_at DESC, id DESC LIMIT ?`,
        workspaceId,
        ...(after ? [after.createdAt, after.id] : []),
        limit,
      )
      return rows.map(toBatch)
    },
    async queuedLines(workspaceId) {
      const [row] = await readRows(database, QUEUED_LINES, workspaceId)
      return Number(row?.['lines'])
    },
    cancelBatch: (workspaceId, id, now) =>
      writeOne(
        database,
        `UPDATE batches SET state = 'cancelling', ending = 'cancelled', cancelling_at = ?, claims = claims + 1, lease_until = 0
         WHERE id = ? AND workspace_id = ? AND state IN ('validating', 'in_progress')`,
        now,
        id,
        workspaceId,
      ),
    async isFileInUse(fileId) {
      const sql = `SELECT 1 AS used FROM batches WHERE input_file_id = ? AND ${UNFINISHED} LIMIT 1`
      return (await readRows(database, sql, fileId)).length > 0
    },

    freeClaims: async () => {
      await write(
        command('UPDATE batch_ranges SET lease_until = 0 WHERE is_done = 0 AND lease_until > 0'),
        command('UPDATE batches SET lease_until = 0 WHERE has_lines = 1 AND lease_until > 0'),
      )
    },
    async claimBatch(place, now, leaseUntil) {
      const [claimed] = await write(query(claimBatch, leaseUntil, now, place, now, now, now))
      return claimed?.[0] && toClaimedBatch(claimed[0])
    },
    async renewBatch({ id, claims }, leaseUntil) {
      const renewing = query(
        'UPDATE batches SET lease_until = ? WHERE id = ? AND claims = ? RETURNING id',
        leaseUntil,
        id,
        claims,
      )
      const [renewed] = await write(renewing)
      return renewed?.length === 1
    },
    releaseBatch: ({ id, claims }) =>
      writeOne(database, 'UPDATE batches SET lease_until = 0 WHERE id = ? AND claims = ?', id, claims),
    clearRanges: async ({ id, claims }) => {
      await write(
        command(
          'DELETE FROM batch_ranges WHERE batch_id = ? AND EXISTS (SELECT 1 FROM batches WHERE id = ? AND claims = ?)',
          id,
          id,
          claims,
        ),
      )
    },
    addRanges: async ({ id, claims }, ranges) => {
      await write(
        commandForEach(
          `INSERT INTO batch_ranges (batch_id, first_line, lines, byte_start, byte_end, is_done, lease_until, claims)
           SELECT id, ?, ?, ?, ?, 0, 0, 0 FROM batches WHERE id = ? AND claims = ?`,
          ranges.map((it) => [it.firstLine, it.lines, it.byteStart, it.byteEnd, id, claims]),
        ),
      )
    },
    async beginBatch({ id, claims, workspaceId }, lines, maxQueuedLines, now) {
      const beginning = query(
        `UPDATE batches SET state = 'in_progress', lines = ?, in_progress_at = ?, lease_until = 0
         WHERE id = ? AND claims = ? AND state = 'validating' AND (${QUEUED_LINES}) <= ? RETURNING id`,
        lines,
        now,
        id,
        claims,
        workspaceId,
        maxQueuedLines - lines,
      )
      const [begun] = await database.transact({ access: 'write', locks: ['batches'], statements: [beginning] })
      return begun?.length === 1
    },
    failBatch: ({ id, claims }, errors, now) =>
      writeOne(
        database,
        `UPDATE batches SET state = 'failed', errors = ?, ended_at = ?, lease_until = 0
         WHERE id = ? AND claims = ? AND state = 'validating'`,
        JSON.stringify(errors),
        now,
        id,
        claims,
      ),
    finalizeBatch: (id, ending, errors, now) =>
      writeOne(
        database,
        `UPDATE batches SET state = 'finalizing', ending = ?, errors = ?, finalizing_at = ?, pause = NULL, lease_until = 0
         WHERE id = ? AND state IN ('validating', 'in_progress')`,
        ending,
        errors && JSON.stringify(errors),
        now,
        id,
      ),
    closeRanges: async ({ id }) => {
      await write(command('UPDATE batch_ranges SET claims = claims + 1 WHERE batch_id = ? AND is_done = 0', id))
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
    endBatch: async ({ id, claims }, { state, counts, output, error, at }) => {
      const files = [output, error].filter((it) => it !== undefined)
      const isClaimed = 'EXISTS (SELECT 1 FROM batches WHERE id = ? AND claims = ?)'
      await write(
        commandForEach(
          `${ADD_FILE} SELECT ?, ?, ?, ?, ?, ?, ?, ?, 1 WHERE ${isClaimed} ON CONFLICT DO NOTHING`,
          files.map((file) => [...fileValues(file), id, claims]),
        ),
        command(
          `UPDATE batches SET state = ?, completed_lines = ?, failed_lines = ?, lines = ?, output_file_id = ?, error_file_id = ?,
             ended_at = ?, pause = NULL, lease_until = 0 WHERE id = ? AND claims = ?`,
          state,
          counts.completed,
          counts.failed,
          counts.total,
          output?.id ?? null,
          error?.id ?? null,
          at,
          id,
          claims,
        ),
      )
    },
    async clearLines({ id }) {
      const deleted = (
        table: string,
        column: string,
      ): string => `DELETE FROM ${table} WHERE batch_id = ? AND ${column} IN (
          SELECT ${column} FROM ${table} WHERE batch_id = ? ORDER BY ${column} LIMIT ${ROWS_CLEARED}
        ) RETURNING ${column}`
      const [results = [], ranges = []] = await write(
        query(deleted('batch_results', 'line'), id, id),
        query(deleted('batch_ranges', 'first_line'), id, id),
      )
      if (results.length > 0 || ranges.length > 0) return true
      await writeOne(database, 'UPDATE batches SET has_lines = 0 WHERE id = ? AND ended_at IS NOT NULL', id)
      return false
    },
    forgetBatches: (before) => writeOne(database, 'DELETE FROM batches WHERE has_lines = 0 AND ended_at <= ?', before),

    async runnableBatches(place, now, limit) {
      const rows = await readRows(
        database,
        `SELECT ${COLUMNS} FROM batches WHERE has_lines = 1 AND state = 'in_progress' AND place = ? AND resume_at <= ?
           AND expires_at > ?
           AND EXISTS (SELECT 1 FROM batch_ranges WHERE batch_id = batches.id AND is_done = 0 AND lease_until <= ?)
         ORDER BY created_at, id LIMIT ?`,
        place,
        now,
        now,
        now,
        limit,
      )
      return rows.map(toBatch)
    },
    async claimRange(batchId, now, leaseUntil) {
      const [claimed] = await write(query(claimRange, leaseUntil, now, batchId, now))
      return claimed?.[0] && toClaimedRange(claimed[0])
    },
    renewRanges: async (ranges, leaseUntil) => {
      await write(
        commandForEach(
          'UPDATE batch_ranges SET lease_until = ? WHERE batch_id = ? AND first_line = ? AND claims = ? AND is_done = 0',
          ranges.map((it) => [leaseUntil, it.batchId, it.firstLine, it.claims]),
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
    async batchesInProgress(ids) {
      const rows = await readRows(
        database,
        `SELECT id FROM batches WHERE state = 'in_progress' AND id IN (${database.dialect.selectTexts('?')})`,
        JSON.stringify(ids),
      )
      return rows.map(({ id }) => String(id))
    },
    async results(batchId, { firstLine, lines }) {
      const rows = await readRows(
        database,
        `SELECT line, state, request_id, owner, body FROM batch_results
         WHERE batch_id = ? AND line >= ? AND line < ? ORDER BY line`,
        batchId,
        firstLine,
        firstLine + lines,
      )
      return rows.map(toResult)
    },
    async writeResults(results) {
      const written = await write(
        ...results.map(({ range, line, state, requestId, owner, body }) =>
          query(
            `INSERT INTO batch_results (batch_id, line, state, request_id, owner, body) SELECT batch_id, ?, ?, ?, ?, ?
             FROM (
               SELECT batch_id FROM batch_ranges WHERE batch_id = ? AND first_line = ? AND claims = ? ${forShare}
             ) AS claimed WHERE true ON CONFLICT (batch_id, line) DO UPDATE SET state = excluded.state, request_id = excluded.request_id,
               owner = excluded.owner, body = excluded.body WHERE batch_results.state = 'stored'
             RETURNING line`,
            line,
            state,
            requestId,
            owner,
            body,
            range.batchId,
            range.firstLine,
            range.claims,
          ),
        ),
      )
      return written.map(({ length }) => length === 1)
    },
    completeResults: async (results) => {
      await write(
        commandForEach(
          `UPDATE batch_results SET state = 'completed' WHERE batch_id = ? AND line = ? AND request_id = ? AND state = 'stored'`,
          results.map(({ range, line, requestId }) => [range.batchId, line, requestId]),
        ),
      )
    },
    pauseBatch: (id, pause, resumeAt) =>
      writeOne(
        database,
        `UPDATE batches SET pause = coalesce(pause, ?), resume_at = ? WHERE id = ? AND state = 'in_progress'`,
        JSON.stringify(pause),
        resumeAt,
        id,
      ),
    resumeBatch: (id) => writeOne(database, 'UPDATE batches SET pause = NULL WHERE id = ? AND pause IS NOT NULL', id),
  }
}

const numberOf = (row: Row, column: string): number | null => (row[column] === null ? null : Number(row[column]))
const textOf = (row: Row, column: string): string | null => row[column] as string | null
const jsonOf = <Value>(row: Row, column: string): Value | null =>
  row[column] === null ? null : (JSON.parse(String(row[column])) as Value)

function toBatch(row: Row): Batch {
  return {
    id: String(row['id']),
    workspaceId: String(row['workspace_id']),
    keyId: String(row['key_id']),
    endpoint: String(row['endpoint']),
    inputFileId: String(row['input_file_id']),
    inputBytes: Number(row['input_bytes']),
    place: String(row['place']),
    completionWindow: String(row['completion_window']),
    metadata: jsonOf(row, 'metadata'),
    state: String(row['state']) as BatchState,
    ending: textOf(row, 'ending') as BatchEnding | null,
    counts: {
      total: Number(row['lines']),
      completed: Number(row['completed'] ?? 0),
      failed: Number(row['failed'] ?? 0),
    },
    errors: jsonOf(row, 'errors'),
    pause: jsonOf(row, 'pause'),
    outputFileId: textOf(row, 'output_file_id'),
    errorFileId: textOf(row, 'error_file_id'),
    createdAt: Number(row['created_at']),
    expiresAt: Number(row['expires_at']),
    inProgressAt: numberOf(row, 'in_progress_at'),
    finalizingAt: numberOf(row, 'finalizing_at'),
    cancellingAt: numberOf(row, 'cancelling_at'),
    endedAt: numberOf(row, 'ended_at'),
  }
}

function toClaimedBatch(row: Row): ClaimedBatch {
  return { ...toBatch(row), claims: Number(row['claims']) }
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
    body: String(row['body']),
  }
}
