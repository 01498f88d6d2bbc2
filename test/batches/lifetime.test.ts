import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openBatches } from '../../src/batches/batches.ts'
import type { Batch } from '../../src/batches/batch-store.ts'
import { openBatchFiles, type BatchFiles } from '../../src/batches/files.ts'
import { resultWriter } from '../../src/batches/result-writer.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import type { Job } from '../../src/engines/job.ts'
import { storedOnDisk } from '../../src/server/files/stored-on-disk.ts'
import { openSpool } from '../../src/server/uploads/spool.ts'
import { byteBudget } from '../../src/shared/byte-budget.ts'
import { ApiError } from '../../src/shared/errors.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import type { StoredFiles } from '../../src/server/files/stored-files.ts'
import { openStoreHere } from '../../src/store/open.ts'
import type { Caller } from '../../src/workspaces/workspace.ts'
import { chatLine, type BatchLine } from '../support/batch-lines.ts'
import { roomyDisk } from '../support/roomy-disk.ts'
import { storedInStub } from '../support/stored-in-s3.ts'
import { eventually, gate } from '../support/waiting.ts'

const missingContent = {
  code: 'not_found',
  message: 'The content of the input file is missing. Upload it again.',
  param: 'input_file_id',
}
const missingStorage = {
  code: 'service_unavailable',
  message: 'No service had the storage of the input file until the batch expired. Upload it again.',
  param: 'input_file_id',
}
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const RETENTION_DAYS = 3
const IN_FLIGHT = 8
const ANSWER = '{"ok":true}'
const caller = { workspace: { id: 'ws_1' }, keyId: 'key' } as Caller

/** Batches on a real database and, unless the test gives a bucket, disk. The test sets the date, and timers of minutes ring at once. */
async function stage(t: TestContext, bucket?: StoredFiles) {
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-lifetime-'))
  const store = await openStoreHere({ dataDir, exclusive: false })
  await store.createWorkspace({ id: 'ws_1', name: 'acme', requestsPerMinute: null, createdAt: 1 })
  const state = {
    now: Date.UTC(2026, 0),
    isStorageAway: false,
    beforeLine: async (_id: string): Promise<void> => {},
    beforeSpooling: async (): Promise<void> => {},
  }
  const clock = {
    ...systemClock,
    now: () => state.now,
    after: (ms: number, ring: () => void) => systemClock.after(Math.min(ms, 10), ring),
  }
  const failures: Error[] = []
  const failed = (error: Error): void => void failures.push(error)
  const disk = roomyDisk()
  const folder = join(dataDir, 'batches')
  const quota = { maxFiles: 100, maxStoredBytes: 1e9, retentionDays: RETENTION_DAYS }
  const storage = bucket ?? storedOnDisk(folder, disk)
  const stored = openBatchFiles({ store, storage, clock, failed, ...quota })
  const files: BatchFiles = {
    ...stored,
    async read(...part) {
      if (state.isStorageAway) throw new Error('the file storage is away')
      return stored.read(...part)
    },
  }
  const spool = openSpool({ folder: join(dataDir, 'spool'), maxBytes: 1e9, disk })
  const whole = { kind: 'whole', read: async () => ({ render: () => ANSWER }) }
  const batches = openBatches({
    store,
    reader: store,
    files,
    clock,
    changes: memoryChanges(),
    failed,
    spool: {
      async open(owner) {
        await state.beforeSpooling()
        return spool.open(owner)
      },
    },
    endpoints: {
      urls: ['/v1/chat/completions'],
      check: async () => {},
      async jobOf({ customId }) {
        await state.beforeLine(customId)
        // Its model has no free place.
        if (customId === 'waits') throw new ApiError('service_unavailable', 'busy')
        return { answer: whole } as unknown as Job
      },
      errorBody: (_url, error) => error.body(),
    },
    writer: resultWriter(store, clock),
    memory: byteBudget(1e9),
    owner: '',
    isAlone: true,
    running: new Set(),
    async pipeline({ answer }, _caller, reply) {
      assert.ok(answer.kind === 'whole')
      await answer.read([], {} as never, [])
      reply.sendAnswer('application/json', ANSWER, {})
    },
    usageOf: () => ({}) as never,
    sleep: (ms, signal) => sleep(ms, undefined, { signal }),
    maxLines: 100,
    maxLineBytes: 1e6,
    maxInFlight: IN_FLIGHT,
    maxQueuedLines: 100,
    retentionDays: RETENTION_DAYS,
    callerOf: async () => caller,
    rowsOf: async () => [],
    isDelivered: () => true,
    isDraining: () => false,
    leftMs: () => 0,
  })
  t.after(async () => {
    await batches.close()
    await files.close()
    await store.close()
    rmSync(dataDir, { recursive: true, force: true })
    assert.deepEqual(failures, [])
  })

  async function submit(...ids: readonly string[]): Promise<Batch> {
    const content = Buffer.from(ids.map((id) => JSON.stringify(chatLine(id))).join('\n'))
    const source = { length: content.length, read: async (into: Buffer, from: number) => content.copy(into, 0, from) }
    const { id } = await files.upload('ws_1', 'in.jsonl', source)
    return batches.create(caller, { inputFileId: id, endpoint: '/v1/chat/completions', metadata: null })
  }

  async function reached(id: string, isReached: (batch: Batch) => boolean): Promise<Batch> {
    await eventually('the batch gets there', async () => isReached(await batches.batch('ws_1', id)), 60_000)
    return batches.batch('ws_1', id)
  }

  async function linesOf(fileId: string | null): Promise<readonly BatchLine[]> {
    if (fileId === null) return []
    const file = await files.file('ws_1', fileId)
    const all = await text(await files.read(file, 0, file.bytes))
    return all
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as BatchLine)
  }

  return { state, failures, store, storage, files, batches, folder, submit, reached, linesOf }
}

/** A batch that runs as many lines as it may, with two more, which it has not read yet. */
async function withUnreadLines({ state, submit }: Awaited<ReturnType<typeof stage>>) {
  const going = gate()
  let running = 0
  state.beforeLine = () => (running++, going.opened)
  const batch = await submit(...Array.from({ length: IN_FLIGHT + 2 }, (_, index) => `line ${index}`))
  await eventually('its lines run', () => running === IN_FLIGHT)
  return { batch, goOn: going.open }
}

describe('a batch and time', () => {
  it('expires after 24 hours, with the results so far', async (t) => {
    const { state, submit, reached, linesOf } = await stage(t)
    const { id, expiresAt } = await submit('answered', 'waits')
    await reached(id, ({ counts }) => counts.completed === 1)
    state.now = expiresAt - 1
    assert.equal((await reached(id, () => true)).state, 'in_progress')
    state.now = expiresAt
    const batch = await reached(id, ({ endedAt }) => endedAt !== null)
    assert.equal(batch.state, 'expired')
    assert.deepEqual(batch.counts, { total: 2, completed: 1, failed: 1 })
    assert.deepEqual(
      (await linesOf(batch.outputFileId)).map((it) => it.custom_id),
      ['answered'],
    )
    assert.deepEqual(
      (await linesOf(batch.errorFileId)).map((it) => [it.custom_id, it.response, it.error?.code]),
      [['waits', null, 'batch_expired']],
    )
  })

  it('expires also if its input file could not be read', async (t) => {
    const { state, failures, submit, reached, linesOf } = await stage(t)
    state.isStorageAway = true
    const { id, expiresAt } = await submit('a')
    await eventually('it was tried', () => failures.length > 0)
    state.now = expiresAt
    const batch = await reached(id, ({ endedAt }) => endedAt !== null)
    assert.deepEqual([batch.state, batch.counts.total], ['expired', 0])
    assert.deepEqual(await linesOf(batch.errorFileId), [])
    failures.length = 0
  })

  it('fails if the content of its input file is missing', async (t) => {
    const { storage, submit, reached, batches } = await stage(t)
    const first = await submit('a')
    await reached(first.id, ({ endedAt }) => endedAt !== null)
    await storage.remove(first.inputFileId)
    const { inputFileId } = first
    const { id } = await batches.create(caller, { inputFileId, endpoint: '/v1/chat/completions', metadata: null })
    const batch = await reached(id, ({ endedAt }) => endedAt !== null)
    assert.equal(batch.state, 'failed')
    assert.deepEqual(batch.errors?.data, [missingContent])
  })

  for (const place of ['on disk', 'in S3']) {
    it(`fails with the results so far if its input file ${place} is lost while its lines run`, async (t) => {
      const it = await stage(t, place === 'in S3' ? (await storedInStub(t)).stored : undefined)
      const { batch: running, goOn } = await withUnreadLines(it)
      await it.storage.remove(running.inputFileId)
      goOn()
      const batch = await it.reached(running.id, ({ endedAt }) => endedAt !== null)
      assert.equal(batch.state, 'failed')
      assert.deepEqual(batch.errors, { count: 1, data: [missingContent] })
      assert.deepEqual(batch.counts, { total: IN_FLIGHT + 2, completed: IN_FLIGHT, failed: 0 })
      assert.equal((await it.linesOf(batch.outputFileId)).length, IN_FLIGHT)
      assert.equal(batch.errorFileId, null)
    })
  }

  it('waits while its bucket is away, and then goes on', async (t) => {
    const { stored, bucket } = await storedInStub(t)
    const it = await stage(t, stored)
    const { batch, goOn } = await withUnreadLines(it)
    const statuses = [404, 403, 500]
    bucket.failures.push(...statuses)
    goOn()
    const ended = await it.reached(batch.id, ({ endedAt, pause }) => {
      if (pause) it.state.now += 10_000
      return endedAt !== null
    })
    assert.deepEqual([ended.state, ended.counts.completed], ['completed', IN_FLIGHT + 2])
    assert.deepEqual(
      it.failures.splice(0).map(({ message }) => message),
      statuses.map((status) => `the file storage answered with status ${status}`),
    )
  })

  it('expires with the results so far, and an error, if its input file is lost by then', async (t) => {
    const { state, storage, submit, reached, linesOf } = await stage(t)
    const { id, inputFileId, expiresAt } = await submit('answered', 'waits')
    await reached(id, ({ counts }) => counts.completed === 1)
    await storage.remove(inputFileId)
    state.now = expiresAt
    const batch = await reached(id, ({ endedAt }) => endedAt !== null)
    assert.deepEqual([batch.state, batch.errors?.data], ['expired', [missingContent]])
    assert.deepEqual(batch.counts, { total: 2, completed: 1, failed: 0 })
    assert.equal((await linesOf(batch.outputFileId)).length, 1)
  })

  it('expires with the results so far, and an error, if no service has its storage any more', async (t) => {
    const { state, store, batches, reached, linesOf } = await stage(t)
    const [id, inputFileId, place, createdAt] = ['batch_1', 'file-1', 'elsewhere', state.now]
    const [workspaceId, expiresAt] = ['ws_1', createdAt + DAY_MS]
    const file = {
      id: inputFileId,
      workspaceId,
      purpose: 'batch',
      filename: '',
      bytes: 1,
      place,
      createdAt,
      expiresAt,
    } as const
    await store.reserveFile(file, { maxFiles: 1, maxStoredBytes: 1, room: 1000 })
    await store.finishFile(inputFileId)
    const endpoint = '/v1/chat/completions'
    const input = { endpoint, inputFileId, inputBytes: 1, place, completionWindow: '24h', metadata: null }
    await store.createBatch({ id, workspaceId, keyId: 'key', ...input, createdAt, expiresAt })
    // A process that had the storage checked the lines and ran one of them.
    const claimed = (await store.claimBatch(place, createdAt, createdAt + 1)) ?? assert.fail()
    await store.addRanges(claimed, [{ firstLine: 1, lines: 2, byteStart: 0, byteEnd: 1 }])
    await store.beginBatch(claimed, 2, 2, createdAt)
    const range = (await store.claimRange(claimed, 2, createdAt, createdAt + 1)) ?? assert.fail()
    const answer = { line: 1, state: 'completed', requestId: 'r', owner: '', errorCode: null } as const
    await store.writeResults([{ ...answer, range, body: JSON.stringify({ custom_id: 'answered' }) }], [], createdAt)
    state.now = expiresAt + HOUR_MS - 1
    assert.equal((await batches.batch(workspaceId, id)).state, 'in_progress')
    assert.equal(await store.claimBatch('here', state.now, state.now), undefined)
    state.now += 1
    const batch = await reached(id, ({ endedAt }) => endedAt !== null)
    assert.deepEqual([batch.state, batch.errors], ['expired', { count: 1, data: [missingStorage] }])
    assert.deepEqual(batch.counts, { total: 2, completed: 1, failed: 0 })
    assert.deepEqual(
      (await linesOf(batch.outputFileId)).map((it) => it.custom_id),
      ['answered'],
    )
  })

  it('whose results are being written is left to the next process when the service stops', async (t) => {
    const { state, batches, files, store, submit } = await stage(t)
    const [reached, going] = [gate(), gate()]
    state.beforeSpooling = async () => {
      reached.open()
      await going.opened
    }
    const { id } = await submit('a')
    await reached.opened
    const closing = batches.close()
    going.open()
    await closing
    const claimed = await store.claimBatch(files.place, state.now, state.now + 1)
    assert.deepEqual([claimed?.id, claimed?.state], [id, 'finalizing'])
  })

  it('is kept for a time after its end, and so are its files', async (t) => {
    const { state, store, files, batches, folder, submit, reached } = await stage(t)
    const { id } = await submit('answered')
    const batch = await reached(id, (it) => it.state === 'completed')
    // What its lines left in the database goes at once.
    await eventually('its lines are gone', async () => (await store.ranges(id, 0, 1)).length === 0, 60_000)
    const all = [batch.inputFileId, batch.outputFileId ?? '']
    state.now += RETENTION_DAYS * DAY_MS - 1
    // A sweep that finds nothing leaves no trace, so let another file expire.
    const later = await submit('answered')
    await reached(later.id, (it) => it.state === 'completed')
    for (const file of all) assert.ok(await files.file('ws_1', file))
    assert.ok(await batches.batch('ws_1', id))
    state.now += 3_600_000
    await eventually(
      'files and batch are gone',
      async () => {
        const found = await Promise.all(all.map((file) => store.storedFile('ws_1', file)))
        return found.every((it) => it === undefined) && !(await store.batch('ws_1', id))
      },
      60_000,
    )
    await assert.rejects(batches.batch('ws_1', id), { code: 'not_found' })
    assert.ok(await batches.batch('ws_1', later.id), 'the later one is still there')
    const names = readdirSync(folder)
    for (const file of all) assert.ok(!names.includes(file))
    assert.ok(names.includes(later.inputFileId))
  })
})
