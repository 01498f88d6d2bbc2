import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Batch, ClaimedBatch, ClaimedRange, NewBatch } from '../../src/batches/batch-store.ts'
import type { StoredFile } from '../../src/batches/file-store.ts'
import type { Store } from '../../src/store/store.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { storeAdapters, type TestDatabase } from '../support/store-adapters.ts'

const HOUR = 3_600_000
const newBatch = (id: string, changes: Partial<NewBatch> = {}): NewBatch => ({
  id,
  workspaceId: 'ws_1',
  keyId: 'key',
  endpoint: '/v1/chat/completions',
  inputFileId: 'file',
  inputBytes: 1,
  place: 'here',
  completionWindow: '24h',
  metadata: null,
  createdAt: 1,
  expiresAt: HOUR,
  ...changes,
})
const rangeAt = (firstLine: number, lines = 4) => ({
  firstLine,
  lines,
  byteStart: firstLine,
  byteEnd: firstLine + lines,
})
/** Of a storage that never gets full. */
const ROOM = Number.MAX_SAFE_INTEGER

const fileOf = (
  name: string,
  { workspaceId, place }: Pick<StoredFile, 'workspaceId' | 'place'>,
  changes: Partial<StoredFile> = {},
): StoredFile => ({
  id: `${name} of ${workspaceId}`,
  workspaceId,
  purpose: 'batch',
  filename: `${name}.jsonl`,
  bytes: 1,
  place,
  createdAt: 30,
  expiresAt: HOUR,
  ...changes,
})

for (const adapter of storeAdapters) {
  describe(`the store of batches on ${adapter.name}`, () => {
    let database: TestDatabase
    /** Two processes that have the same database open. */
    let stores: readonly [Store, Store]
    let workspaces = 0

    before(async () => {
      database = await adapter.create()
      stores = [await database.open(), await database.open()]
      for (const id of ['ws_1', 'ws_2']) await createWorkspace(id)
    })
    after(() => database.remove())

    const createWorkspace = (id: string) =>
      stores[0].createWorkspace({ id, name: id, requestsPerMinute: null, createdAt: 1 })

    /** A workspace and a storage that no other test uses. */
    async function place(): Promise<{ readonly workspaceId: string; readonly place: string }> {
      const id = `ws_own_${++workspaces}`
      await createWorkspace(id)
      return { workspaceId: id, place: id }
    }

    async function created(id: string, changes: Partial<NewBatch> = {}): Promise<NewBatch> {
      const batch = newBatch(id, { ...(await place()), inputFileId: `input of ${id}`, ...changes })
      await stores[0].createBatch(batch)
      return batch
    }

    const result = (range: ClaimedRange, line: number, state: 'stored' | 'failed') => ({
      range,
      line,
      state,
      requestId: `r-${line}`,
      owner: '',
      errorCode: null,
      body: '{}',
    })

    describe('a batch', () => {
      it('is kept as it was created', async () => {
        const [store, other] = stores
        const created = newBatch('batch_kept', {
          ...(await place()),
          metadata: { a: 'é' },
          inputBytes: 7,
          createdAt: 5,
        })
        await store.createBatch(created)
        const batch: Batch = {
          ...created,
          filename: null,
          state: 'validating',
          ending: null,
          counts: { total: 0, completed: 0, failed: 0 },
          errors: null,
          failures: null,
          pause: null,
          outputFileId: null,
          errorFileId: null,
          inProgressAt: null,
          finalizingAt: null,
          cancellingAt: null,
          endedAt: null,
        }
        assert.deepEqual(await other.batch(created.workspaceId, created.id), batch)
        assert.deepEqual(await other.batch(undefined, created.id), batch)
        assert.equal(await other.batch('ws_1', created.id), undefined)
      })

      it('has its states in turn, each with its time, and files at its end', async () => {
        const [store] = stores
        const batch = await created('batch_turn')
        const input = fileOf('input', batch)
        await store.reserveFile({ ...input, id: batch.inputFileId }, { maxFiles: 1, maxStoredBytes: 1, room: ROOM })
        const seen = async () => (await store.batch(undefined, batch.id)) ?? assert.fail()
        const checking = (await store.claimBatch(batch.place, 2, 3)) ?? assert.fail()
        await store.addRanges(checking, [rangeAt(1)])
        assert.ok(await store.beginBatch(checking, 4, 4, 6))
        assert.partialDeepStrictEqual(await seen(), {
          state: 'in_progress',
          counts: { total: 4, completed: 0, failed: 0 },
          inProgressAt: 6,
          filename: 'input.jsonl',
        })
        await store.pauseBatch(batch.id, { code: 'a', message: 'b', since: 7 }, 20)
        await store.pauseBatch(batch.id, { code: 'later', message: 'c', since: 8 }, 30)
        assert.deepEqual((await seen()).pause, { code: 'a', message: 'b', since: 7 }, 'the first reason stays')
        const errors = { count: 2, data: [{ code: 'x', message: 'y', param: null }] }
        await store.finalizeBatch(batch.id, 'expired', errors, 9)
        await store.finalizeBatch(batch.id, 'completed', null, 10)
        await store.pauseBatch(batch.id, { code: 'late', message: '', since: 11 }, 40)
        const finalizing = { state: 'finalizing', ending: 'expired', errors, finalizingAt: 9, pause: null }
        assert.partialDeepStrictEqual(await seen(), finalizing)
        const writing = (await store.claimBatch(batch.place, 12, 13)) ?? assert.fail()
        const [output, error] = [fileOf('output', batch), fileOf('error', batch)]
        const failures = [{ code: 'x', count: 3, line: 1, customId: 'a', message: 'm' }]
        const counts = { completed: 1, failed: 3 }
        const end = {
          state: 'expired',
          counts,
          errors: { count: 9, data: [] },
          failures,
          output,
          error,
          at: 14,
        } as const
        await store.endBatch(checking, { ...end, at: 13 })
        assert.deepEqual(
          [(await seen()).state, await store.storedFile(batch.workspaceId, output.id)],
          ['finalizing', undefined],
        )
        await store.endBatch(writing, end)
        assert.partialDeepStrictEqual(await seen(), {
          state: 'expired',
          counts: { total: 4, completed: 1, failed: 3 },
          errors,
          failures,
          outputFileId: output.id,
          errorFileId: error.id,
          endedAt: 14,
        })
        assert.deepEqual(await store.storedFile(batch.workspaceId, output.id), output)
        assert.deepEqual(await store.storedFile(batch.workspaceId, error.id), error)
      })

      it('fails only while it is checked, by the process that checks it', async () => {
        const [store] = stores
        const batch = await created('batch_failing')
        const lost = (await store.claimBatch(batch.place, 2, 3)) ?? assert.fail()
        const claimed = (await store.claimBatch(batch.place, 3, 9)) ?? assert.fail()
        const errors = { count: 1, data: [] }
        await store.failBatch(lost, errors, 4)
        assert.equal((await store.batch(undefined, batch.id))?.state, 'validating')
        await store.failBatch(claimed, errors, 4)
        await store.failBatch(claimed, errors, 5)
        const seen = (await store.batch(undefined, batch.id)) ?? assert.fail()
        assert.partialDeepStrictEqual(seen, { state: 'failed', errors, endedAt: 4 })
        assert.equal(await store.beginBatch(claimed, 1, 10, 6), false)
      })

      it('is cancelled before it is finalized, which ends the claim of its check', async () => {
        const [store] = stores
        const batch = await created('batch_cancelled')
        const claimed = (await store.claimBatch(batch.place, 2, 100)) ?? assert.fail()
        await store.cancelBatch('ws_1', batch.id, 4)
        assert.equal((await store.batch(undefined, batch.id))?.state, 'validating', 'it is not of that workspace')
        await store.cancelBatch(batch.workspaceId, batch.id, 5)
        await store.cancelBatch(undefined, batch.id, 6)
        const seen = (await store.batch(undefined, batch.id)) ?? assert.fail()
        const cancelling = { state: 'cancelling', ending: 'cancelled', cancellingAt: 5 }
        assert.partialDeepStrictEqual(seen, cancelling)
        await store.addRanges(claimed, [rangeAt(1)])
        assert.deepEqual(await store.ranges(batch.id, 0, 9), [])
        assert.deepEqual(
          [await store.beginBatch(claimed, 1, 10, 6), await store.renewBatch(claimed, 200)],
          [false, false],
        )
        assert.equal((await store.claimBatch(batch.place, 5, 6))?.id, batch.id, 'it is free at once')
      })

      it('has no pause any more when it has ended, also if it was cancelled during one', async () => {
        const [store] = stores
        const batch = await created('batch_cancelled_in_pause')
        const checking = (await store.claimBatch(batch.place, 2, 3)) ?? assert.fail()
        await store.beginBatch(checking, 1, 9, 3)
        await store.pauseBatch(batch.id, { code: 'a', message: 'b', since: 4 }, 20)
        await store.cancelBatch(undefined, batch.id, 5)
        const ending = (await store.claimBatch(batch.place, 6, 7)) ?? assert.fail()
        const counts = { completed: 0, failed: 0 }
        const nothing = { errors: null, failures: [], output: undefined, error: undefined }
        await store.endBatch(ending, { ...nothing, state: 'cancelled', counts, at: 7 })
        assert.partialDeepStrictEqual(await store.batch(undefined, batch.id), { state: 'cancelled', pause: null })
      })

      it('is listed in pages, the newest first, with the id where times are the same', async () => {
        const [store] = stores
        const { workspaceId } = await created('batch_page_b', { createdAt: 2 })
        const at = (id: string, createdAt: number) => store.createBatch(newBatch(id, { workspaceId, createdAt }))
        await at('batch_page_a', 2)
        await at('batch_page_c', 1)
        const page = async (query: Parameters<Store['batches']>[0]) =>
          (await store.batches(query)).map(({ id }) => id.replace('batch_page_', ''))
        assert.deepEqual(await page({ workspaceId, limit: 2 }), ['b', 'a'])
        const after = { createdAt: 2, id: 'batch_page_a' }
        assert.deepEqual(await page({ workspaceId, after, limit: 2 }), ['c'])
        const [first] = await store.batches({ workspaceId: undefined, limit: 1 })
        assert.ok(first && first.createdAt >= 2, 'or of all workspaces')
      })

      it('begins if the unfinished batches of its workspace have no more lines than they may', async () => {
        const [store] = stores
        const where = await place()
        // The oldest one is claimed, and one that has begun needs its next step at once.
        for (const [id, lines, most, isBegun, createdAt] of [
          ['first', 6, 6, true, 13],
          ['second', 4, 9, false, 12],
          ['third', 4, 10, true, 11],
        ] as const) {
          await store.createBatch(newBatch(`batch_${id}_begun`, { ...where, createdAt }))
          const claimed = (await store.claimBatch(where.place, 2, 100)) ?? assert.fail()
          assert.equal(claimed.id, `batch_${id}_begun`)
          assert.equal(await store.beginBatch(claimed, lines, most, 3), isBegun)
          if (!isBegun) await store.failBatch(claimed, { count: 0, data: [] }, 4)
        }
        assert.equal(await store.queuedLines(where.workspaceId), 10)
        assert.equal(await store.queuedLines('ws_nobody'), 0)
        const inUse = async () => store.isFileInUse(`file of ${where.place}`)
        await store.createBatch(
          newBatch('batch_uses_file', { ...where, inputFileId: `file of ${where.place}`, createdAt: 0 }),
        )
        assert.equal(await inUse(), true)
        const claimed = (await store.claimBatch(where.place, 200, 300)) ?? assert.fail()
        await store.failBatch(claimed, { count: 0, data: [] }, 5)
        assert.deepEqual([claimed.id, await inUse()], ['batch_uses_file', false])
      })
    })

    describe('a step of a batch', () => {
      it('is claimed by one process at a time, of the storage that has the input file, the oldest batch first', async () => {
        const [store, other] = stores
        const later = await created('batch_step_1', { createdAt: 2 })
        await store.createBatch({ ...later, id: 'batch_step_2', createdAt: 1 })
        assert.equal(await store.claimBatch('elsewhere', 10, 20), undefined)
        const first = (await store.claimBatch(later.place, 10, 20)) ?? assert.fail()
        assert.deepEqual([first.id, first.claims], ['batch_step_2', 1])
        assert.equal((await other.claimBatch(later.place, 10, 30))?.id, 'batch_step_1')
        assert.equal(await other.claimBatch(later.place, 19, 30), undefined)
        const again = (await other.claimBatch(later.place, 20, 30)) ?? assert.fail()
        assert.deepEqual([again.id, again.claims], ['batch_step_2', 2])
        assert.equal(await store.renewBatch(first, 99), false)
        await store.releaseBatch(first)
        assert.equal(await other.renewBatch(again, 40), true)
        assert.equal((await store.claimBatch(later.place, 30, 60))?.id, 'batch_step_1')
        assert.equal(await store.claimBatch(later.place, 39, 60), undefined)
        await other.releaseBatch(again)
        assert.equal((await store.claimBatch(later.place, 39, 60))?.id, 'batch_step_2')
      })

      it('is free at once for a process that is alone, whatever an earlier one had claimed', async () => {
        const [store, other] = stores
        const batch = await created('batch_of_an_earlier_process')
        assert.ok(await store.claimBatch(batch.place, 2, 1000))
        assert.equal(await other.claimBatch(batch.place, 3, 1000), undefined)
        await other.freeClaims()
        assert.equal((await other.claimBatch(batch.place, 3, 1000))?.id, batch.id)
      })

      it('is claimed by any process an hour after the batch expired: none has its storage any more', async () => {
        const [store] = stores
        const { id } = await created('batch_stranded', { expiresAt: 10 - HOUR })
        assert.equal(await store.claimBatch('elsewhere', 9, 20), undefined)
        const checking = (await store.claimBatch('elsewhere', 10, 20)) ?? assert.fail()
        assert.equal(checking.id, id)
        await store.failBatch(checking, { count: 0, data: [] }, 10)
        const over = (await store.claimBatch('elsewhere', 10, 20)) ?? assert.fail()
        assert.deepEqual([over.id, over.state], [id, 'failed'])
        while (await store.clearLines(over));
      })

      it('follows when all ranges are done, when it expires, and when a cancelled one has no line that runs', async () => {
        const [store] = stores
        const batch = await created('batch_next', { expiresAt: 100 })
        const next = async (now: number) => {
          const claimed = await store.claimBatch(batch.place, now, now + 1)
          if (claimed) await store.releaseBatch(claimed)
          return claimed?.state
        }
        const checking = (await store.claimBatch(batch.place, 1, 50)) ?? assert.fail()
        await store.addRanges(checking, [rangeAt(1)])
        await store.beginBatch(checking, 4, 10, 1)
        assert.deepEqual([await next(99), await next(100)], [undefined, 'in_progress'])
        const range = (await store.claimRange(batch, 9, 10, 30)) ?? assert.fail()
        await store.cancelBatch(undefined, batch.id, 11)
        assert.deepEqual([await next(29), await next(30)], [undefined, 'cancelling'])
        await store.endRange(range)
        assert.equal(await next(12), 'cancelling')

        const done = await created('batch_done', { expiresAt: 100 })
        const claimed = (await store.claimBatch(done.place, 1, 50)) ?? assert.fail()
        await store.addRanges(claimed, [rangeAt(1)])
        await store.beginBatch(claimed, 4, 10, 1)
        const last = (await store.claimRange(done, 9, 10, 30)) ?? assert.fail()
        await store.endRange(last)
        assert.equal((await store.claimBatch(done.place, 11, 12))?.state, 'in_progress')
      })

      it('removes what is left of a batch that has ended, in parts, before the batch itself is forgotten', async () => {
        const [store] = stores
        const batch = await created('batch_over')
        const checking = (await store.claimBatch(batch.place, 1, 5)) ?? assert.fail()
        await store.addRanges(
          checking,
          Array.from({ length: 1001 }, (_, index) => rangeAt(index + 1, 1)),
        )
        await store.clearRanges({ ...checking, claims: 0 })
        assert.equal((await store.ranges(batch.id, 0, 2000)).length, 1001, 'the claim was another')
        assert.deepEqual(await store.ranges(batch.id, 999, 1), [rangeAt(1000, 1)])
        await store.beginBatch(checking, 1001, 2000, 1)
        const range = (await store.claimRange(batch, 9, 1, 2)) ?? assert.fail()
        await store.writeResults([result(range, 1, 'failed')], [], 1)
        await store.finalizeBatch(batch.id, 'failed', null, 2)
        const writing = (await store.claimBatch(batch.place, 3, 4)) ?? assert.fail()
        const counts = { completed: 0, failed: 0 }
        await store.endBatch(writing, {
          state: 'failed',
          counts,
          errors: null,
          failures: [],
          output: undefined,
          error: undefined,
          at: 7,
        })
        const cleaning = (await store.claimBatch(batch.place, 8, 90)) ?? assert.fail()
        await store.forgetBatches(HOUR)
        assert.ok(await store.batch(undefined, batch.id))
        assert.equal(await store.clearLines(cleaning), true)
        assert.deepEqual(await store.results(batch.id, rangeAt(1, 2000)), [])
        assert.deepEqual(await store.ranges(batch.id, 0, 9), [rangeAt(1001, 1)])
        assert.deepEqual([await store.clearLines(cleaning), await store.clearLines(cleaning)], [true, false])
        assert.equal(await store.claimBatch(batch.place, 100, 101), undefined)
        await store.forgetBatches(6)
        assert.ok(await store.batch(undefined, batch.id))
        await store.forgetBatches(7)
        assert.equal(await store.batch(undefined, batch.id), undefined)
      })

      it('removes the ranges of an interrupted check', async () => {
        const [store] = stores
        const [batch, other] = [await created('batch_checked'), await created('batch_other')]
        for (const { place } of [batch, other]) {
          const claimed = (await store.claimBatch(place, 1, 5)) ?? assert.fail()
          await store.addRanges(claimed, [rangeAt(1)])
        }
        await store.clearRanges({ ...batch, claims: 1 } as ClaimedBatch)
        const left = await Promise.all([batch, other].map(({ id }) => store.ranges(id, 0, 9)))
        assert.deepEqual(left, [[], [rangeAt(1)]])
      })
    })

    describe('batches with lines to run', () => {
      it('are those in progress with a free range, the oldest first, when their pause is over and before they expire', async () => {
        const [store] = stores
        const where = await place()
        const ids = ['batch_runs_3', 'batch_runs_2', 'batch_runs_1']
        for (const [createdAt, id] of ids.entries()) {
          await store.createBatch(newBatch(id, { ...where, createdAt, expiresAt: 100 - createdAt }))
          const claimed = (await store.claimBatch(where.place, 1, 50)) ?? assert.fail()
          await store.addRanges(claimed, [rangeAt(1)])
          await store.beginBatch(claimed, 4, 100, 1)
        }
        const [oldest = '', paused = '', newest = ''] = ids
        const runnable = async (now: number, limit = 9) =>
          (await store.runnableBatches(where.place, now, limit)).map(({ id }) => id)
        assert.deepEqual([await runnable(10), await runnable(10, 1)], [ids, [oldest]])
        assert.deepEqual(await store.runnableBatches('elsewhere', 10, 9), [])
        assert.deepEqual([await runnable(98), await runnable(99)], [[oldest, paused], [oldest]])
        await store.pauseBatch(paused, { code: 'a', message: '', since: 10 }, 20)
        assert.deepEqual([await runnable(19), await runnable(20)], [[oldest, newest], ids])
        await store.resumeBatch(paused)
        assert.equal((await store.batch(undefined, paused))?.pause, null)
        const range =
          (await store.claimRange({ id: oldest, workspaceId: where.workspaceId }, 9, 20, 40)) ?? assert.fail()
        assert.deepEqual([(await runnable(39))[0], (await runnable(40))[0]], [paused, oldest])
        await store.renewRanges([range], 60)
        assert.deepEqual([(await runnable(59))[0], (await runnable(60))[0]], [paused, oldest])
        const lost = { ...range, claims: 9 }
        await store.renewRanges([lost], 90)
        await store.endRange(lost)
        assert.equal((await runnable(60))[0], oldest)
        await store.releaseRange(lost)
        assert.equal((await runnable(59))[0], paused)
        await store.releaseRange(range)
        assert.equal((await runnable(59))[0], oldest)
        await store.finalizeBatch(oldest, 'completed', null, 21)
        assert.equal((await runnable(59))[0], paused)
        assert.deepEqual((await store.batchesInProgress([oldest, paused, 'none'])).toSorted(), [paused])
        await store.freeClaims()
      })
    })

    describe('the progress of a batch', () => {
      it('has the lines that ended since then, what its requests cost, and each kind of failure with its first line', async () => {
        const [store] = stores
        const batch = await created('batch_progress')
        const claimed = (await store.claimBatch(batch.place, 1, 50)) ?? assert.fail()
        await store.addRanges(claimed, [rangeAt(1, 9)])
        await store.beginBatch(claimed, 9, 100, 1)
        const range = (await store.claimRange(batch, 9, 1, 50)) ?? assert.fail()
        const failed = (line: number, errorCode: string | null) => ({
          ...result(range, line, 'failed'),
          errorCode,
          body: JSON.stringify({ custom_id: `c${line}`, response: null, error: { message: `m${line}` } }),
        })
        await store.writeResults([failed(4, 'b'), result(range, 1, 'stored'), result(range, 2, 'stored')], [], 10)
        await store.writeResults(
          [failed(3, 'a'), ...[5, 7].map((line) => failed(line, 'b')), failed(8, 'a'), failed(6, null)],
          [result(range, 1, 'stored')],
          11,
        )
        const rows = [`${batch.id}-1-1-1`, `${batch.id}-4-1-1`, `${batch.id}x-1-1-1`, `x${batch.id}-1-1-1`]
        await store.addRows(rows.map((id) => sampleRow(id, { amount: 2_000_000_003n })))
        const kind = (code: string, count: number, line: number) => ({
          code,
          count,
          line,
          customId: `c${line}`,
          message: `m${line}`,
        })
        assert.deepEqual(await store.batchProgress(batch.id, 11), {
          endedLines: 6,
          amount: 4_000_000_006n,
          failures: [kind('b', 3, 4), kind('a', 2, 3), kind('unknown', 1, 6)],
        })
        assert.equal((await store.batchProgress(batch.id, 10)).endedLines, 7)
        const { counts } = (await store.batch(undefined, batch.id)) ?? assert.fail()
        assert.deepEqual(counts, { total: 9, completed: 1, failed: 6 })
      })
    })

    describe('the files of a workspace', () => {
      it('are found once their bytes are stored, and count towards its quota before', async () => {
        const [store] = stores
        const where = await place()
        const reserve = (name: string, bytes: number, maxFiles: number, maxStoredBytes: number) =>
          store.reserveFile(fileOf(name, where, { bytes }), { maxFiles, maxStoredBytes, room: ROOM })
        assert.equal(await reserve('one', 6, 1, 5), false)
        assert.equal(await reserve('one', 6, 1, 6), true)
        assert.equal(await reserve('two', 1, 1, 99), false)
        assert.equal(await reserve('two', 4, 2, 9), false)
        assert.equal(await reserve('two', 4, 2, 10), true)
        const [one, two] = [fileOf('one', where, { bytes: 6 }), fileOf('two', where, { bytes: 4 })]
        assert.equal(await store.storedFile(where.workspaceId, one.id), undefined)
        await store.finishFile(one.id)
        assert.deepEqual(await store.storedFile(where.workspaceId, one.id), one)
        assert.equal(await store.storedFile('ws_1', one.id), undefined)
        assert.deepEqual(await store.storedFiles({ workspaceId: where.workspaceId, order: 'asc', limit: 9 }), [one])
        await store.removeFile(one.id)
        await store.finishFile(two.id)
        assert.deepEqual(await store.storedFiles({ workspaceId: where.workspaceId, order: 'asc', limit: 9 }), [two])
      })

      it('do not count towards the quota when they have expired, whether or not they could be removed', async () => {
        const [store] = stores
        const where = await place()
        const reserve = (name: string, createdAt: number, expiresAt: number) =>
          store.reserveFile(fileOf(name, where, { createdAt, expiresAt, bytes: 5 }), {
            maxFiles: 1,
            maxStoredBytes: 5,
            room: ROOM,
          })
        assert.equal(await reserve('old', 1, 10), true)
        assert.equal(await reserve('new', 9, 20), false)
        assert.equal(await reserve('new', 10, 20), true)
      })

      it('take up to half of what their storage has for all files, which those of others do not reduce', async () => {
        const [store, other] = stores
        const [{ place: shared }, one, two] = [await place(), await place(), await place()]
        let used = 0
        /** Of a storage with room for 100. Bytes of other places are not in it. */
        async function add(name: string, { workspaceId }: typeof one, bytes: number, changes = {}): Promise<boolean> {
          const file = fileOf(name, { workspaceId, place: shared }, { bytes, ...changes })
          const wasReserved = await store.reserveFile(file, { maxFiles: 9, maxStoredBytes: 1e9, room: 100 - used })
          if (!wasReserved) return false
          await other.finishFile(file.id)
          if (file.place === shared) used += bytes
          return true
        }
        assert.equal(await add('elsewhere', one, 50, { place: one.place }), true)
        assert.equal(await add('a', one, 51), false)
        assert.equal(await add('a', one, 20), true)
        assert.equal(await add('b', one, 31), false)
        assert.equal(await add('b', one, 30), true)
        assert.equal(await add('c', one, 1), false)
        assert.equal(await add('d', two, 51), false)
        assert.equal(await add('d', two, 49), true)
        await store.removeFile(fileOf('b', one).id)
        used -= 30
        assert.equal(await add('e', one, 31), false)
        assert.equal(await add('e', one, 30), true)
        assert.equal(await add('expires', two, 1, { expiresAt: 31 }), true)
        // An expired one is not its workspace's any more, but takes room until it is removed.
        assert.equal(await add('f', two, 2, { createdAt: 31 }), false)
        assert.equal(await add('f', two, 1, { createdAt: 31 }), true)
      })

      it('take their half before their bytes are stored, also if several are stored at once', async () => {
        const where = await place()
        const reserved = await Promise.all(
          [...stores, ...stores].map((store, index) =>
            store.reserveFile(fileOf(`file ${index}`, where, { bytes: 30 }), {
              maxFiles: 9,
              maxStoredBytes: 1e9,
              room: 120,
            }),
          ),
        )
        assert.equal(reserved.filter(Boolean).length, 2)
      })

      it('are listed by their age and purpose, in pages', async () => {
        const [store] = stores
        const where = await place()
        const all = [
          fileOf('b', where, { createdAt: 1 }),
          fileOf('a', where, { createdAt: 2, purpose: 'batch_output' }),
          fileOf('c', where, { createdAt: 2 }),
        ]
        for (const file of all) {
          await store.reserveFile(file, { maxFiles: 9, maxStoredBytes: 99, room: ROOM })
          await store.finishFile(file.id)
        }
        const page = async (query: Omit<Parameters<Store['storedFiles']>[0], 'workspaceId'>) =>
          (await store.storedFiles({ ...query, workspaceId: where.workspaceId }))
            .map(({ filename }) => filename[0])
            .join('')
        const [b, a, c] = all
        assert.equal(await page({ order: 'asc', limit: 2 }), 'ba')
        assert.equal(await page({ order: 'asc', after: a, limit: 2 }), 'c')
        assert.equal(await page({ order: 'desc', limit: 2 }), 'ca')
        assert.equal(await page({ order: 'desc', after: a, limit: 2 }), 'b')
        assert.equal(await page({ order: 'asc', purpose: 'batch', limit: 9 }), 'bc')
        assert.equal(await page({ order: 'desc', purpose: 'batch', after: c, limit: 9 }), 'b')
        assert.equal(await page({ order: 'desc', after: b, limit: 9 }), '')
      })

      it('are removed when they expire, or when their upload was abandoned, unless a batch needs them', async () => {
        const [store] = stores
        const where = await place()
        const reserve = (name: string, changes: Partial<StoredFile>) =>
          store.reserveFile(fileOf(name, where, changes), { maxFiles: 9, maxStoredBytes: 99, room: ROOM })
        await reserve('kept', { expiresAt: 51 })
        await reserve('expired', { expiresAt: 50 })
        await reserve('needed', { expiresAt: 40 })
        await reserve('begun', { createdAt: 21 })
        await reserve('abandoned', { createdAt: 20 })
        for (const name of ['kept', 'expired', 'needed']) await store.finishFile(fileOf(name, where).id)
        const needed = newBatch(`batch_needs_${where.place}`, { ...where, inputFileId: fileOf('needed', where).id })
        await store.createBatch(needed)
        const toRemove = async (limit = 9, from = where.place) =>
          (await store.filesToRemove(from, 50, 20, limit)).map(({ filename }) => filename.replace('.jsonl', ''))
        assert.deepEqual(await toRemove(), ['expired', 'abandoned'])
        assert.deepEqual(await toRemove(1), ['expired'])
        assert.deepEqual(await toRemove(9, 'elsewhere'), [])
        const claimed = (await store.claimBatch(where.place, 1, 2)) ?? assert.fail()
        await store.failBatch(claimed, { count: 0, data: [] }, 3)
        assert.deepEqual(await toRemove(), ['needed', 'expired', 'abandoned'])
      })
    })

    describe('ranges of lines', () => {
      let batches = 0
      /** A batch in progress, with so many ranges of four lines. */
      async function batchWith(workspaceId: string, ranges: number): Promise<{ id: string; workspaceId: string }> {
        const id = `batch_${++batches}`
        const [store] = stores
        await store.createBatch(newBatch(id, { workspaceId }))
        const claimed = (await store.claimBatch('here', 1, 2)) ?? assert.fail()
        const all = Array.from({ length: ranges }, (_, index) => index)
        await store.addRanges(
          claimed,
          all.map((index) => ({ firstLine: 4 * index + 1, lines: 4, byteStart: index, byteEnd: index + 1 })),
        )
        assert.ok(await store.beginBatch(claimed, 4 * ranges, 1000, 1))
        return { id, workspaceId }
      }

      const claim = (store: Store, batch: { id: string; workspaceId: string }, most: number, now = 10) =>
        store.claimRange(batch, most, now, now + 100)

      it('are claimed by all processes together for as many lines as a workspace may have in flight', async () => {
        const [one, two] = [await batchWith('ws_1', 4), await batchWith('ws_1', 4)]
        const claimed = await Promise.all(
          Array.from({ length: 6 }, (_, index) => claim(stores[index % 2]!, index < 3 ? one : two, 9)),
        )
        const ranges = claimed.filter((it) => it !== undefined)
        assert.equal(ranges.length, 2)
        assert.ok(await claim(stores[1], await batchWith('ws_2', 1), 9), 'another workspace has its own limit')
        const [range] = ranges
        await stores[0].writeResults(
          [result(range!, range!.firstLine, 'failed'), result(range!, range!.firstLine + 1, 'stored')],
          [],
          9,
        )
        assert.equal(await claim(stores[1], two, 10), undefined, 'a stored answer is not final')
        assert.ok(await claim(stores[1], two, 11))
        assert.equal(await claim(stores[1], two, 11), undefined)
        assert.ok(await claim(stores[1], two, 11, 110), 'leases that have just ended do not count')
      })

      it('have a result for a line once: that of the last claim, and final results stay', async () => {
        const [store, other] = stores
        await store.freeClaims()
        const batch = await batchWith('ws_1', 1)
        const lost = (await claim(store, batch, 9)) ?? assert.fail()
        const range = (await claim(other, batch, 9, 500)) ?? assert.fail()
        assert.deepEqual(await store.writeResults([result(lost, 1, 'failed')], [], 9), [false])
        const first = [result(range, 1, 'failed'), result(range, 2, 'stored'), result(range, 3, 'stored')]
        assert.deepEqual(await other.writeResults(first, [], 9), [true, true, true])
        const again = { ...result(range, 2, 'stored'), requestId: 'r-2-again' }
        const late = [result(range, 1, 'stored'), again]
        assert.deepEqual(await other.writeResults(late, [result(range, 2, 'stored'), result(range, 3, 'stored')], 9), [
          false,
          true,
        ])
        assert.deepEqual(
          (await store.results(batch.id, range)).map((it) => [it.line, it.state, it.requestId]),
          [
            [1, 'failed', 'r-1'],
            [2, 'stored', 'r-2-again'],
            [3, 'completed', 'r-3'],
          ],
        )
      })

      it('have the results of their own lines, without those of the ranges beside them', async () => {
        const [store, other] = stores
        await store.freeClaims()
        const batch = await batchWith('ws_1', 3)
        const ranges: ClaimedRange[] = []
        for (let range; (range = await claim(store, batch, 12));) ranges.push(range)
        const ends = ranges.flatMap((range) => [range.firstLine, range.firstLine + range.lines - 1])
        assert.deepEqual(ends, [1, 4, 5, 8, 9, 12])
        const results = ranges.flatMap((range) => [
          result(range, range.firstLine, 'failed'),
          result(range, range.firstLine + 3, 'failed'),
        ])
        await store.writeResults(results, [], 9)
        const found = await Promise.all(ranges.map((range) => other.results(batch.id, range)))
        assert.deepEqual(
          found.map((lines) => lines.map(({ line }) => line)),
          [
            [1, 4],
            [5, 8],
            [9, 12],
          ],
        )
      })

      it('are renewed, released and ended only by the process that claimed them last', async () => {
        const [store, other] = stores
        await store.freeClaims()
        const batch = await batchWith('ws_1', 1)
        const lost = (await claim(store, batch, 9)) ?? assert.fail()
        const range = (await claim(other, batch, 9, 500)) ?? assert.fail()
        await store.releaseRange(lost)
        await store.renewRanges([lost], 9)
        await store.endRange(lost)
        assert.equal(await claim(store, batch, 9, 599), undefined)
        await other.renewRanges([range], 700)
        assert.equal(await claim(store, batch, 9, 699), undefined)
        const next = (await claim(store, batch, 9, 700)) ?? assert.fail()
        await other.endRange(range)
        await store.releaseRange(next)
        assert.ok(await claim(other, batch, 9, 700))
      })

      it('have results that are written in one group with those of a claim that was lost', async () => {
        const [store] = stores
        await store.freeClaims()
        const batch = await batchWith('ws_1', 1)
        const lost = (await claim(store, batch, 9)) ?? assert.fail()
        const range = (await claim(store, batch, 9, 500)) ?? assert.fail()
        const stale = { ...result(lost, 1, 'stored'), requestId: 'lost' }
        const body = String.raw`{"content":"a \"quote\", a \\ and é"}`
        const group = [
          stale,
          { ...result(range, 2, 'failed'), errorCode: 'x' },
          { ...result(range, 1, 'stored'), body },
        ]
        assert.deepEqual(await store.writeResults(group, [], 9), [false, true, true])
        assert.deepEqual(
          (await store.results(batch.id, range)).map((it) => [it.requestId, it.errorCode, it.body]),
          [
            ['r-1', null, body],
            ['r-2', 'x', '{}'],
          ],
        )
      })

      it('take no more results once those of their batch are put together, except where they are done', async () => {
        const [store] = stores
        await store.freeClaims()
        const batch = await batchWith('ws_1', 2)
        const done = (await claim(store, batch, 9)) ?? assert.fail()
        const open = (await claim(store, batch, 9)) ?? assert.fail()
        await store.endRange(done)
        await store.closeRanges({ ...batch, claims: 1 } as ClaimedBatch)
        const late = [done, open].map((range) => result(range, range.firstLine, 'failed'))
        assert.deepEqual(await store.writeResults(late, [], 9), [true, false])
      })

      it('are renewed while results of several are written, in any order', async () => {
        const [store, other] = stores
        await store.freeClaims()
        const batch = await batchWith('ws_2', 64)
        const ranges: ClaimedRange[] = []
        for (let range; (range = await claim(store, batch, 256));) ranges.push(range)
        assert.equal(ranges.length, 64)
        const results = ranges.toReversed().map((range) => result(range, range.firstLine, 'stored'))
        const inOtherOrder = [...ranges.slice(32), ...ranges.slice(0, 32)]
        for (let round = 0; round < 20; round++) {
          await Promise.all([store.writeResults(results, [], 9), other.renewRanges(inOtherOrder, 200 + round)])
        }
      })

      it('count only their own lines as in flight, without results of the range after them', async () => {
        const [store, other] = stores
        await store.freeClaims()
        const batch = await batchWith('ws_1', 2)
        const first = (await claim(store, batch, 8)) ?? assert.fail()
        const second = (await claim(store, batch, 8)) ?? assert.fail()
        await store.writeResults([result(second, second.firstLine, 'failed')], [], 9)
        await store.endRange(second)
        const next = await batchWith('ws_1', 1)
        assert.equal(await claim(other, next, 7), undefined, 'four lines of the first range have no result')
        await store.writeResults([result(first, first.firstLine, 'failed')], [], 9)
        assert.ok(await claim(other, next, 7))
      })

      it('are claimed only while their batch is in progress', async () => {
        const [store, other] = stores
        const batch = await created('batch_cancelled_before_a_claim')
        const checking = (await store.claimBatch(batch.place, 2, 3)) ?? assert.fail()
        await store.addRanges(checking, [rangeAt(1)])
        assert.ok(await store.beginBatch(checking, 4, 4, 3))
        await other.cancelBatch(batch.workspaceId, batch.id, 5)
        assert.equal(await claim(store, batch, 9), undefined)
      })

      it('are claimed one at a time if one has more lines than may be in flight', async () => {
        await stores[0].freeClaims()
        const batch = await batchWith('ws_1', 2)
        const first = (await claim(stores[0], batch, 2)) ?? assert.fail()
        assert.equal(await claim(stores[1], batch, 2), undefined)
        await stores[0].endRange(first)
        assert.equal((await claim(stores[1], batch, 2))?.firstLine, 5)
      })
    })
  })
}
