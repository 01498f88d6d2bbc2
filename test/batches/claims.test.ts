import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { ClaimedRange } from '../../src/batches/batch-store.ts'
import type { Store } from '../../src/store/store.ts'
import { storeAdapters, type TestDatabase } from '../support/store-adapters.ts'

const HOUR = 3_600_000

for (const adapter of storeAdapters) {
  describe(`ranges of lines on ${adapter.name}`, () => {
    let database: TestDatabase
    /** Two processes that have the same database open. */
    let stores: readonly [Store, Store]
    let batches = 0

    before(async () => {
      database = await adapter.create()
      stores = [await database.open(), await database.open()]
      for (const id of ['ws_1', 'ws_2']) {
        await stores[0].createWorkspace({ id, name: id, requestsPerMinute: null, createdAt: 1 })
      }
    })
    after(() => database.remove())

    /** A batch in progress, with so many ranges of four lines. */
    async function batchWith(workspaceId: string, ranges: number): Promise<{ id: string; workspaceId: string }> {
      const id = `batch_${++batches}`
      const [store] = stores
      await store.createBatch({
        id,
        workspaceId,
        keyId: 'key',
        endpoint: '/v1/chat/completions',
        inputFileId: 'file',
        inputBytes: 1,
        place: 'here',
        completionWindow: '24h',
        metadata: null,
        createdAt: 1,
        expiresAt: HOUR,
      })
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

    const result = (range: ClaimedRange, line: number, state: 'stored' | 'failed') => ({
      range,
      line,
      state,
      requestId: `r-${line}`,
      owner: '',
      errorCode: null,
      body: '{}',
    })

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
      assert.ok(await claim(stores[1], two, 11, 500), 'leases that ended do not count')
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

    it('have results that are written in one group with those of a claim that was lost', async () => {
      const [store] = stores
      await store.freeClaims()
      const batch = await batchWith('ws_1', 1)
      const lost = (await claim(store, batch, 9)) ?? assert.fail()
      const range = (await claim(store, batch, 9, 500)) ?? assert.fail()
      const stale = { ...result(lost, 1, 'stored'), requestId: 'lost' }
      const body = String.raw`{"content":"a \"quote\", a \\ and é"}`
      const group = [stale, { ...result(range, 2, 'failed'), errorCode: 'x' }, { ...result(range, 1, 'stored'), body }]
      assert.deepEqual(await store.writeResults(group, [], 9), [false, true, true])
      assert.deepEqual(
        (await store.results(batch.id, range)).map((it) => [it.requestId, it.errorCode, it.body]),
        [
          ['r-1', null, body],
          ['r-2', 'x', '{}'],
        ],
      )
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

    it('are claimed one at a time if one has more lines than may be in flight', async () => {
      await stores[0].freeClaims()
      const batch = await batchWith('ws_1', 2)
      const first = (await claim(stores[0], batch, 2)) ?? assert.fail()
      assert.equal(await claim(stores[1], batch, 2), undefined)
      await stores[0].endRange(first)
      assert.equal((await claim(stores[1], batch, 2))?.firstLine, 5)
    })
  })
}
