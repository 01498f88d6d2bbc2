import { command, query, readRows, writeOne, type Database, type Row } from '../../store/database.ts'
import type { FilePurpose, StoredFile, StoredFileStore } from '../file-store.ts'

const COLUMNS = 'id, workspace_id, purpose, filename, bytes, place, created_at, expires_at'

export const ADD_FILE = `INSERT INTO stored_files (${COLUMNS}, is_stored)`

export function storedFileQueries(database: Database): StoredFileStore {
  return {
    async reserveFile(file, { maxFiles, maxStoredBytes }) {
      const others = [file.workspaceId, file.createdAt] as const
      const reserving = query(
        `${ADD_FILE} SELECT ?, ?, ?, ?, ?, ?, ?, ?, 0
         WHERE (SELECT count(*) FROM stored_files WHERE workspace_id = ? AND expires_at > ?) < ?
           AND (SELECT coalesce(sum(bytes), 0) FROM stored_files WHERE workspace_id = ? AND expires_at > ?) <= ?
         RETURNING id`,
        ...fileValues(file),
        ...others,
        maxFiles,
        ...others,
        maxStoredBytes - file.bytes,
      )
      const [reserved] = await database.transact({ access: 'write', locks: ['batches'], statements: [reserving] })
      return reserved?.length === 1
    },
    finishFile: (id) => writeOne(database, 'UPDATE stored_files SET is_stored = 1 WHERE id = ?', id),
    async storedFile(workspaceId, id) {
      const sql = `SELECT ${COLUMNS} FROM stored_files WHERE id = ? AND workspace_id = ? AND is_stored = 1`
      const [row] = await readRows(database, sql, id, workspaceId)
      return row && toFile(row)
    },
    async storedFiles({ workspaceId, purpose, order, after, limit }) {
      const [direction, comparison] = order === 'asc' ? ['', '>'] : ['DESC', '<']
      const rows = await readRows(
        database,
        `SELECT ${COLUMNS} FROM stored_files WHERE workspace_id = ? AND is_stored = 1
         ${purpose === undefined ? '' : 'AND purpose = ?'} ${after ? `AND (created_at, id) ${comparison} (?, ?)` : ''}
         ORDER BY created_at ${direction}, id ${direction} LIMIT ?`,
        workspaceId,
        ...(purpose === undefined ? [] : [purpose]),
        ...(after ? [after.createdAt, after.id] : []),
        limit,
      )
      return rows.map(toFile)
    },
    removeFile: async (id) => {
      const removing = command('DELETE FROM stored_files WHERE id = ?', id)
      await database.transact({ access: 'write', locks: [], statements: [removing] })
    },
    async filesToRemove(place, now, abandoned, limit) {
      const rows = await readRows(
        database,
        `SELECT ${COLUMNS} FROM stored_files
         WHERE place = ? AND (expires_at <= ? OR (is_stored = 0 AND created_at <= ?)) AND NOT EXISTS (
           SELECT 1 FROM batches WHERE input_file_id = stored_files.id AND ended_at IS NULL
         ) ORDER BY expires_at LIMIT ?`,
        place,
        now,
        abandoned,
        limit,
      )
      return rows.map(toFile)
    },
  }
}

export const fileValues = (it: StoredFile) =>
  [it.id, it.workspaceId, it.purpose, it.filename, it.bytes, it.place, it.createdAt, it.expiresAt] as const

function toFile(row: Row): StoredFile {
  return {
    id: String(row['id']),
    workspaceId: String(row['workspace_id']),
    purpose: String(row['purpose']) as FilePurpose,
    filename: String(row['filename']),
    bytes: Number(row['bytes']),
    place: String(row['place']),
    createdAt: Number(row['created_at']),
    expiresAt: Number(row['expires_at']),
  }
}
