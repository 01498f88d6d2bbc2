import {
  command,
  commandForEach,
  query,
  readRows,
  transacted,
  writeOne,
  type Database,
  type Row,
} from '../../store/database.ts'
import type { Batch, BatchEnding, BatchState, BatchStore, ClaimedBatch } from '../batch-store.ts'
import { lineQueries } from './lines.ts'
import { progressQuery } from './progress.ts'
import { ADD_FILE, fileValues } from './stored-files.ts'

const NEW_COLUMNS =
  'id, workspace_id, key_id, endpoint, input_file_id, input_bytes, place, completion_window, metadata, created_at, expires_at'
const COLUMNS = `${NEW_COLUMNS}, state, ending, lines, errors, failures, pause, output_file_id, error_file_id, in_progress_at, finalizing_at,
  cancelling_at, ended_at, claims`

const countOf = (state: 'completed' | 'failed'): string => `CASE WHEN ended_at IS NULL
    THEN (SELECT count(*) FROM batch_results WHERE batch_id = batches.id AND batch_results.state = '${state}')
    ELSE ${state}_lines END AS ${state}`
const FILENAME = '(SELECT filename FROM stored_files WHERE id = batches.input_file_id) AS filename'
const WITH_COUNTS = `${COLUMNS}, ${countOf('completed')}, ${countOf('failed')}, ${FILENAME}`

const UNFINISHED = `state IN ('validating', 'in_progress', 'cancelling', 'finalizing')`
const QUEUED_LINES = `SELECT coalesce(sum(lines), 0) AS lines FROM batches WHERE workspace_id = ? AND ${UNFINISHED}`

/** No process is running one of its lines. */
const IS_IDLE =
  'NOT EXISTS (SELECT 1 FROM batch_ranges WHERE batch_id = batches.id AND is_done = 0 AND lease_until > ?)'
/** A process with its storage would have ended it long before. */
const STRANDED_MS = 3_600_000
const HAS_OPEN_RANGE = 'EXISTS (SELECT 1 FROM batch_ranges WHERE batch_id = batches.id AND is_done = 0)'

export function batchQueries(database: Database): BatchStore {
  const { skipLocked } = database.dialect

  /** PostgreSQL checks the outer condition again after waiting for another process that claims the same row. */
  const claimBatch = `UPDATE batches SET lease_until = ?, claims = claims + 1 WHERE lease_until <= ? AND id = (
      SELECT id FROM batches WHERE has_lines = 1 AND (place = ? OR expires_at <= ?) AND lease_until <= ? AND (
        state = 'validating' OR (state IN ('cancelling', 'finalizing') AND ${IS_IDLE})
        OR (state = 'in_progress' AND (expires_at <= ? OR NOT ${HAS_OPEN_RANGE})) OR ended_at IS NOT NULL
      ) ORDER BY created_at, id LIMIT 1 ${skipLocked}
    ) RETURNING ${COLUMNS}`

  return {
    ...lineQueries(database),
    batchProgress: progressQuery(database),
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
      const whose = inWorkspace(workspaceId)
      const sql = `SELECT ${WITH_COUNTS} FROM batches WHERE id = ? AND ${whose.condition}`
      const [row] = await readRows(database, sql, id, ...whose.values)
      return row && toBatch(row)
    },
    async batches({ workspaceId, after, limit }) {
      const whose = inWorkspace(workspaceId)
      const rows = await readRows(
        database,
        `SELECT ${WITH_COUNTS} FROM batches WHERE ${whose.condition} ${after ? 'AND (created_at, id) < (?, ?)' : ''}
         ORDER BY created_at DESC, id DESC LIMIT ?`,
        ...whose.values,
        ...(after ? [after.createdAt, after.id] : []),
        limit,
      )
      return rows.map(toBatch)
    },
    async queuedLines(workspaceId) {
      const [row] = await readRows(database, QUEUED_LINES, workspaceId)
      return Number(row?.['lines'])
    },
    cancelBatch: (workspaceId, id, now) => {
      const whose = inWorkspace(workspaceId)
      return writeOne(
        database,
        `UPDATE batches SET state = 'cancelling', ending = 'cancelled', cancelling_at = ?, claims = claims + 1, lease_until = 0
         WHERE id = ? AND ${whose.condition} AND state IN ('validating', 'in_progress')`,
        now,
        id,
        ...whose.values,
      )
    },
    async isFileInUse(fileId) {
      const sql = `SELECT 1 AS used FROM batches WHERE input_file_id = ? AND ${UNFINISHED} LIMIT 1`
      return (await readRows(database, sql, fileId)).length > 0
    },

    freeClaims: async () => {
      await transacted(
        database,
        command('UPDATE batch_ranges SET lease_until = 0 WHERE is_done = 0 AND lease_until > 0'),
        command('UPDATE batches SET lease_until = 0 WHERE has_lines = 1 AND lease_until > 0'),
      )
    },
    async claimBatch(place, now, leaseUntil) {
      const [claimed] = await transacted(
        database,
        query(claimBatch, leaseUntil, now, place, now - STRANDED_MS, now, now, now),
      )
      return claimed?.[0] && toClaimedBatch(claimed[0])
    },
    async renewBatch({ id, claims }, leaseUntil) {
      const renewing = query(
        'UPDATE batches SET lease_until = ? WHERE id = ? AND claims = ? RETURNING id',
        leaseUntil,
        id,
        claims,
      )
      const [renewed] = await transacted(database, renewing)
      return renewed?.length === 1
    },
    releaseBatch: ({ id, claims }) =>
      writeOne(database, 'UPDATE batches SET lease_until = 0 WHERE id = ? AND claims = ?', id, claims),
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
    endBatch: async ({ id, claims }, { state, counts, errors, failures, output, error, at }) => {
      const files = [output, error].filter((it) => it !== undefined)
      const isClaimed = 'EXISTS (SELECT 1 FROM batches WHERE id = ? AND claims = ?)'
      await transacted(
        database,
        commandForEach(
          `${ADD_FILE} SELECT ?, ?, ?, ?, ?, ?, ?, ?, 1 WHERE ${isClaimed} ON CONFLICT DO NOTHING`,
          files.map((file) => [...fileValues(file), id, claims]),
        ),
        command(
          `UPDATE batches SET state = ?, completed_lines = ?, failed_lines = ?, errors = coalesce(errors, ?), failures = ?,
             output_file_id = ?, error_file_id = ?, ended_at = ?, pause = NULL, lease_until = 0 WHERE id = ? AND claims = ?`,
          state,
          counts.completed,
          counts.failed,
          errors && JSON.stringify(errors),
          JSON.stringify(failures),
          output?.id ?? null,
          error?.id ?? null,
          at,
          id,
          claims,
        ),
      )
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
    async batchesInProgress(ids) {
      const rows = await readRows(
        database,
        `SELECT id FROM batches WHERE state = 'in_progress' AND id IN (${database.dialect.selectTexts('?')})`,
        JSON.stringify(ids),
      )
      return rows.map(({ id }) => String(id))
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

const inWorkspace = (id: string | undefined): { readonly condition: string; readonly values: readonly string[] } =>
  id === undefined ? { condition: 'true', values: [] } : { condition: 'workspace_id = ?', values: [id] }

const numberOf = (row: Row, column: string): number | null => (row[column] === null ? null : Number(row[column]))
const textOf = (row: Row, column: string): string | null => row[column] as string | null
const jsonOf = (row: Row, column: string): unknown => JSON.parse(textOf(row, column) ?? 'null')

function toBatch(row: Row): Batch {
  return {
    id: String(row['id']),
    workspaceId: String(row['workspace_id']),
    keyId: String(row['key_id']),
    endpoint: String(row['endpoint']),
    inputFileId: String(row['input_file_id']),
    filename: (row['filename'] ?? null) as string | null,
    inputBytes: Number(row['input_bytes']),
    place: String(row['place']),
    completionWindow: String(row['completion_window']),
    metadata: jsonOf(row, 'metadata') as Batch['metadata'],
    state: String(row['state']) as BatchState,
    ending: textOf(row, 'ending') as BatchEnding | null,
    counts: {
      total: Number(row['lines']),
      completed: Number(row['completed'] ?? 0),
      failed: Number(row['failed'] ?? 0),
    },
    errors: jsonOf(row, 'errors') as Batch['errors'],
    failures: jsonOf(row, 'failures') as Batch['failures'],
    pause: jsonOf(row, 'pause') as Batch['pause'],
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
