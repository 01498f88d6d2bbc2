import { command, query, readRows, writeOne, type Database, type Row } from '../../store/database.ts'
import type { FilePurpose, StoredFile, StoredFileStore } from '../file-store.ts'

const COLUMNS = 'id, workspace_id, purpose, filename, bytes, place, created_at, expires_at'

export const ADD_FILE = `INSERT INTO stored_files (${COLUMNS}, is_stored)`

export function storedFileQueries(database: Database): StoredFileStore {
  return {
    async reserveFile(file, { maxFiles, maxStoredBytes, room }) {
      // Twice the bytes of the workspace are no more than the room and all files. These are summed only if there is little room.
      const reserving = query(
        `${ADD_FILE} SELECT ?, ?, ?, ?, ?, ?, ?, ?, 0 FROM (
           SELECT count(*) AS files, coalesce(sum(bytes), 0) AS bytes,
             coalesce(sum(CASE WHEN place = ? THEN bytes END), 0) AS bytes_here
           FROM stored_files WHERE workspace_id = ? AND expires_at > ?
         ) AS own
         WHERE own.files < ? AND own.bytes <= ? AND (2 * own.bytes_here <= ? OR 2 * own.bytes_here - ? <= (
           SELECT coalesce(sum(bytes), 0) FROM stored_files WHERE place = ? AND is_stored = 1
         ))
         RETURNING id`,
        ...fileValues(file),
        file.place,
        file.workspaceId,
        file.createdAt,
        maxFiles,
        maxStoredBytes - file.bytes,
        room - 2 * file.bytes,
        room - 2 * file.bytes,
        file.place,
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
