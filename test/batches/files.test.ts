import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openBatchFiles, type BatchFilesOptions } from '../../src/batches/files.ts'
import type { FileQuery, StoredFile } from '../../src/batches/file-store.ts'

/** The files of batches, over a store and a storage that record what they are asked for. */

const DAY_MS = 86_400_000
const NOW = Date.UTC(2026, 10, 18)
const source = { length: 5, read: async () => 0 }
const row: StoredFile = {
  id: 'file-1',
  workspaceId: 'ws',
  purpose: 'batch',
  filename: 'in.jsonl',
  bytes: 5,
  place: 'here',
  createdAt: NOW,
  expiresAt: NOW + 3 * DAY_MS,
}

function stage(store: Partial<BatchFilesOptions['store']> = {}, storage: Partial<BatchFilesOptions['storage']> = {}) {
  const calls: unknown[] = []
  const timers: (readonly [number, () => void])[] = []
  const failures: string[] = []
  const files = openBatchFiles({
    store: {
      reserveFile: async (file, quota) => (calls.push(['reserve', file.id, quota]), true),
      finishFile: async (id) => void calls.push(['finish', id]),
      storedFile: async (workspaceId, id) => (workspaceId === 'ws' && id === row.id ? row : undefined),
      storedFiles: async (query: FileQuery) => (calls.push(query), [row, { ...row, id: 'file-2' }]),
      removeFile: async (id) => void calls.push(['forget', id]),
      filesToRemove: async (...query) => (calls.push(query), []),
      isFileInUse: async () => false,
      ...store,
    },
    storage: {
      place: 'here',
      room: async (bytes) => (calls.push(['room', bytes]), 40),
      write: async (name, { length }) => void calls.push(['write', name, length]),
      read: async (...range) => (calls.push(range), 'stream' as never),
      remove: async (name) => void calls.push(['remove', name]),
      close: async () => void calls.push('close'),
      ...storage,
    },
    clock: {
      now: () => NOW,
      monotonic: () => 0,
      after(ms, ring) {
        const timer = [ms, ring] as const
        timers.push(timer)
        return () => void timers.splice(timers.indexOf(timer), 1)
      },
    },
    maxFiles: 7,
    maxStoredBytes: 99,
    retentionDays: 3,
    failed: ({ message }) => void failures.push(message),
  })
  return { files, calls, timers, failures }
}

const full = { write: () => Promise.reject(new Error('full')) }

describe('the files of batches', () => {
  it('are reserved within the quota, written, and found after that', async () => {
    const { files, calls } = stage()
    const { id, ...added } = await files.upload('ws', 'in.jsonl', source)
    assert.match(id, /^file-[0-9a-f]{24}$/)
    const { id: _id, ...expected } = row
    assert.deepEqual(added, expected)
    assert.deepEqual(calls, [
      ['room', 5],
      // The upload is on the disk too, until it has been stored.
      ['reserve', id, { maxFiles: 7, maxStoredBytes: 99, room: 45 }],
      ['write', id, 5],
      ['finish', id],
    ])
  })

  it('are not written past the quota', async () => {
    const { files, calls } = stage({ reserveFile: async () => false })
    const refusal = {
      code: 'quota_exceeded',
      message:
        'This workspace may store 7 files with 99 bytes in total, and at most half of what the storage has room for. Delete some of them.',
    }
    await assert.rejects(files.upload('ws', 'in.jsonl', source), refusal)
    assert.deepEqual(calls, [['room', 5]])
    const away = stage({}, { room: () => Promise.reject(new Error('away')) })
    await assert.rejects(away.files.upload('ws', 'in.jsonl', source), /away/)
    assert.deepEqual(away.calls, [])
  })

  it('that cannot be written leave nothing, first the bytes and then the row', async () => {
    const { files, calls, failures } = stage({}, full)
    await assert.rejects(files.upload('ws', 'in.jsonl', source), /full/)
    assert.deepEqual(
      calls.slice(2).map((it) => (it as string[])[0]),
      ['remove', 'forget'],
    )
    assert.deepEqual(failures, [])
    const broken = stage({ removeFile: async () => assert.fail('away') }, full)
    await assert.rejects(broken.files.upload('ws', 'in.jsonl', source), /full/)
    assert.deepEqual(broken.failures, ['away'])
  })

  it('are read from one place to another, on the replica that has them', async () => {
    const { files, calls } = stage()
    await files.read(row, 1, 4)
    assert.deepEqual(calls, [['file-1', 1, 4]])
    await assert.rejects(files.read({ ...row, place: 'there' }, 1, 4), { code: 'service_unavailable' })
    await assert.rejects(files.remove({ ...row, place: 'there' }), { code: 'service_unavailable' })
    assert.equal(calls.length, 1)
  })

  it('are found by their workspace alone', async () => {
    const { files } = stage()
    assert.equal(await files.file('ws', 'file-1'), row)
    await assert.rejects(files.file('ws_2', 'file-1'), { code: 'not_found', param: 'file_id' })
  })

  it('are listed in pages, after the last one of the page before', async () => {
    const { files, calls } = stage()
    const query = { workspaceId: 'ws', order: 'asc', purpose: 'batch' } as const
    const page = await files.list({ ...query, after: 'file-1', limit: 1 })
    assert.deepEqual(page, { files: [row], hasMore: true })
    assert.deepEqual(calls, [{ ...query, after: row, limit: 2 }])
    assert.equal((await files.list({ ...query, limit: 2 })).hasMore, false)
    await assert.rejects(files.list({ ...query, after: 'file-9', limit: 1 }), { code: 'not_found' })
  })

  it('with results have the id that they are given, and are rows when the batch ends', async () => {
    const { files, calls } = stage()
    const stored = await files.store({ id: 'file-1', workspaceId: 'ws', filename: 'in.jsonl' }, source)
    assert.deepEqual(stored, { ...row, purpose: 'batch_output' })
    assert.deepEqual(calls, [['write', 'file-1', 5]])
  })

  it('are kept while a batch needs them', async () => {
    const used = stage({ isFileInUse: async () => true })
    await assert.rejects(used.files.remove(row), { code: 'conflict', param: 'file_id' })
    assert.deepEqual(used.calls, [])
    const { files, calls } = stage()
    await files.remove(row)
    assert.deepEqual(calls, [
      ['remove', 'file-1'],
      ['forget', 'file-1'],
    ])
  })

  it('are swept every minute: those that have expired, and uploads of a day ago that never ended', async () => {
    const queries: unknown[] = []
    const { calls, files, timers, failures } = stage({
      async filesToRemove(...query) {
        queries.push(query)
        if (queries.length === 1) throw new Error('away')
        return [row]
      },
    })
    for (let round = 1; round <= 2; round += 1) {
      const [[ms, ring] = assert.fail('no timer')] = timers.splice(0)
      assert.equal(ms, 60_000)
      ring()
      await new Promise(setImmediate)
    }
    assert.deepEqual(queries[1], ['here', NOW, NOW - DAY_MS, 100])
    assert.deepEqual(calls, [
      ['remove', 'file-1'],
      ['forget', 'file-1'],
    ])
    assert.deepEqual(failures, ['away'])
    await files.close()
    assert.deepEqual([timers, calls.at(-1)], [[], 'close'])
  })

  it('are swept although some of them cannot be deleted, which is reported once', async () => {
    const { calls, timers, failures } = stage(
      { filesToRemove: async () => ['stuck-1', 'stuck-2', 'file-1'].map((id) => ({ ...row, id })) },
      { remove: async (name) => (name === 'file-1' ? void calls.push(name) : Promise.reject(new Error(name))) },
    )
    timers[0]?.[1]()
    await new Promise(setImmediate)
    assert.deepEqual([calls, failures], [['file-1', ['forget', 'file-1']], ['stuck-1']])
  })

  it('are swept by one sweep at a time, which stops before they are closed', async () => {
    const [found, removed] = [Promise.withResolvers<readonly StoredFile[]>(), Promise.withResolvers<void>()]
    const { files, calls, timers } = stage({ filesToRemove: () => found.promise }, { remove: () => removed.promise })
    const [[, ring] = assert.fail('no timer')] = timers.splice(0)
    ring()
    found.resolve([row, { ...row, id: 'file-2' }])
    await new Promise(setImmediate)
    assert.deepEqual(timers, [])
    const closing = files.close()
    await new Promise(setImmediate)
    assert.deepEqual(calls, [])
    removed.resolve()
    await closing
    assert.deepEqual([timers, calls], [[], [['forget', 'file-1'], 'close']])
  })
})
