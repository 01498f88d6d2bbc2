import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import type { Batch, BatchStore, ClaimedBatch, LineRange, NewBatch } from '../../src/batches/batch-store.ts'
import { openBatches, type BatchesParts } from '../../src/batches/batches.ts'
import type { ChangeFeed } from '../../src/cluster/changes/change-feed.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import { byteBudget } from '../../src/shared/byte-budget.ts'
import { ApiError, CallerLeft } from '../../src/shared/errors.ts'
import type { Caller } from '../../src/workspaces/workspace.ts'
import { chatLine } from '../support/batch-lines.ts'
import { turn } from '../support/hand-clock.ts'
import { within } from '../support/waiting.ts'

/** The steps of batches, over a store that records its calls. The test fires the timers. */

const NOW = 1000
const LINE = Buffer.from(JSON.stringify(chatLine('a')))
const POLL_MS = 10_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const batchOf = (id: string, changes: Partial<ClaimedBatch> = {}): ClaimedBatch =>
  ({
    id,
    workspaceId: 'ws_1',
    keyId: 'key',
    endpoint: '/v1/chat/completions',
    inputFileId: 'file',
    place: 'here',
    inputBytes: LINE.length,
    inProgressAt: NOW,
    state: 'finalizing',
    ending: 'completed',
    counts: { total: 0, completed: 0, failed: 0 },
    expiresAt: NOW + 1,
    endedAt: null,
    claims: 1,
    ...changes,
  }) as ClaimedBatch
const ended = (id: string): ClaimedBatch => batchOf(id, { state: 'completed', endedAt: NOW })

interface Timer {
  readonly ms: number
  readonly ring: () => void
}

function stage(changed: Partial<BatchStore> = {}, parts: Partial<BatchesParts> = {}) {
  const seen = {
    steps: [] as string[],
    ranges: [] as (readonly LineRange[])[],
    looks: 0,
    announced: 0,
    failures: [] as string[],
  }
  const state = { now: NOW }
  const toClaim: ClaimedBatch[] = []
  const timers = new Set<Timer>()
  const store: Partial<BatchStore> = {
    freeClaims: async () => {},
    async claimBatch(place, now, leaseUntil) {
      assert.deepEqual([place, now, leaseUntil], ['here', state.now, state.now + 20_000])
      return toClaim.shift()
    },
    async renewBatch({ id }, leaseUntil) {
      assert.equal(leaseUntil, NOW + 20_000)
      seen.steps.push(`renew ${id}`)
      return true
    },
    releaseBatch: async ({ id }) => void seen.steps.push(`release ${id}`),
    clearLines: async ({ id }) => (seen.steps.push(`clear ${id}`), false),
    clearRanges: async ({ id }) => void seen.steps.push(`clear ranges ${id}`),
    addRanges: async (_batch, ranges) => void seen.ranges.push(ranges),
    closeRanges: async () => {},
    ranges: async () => [],
    beginBatch: async ({ id }, lines, maxQueuedLines, now) => {
      assert.deepEqual([maxQueuedLines, now], [10, NOW])
      seen.steps.push(`begin ${id}: ${lines}`)
      return true
    },
    failBatch: async ({ id }, { count, data }) => void seen.steps.push(`fail ${id}: ${count} ${data[0]?.code}`),
    endBatch: async ({ id }) => void seen.steps.push(`end ${id}`),
    finalizeBatch: async (id, ending) => void seen.steps.push(`finalize ${id} ${ending}`),
    forgetBatches: async () => {},
    cancelBatch: async () => {},
    batch: async (_workspaceId, id) => batchOf(id, { state: 'cancelling' }),
    runnableBatches: async () => (seen.looks++, []),
    ...changed,
  }
  const changes = memoryChanges()
  changes.subscribe('batches', async () => void seen.announced++)
  const batches = openBatches({
    store,
    changes,
    files: {
      place: 'here',
      file: async () => ({}),
      async read(_file: unknown, start: number, end: number) {
        assert.deepEqual([start, end], [0, LINE.length])
        return Readable.from([LINE])
      },
    },
    spool: { open: async () => ({ length: 0, close: async () => {} }) },
    endpoints: {
      urls: ['/v1/chat/completions'],
      check: async () => {},
      jobOf: async () => ({ answer: { kind: 'whole', read: async () => {} } }),
    },
    running: new Set(),
    memory: byteBudget(1e6),
    clock: {
      now: () => state.now,
      after(ms: number, ring: () => void) {
        const timer = { ms, ring }
        timers.add(timer)
        return () => timers.delete(timer)
      },
    },
    failed: ({ message }: Error) => void seen.failures.push(message),
    isAlone: true,
    maxLines: 10,
    maxLineBytes: 1000,
    maxInFlight: 8,
    maxQueuedLines: 10,
    retentionDays: 3,
    callerOf: async () => ({ workspace: { id: 'ws_1' } }),
    isDraining: () => false,
    leftMs: () => 0,
    ...parts,
  } as unknown as BatchesParts)

  /** Rings the timers that were set for so long. */
  async function ring(ms: number): Promise<void> {
    const due = [...timers].filter((timer) => timer.ms === ms)
    for (const timer of due) timers.delete(timer)
    for (const timer of due) timer.ring()
    await settled()
  }
  return { seen, state, toClaim, timers, changes, batches, ring }
}

/** More than enough for every promise that no timer holds up. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 30; turns++) await turn()
}

describe('the steps of batches', () => {
  it('are looked for at the start, every ten seconds, and at once when another replica has something to do', async (t) => {
    const { seen, toClaim, changes, batches, ring } = stage()
    t.after(() => batches.close())
    toClaim.push(ended('first'))
    await ring(0)
    assert.deepEqual([seen.steps, seen.looks], [['clear first'], 1])
    toClaim.push(ended('second'))
    await ring(POLL_MS)
    assert.deepEqual([seen.steps.at(-1), seen.looks], ['clear second', 2])
    toClaim.push(ended('third'))
    await changes.announce('batches')
    await settled()
    assert.deepEqual([seen.steps.at(-1), seen.looks], ['clear third', 3])
  })

  it('notify all replicas when lines can be run, and when a batch is cancelled', async (t) => {
    const { seen, toClaim, batches, changes, ring } = stage({ cancelBatch: async () => void seen.steps.push('cancel') })
    t.after(() => batches.close())
    const announcedAfter: (string | undefined)[] = []
    changes.subscribe('batches', async () => void announcedAfter.push(seen.steps.at(-1)))
    toClaim.push(batchOf('new', { state: 'validating' }))
    await ring(0)
    assert.deepEqual([seen.steps, seen.announced, seen.looks], [['clear ranges new', 'begin new: 1'], 1, 2])
    assert.deepEqual(seen.ranges, [[{ firstLine: 1, lines: 1, byteStart: 0, byteEnd: LINE.length }]])
    await batches.cancel('ws_1', 'new')
    assert.equal(seen.announced, 2)
    assert.deepEqual(announcedAfter, ['begin new: 1', 'cancel'], 'replicas find what they are told')
  })

  it('fail a batch that may not run, and leave none of its ranges', async (t) => {
    const validating = batchOf('new', { state: 'validating' })
    for (const [code, store, parts] of [
      ['quota_exceeded', { beginBatch: async () => false }, {}],
      ['invalid_api_key', {}, { callerOf: async () => undefined }],
      ['request_too_large', {}, { maxLines: 0 }],
    ] as const) {
      const { seen, toClaim, batches, ring } = stage(store, parts)
      t.after(() => batches.close())
      toClaim.push(validating)
      await ring(0)
      assert.deepEqual(seen.steps.slice(-2), ['clear ranges new', `fail new: 1 ${code}`])
    }
  })

  it('add every range of a long file, a hundred at a time', async (t) => {
    const file = Buffer.from(Array.from({ length: 101 }, (_, index) => JSON.stringify(chatLine(index))).join('\n'))
    const begun = Promise.withResolvers<number>()
    const { seen, toClaim, batches, ring } = stage(
      { beginBatch: async (_batch, lines) => (begun.resolve(lines), true) },
      {
        files: { place: 'here', file: async () => ({}), read: async () => Readable.from([file]) } as never,
        maxLines: 101,
        maxInFlight: 4,
      },
    )
    t.after(() => batches.close())
    toClaim.push(batchOf('new', { state: 'validating' }))
    await ring(0)
    assert.equal(await within(10_000, 'the batch begins', begun.promise), 101)
    assert.deepEqual(
      seen.ranges.map((ranges) => [ranges.length, ranges[0]?.firstLine, ranges.at(-1)?.byteEnd]),
      [
        [100, 1, seen.ranges[1]?.[0]?.byteStart],
        [1, 101, file.length],
      ],
    )
  })

  it('leave a batch alone that was cancelled while it was checked', async (t) => {
    const { seen, toClaim, batches, ring } = stage({ beginBatch: async () => false, renewBatch: async () => false })
    t.after(() => batches.close())
    toClaim.push(batchOf('new', { state: 'validating' }))
    await ring(0)
    assert.deepEqual(seen.steps, ['clear ranges new'])
  })

  it('stop the lines of a batch that was cancelled at another replica, at once', async (t) => {
    const range = { batchId: 'b', firstLine: 1, lines: 1, byteStart: 0, byteEnd: LINE.length, claims: 1 }
    const ranges = [range]
    const { seen, changes, batches, ring } = stage(
      {
        runnableBatches: async () => ranges.map(() => batchOf('b', { state: 'in_progress' })),
        claimRange: async () => ranges.pop(),
        results: async () => [],
        renewRanges: async () => {},
        batchesInProgress: async () => [],
        releaseRange: async () => void seen.steps.push('release'),
      },
      // Its model has no free place.
      { pipeline: (_job, _caller, reply) => new Promise((_, reject) => reply.onGone(() => reject(new CallerLeft()))) },
    )
    t.after(() => batches.close())
    await ring(0)
    assert.deepEqual(seen.steps, [])
    await changes.announce('batches')
    await settled()
    assert.deepEqual([seen.steps, seen.failures], [['release'], []])
  })

  it('follow from the state of the batch', async (t) => {
    const { seen, toClaim, batches, ring } = stage()
    t.after(() => batches.close())
    toClaim.push(
      batchOf('expired unchecked', { state: 'validating', expiresAt: NOW }),
      batchOf('run', { state: 'in_progress' }),
      batchOf('expired', { state: 'in_progress', expiresAt: NOW }),
      batchOf('cancelled', { state: 'cancelling', ending: 'cancelled' }),
      batchOf('cancelled unchecked', { state: 'cancelling', ending: 'cancelled', inProgressAt: null }),
    )
    await ring(0)
    assert.deepEqual(seen.steps, [
      'finalize expired unchecked expired',
      'finalize run completed',
      'finalize expired expired',
      'end cancelled',
      'clear ranges cancelled unchecked',
      'end cancelled unchecked',
    ])
  })

  it('that fail are reported, and neither delay those of other batches nor release their claim', async (t) => {
    const { seen, toClaim, batches, ring } = stage({
      async closeRanges({ id }) {
        if (seen.failures.length === 0) throw new Error(`${id} is broken`)
      },
    })
    t.after(() => batches.close())
    toClaim.push(batchOf('one'), batchOf('two'))
    await ring(0)
    assert.deepEqual([seen.failures, seen.steps], [['one is broken'], ['end two']])
    // Its lease has ended.
    toClaim.push(batchOf('one'))
    await ring(POLL_MS)
    assert.deepEqual(seen.steps, ['end two', 'end one'])
  })

  it('are looked for again after the store failed', async (t) => {
    let isAway = true
    const { seen, batches, ring } = stage({
      async claimBatch() {
        if (!isAway) return
        isAway = false
        throw new Error('the store is away')
      },
      forgetBatches: async () => void seen.steps.push('forget'),
    })
    t.after(() => batches.close())
    await ring(0)
    assert.deepEqual([seen.failures, seen.steps], [['the store is away'], []])
    await ring(POLL_MS)
    assert.deepEqual([seen.failures.length, seen.steps], [1, ['forget']])
  })

  it('renew their claim while they last', async (t) => {
    const going = Promise.withResolvers<boolean>()
    const { seen, toClaim, timers, batches, ring } = stage({ clearLines: () => going.promise })
    t.after(() => batches.close())
    toClaim.push(ended('long'))
    await ring(0)
    await ring(5000)
    await ring(5000)
    assert.deepEqual(seen.steps, ['renew long', 'renew long'])
    going.resolve(false)
    await settled()
    assert.deepEqual(
      [...timers].map(({ ms }) => ms).filter((ms) => ms === 5000),
      [],
    )
  })

  it('are interrupted when the service stops, which releases the claim and begins no other', async () => {
    const going = Promise.withResolvers<boolean>()
    const subscribers = new Set<() => Promise<void>>()
    const changes: ChangeFeed = {
      announce: async () => (await Promise.all([...subscribers].map((reload) => reload())), []),
      subscribe: (_change, reload) => (subscribers.add(reload), () => subscribers.delete(reload)),
    }
    const { seen, toClaim, timers, batches, ring } = stage({ clearLines: () => going.promise }, { changes })
    toClaim.push(ended('long'), ended('next'))
    await ring(0)
    let isClosed = false
    const { looks } = seen
    const closing = batches.close().then(() => (isClosed = true))
    await settled()
    assert.equal(isClosed, false, 'it waits for the step')
    await ring(POLL_MS)
    assert.deepEqual([seen.looks, subscribers.size], [looks, 0], 'no more lines are run')
    going.resolve(true)
    await closing
    assert.deepEqual(seen.steps, ['release long'])
    await changes.announce('batches')
    await settled()
    assert.deepEqual([toClaim.length, timers.size, seen.failures], [1, 0, []])
  })

  it('wait no longer for memory when the service stops', async () => {
    const { seen, toClaim, batches, ring } = stage(
      {},
      {
        endpoints: {
          urls: ['/v1/chat/completions'],
          check: () => Promise.reject(new ApiError('service_unavailable', 'Other requests have the memory.')),
        } as unknown as BatchesParts['endpoints'],
        sleep: (_ms, signal) => once(signal, 'abort').then(() => signal.throwIfAborted()),
      },
    )
    toClaim.push(batchOf('new', { state: 'validating' }))
    await ring(0)
    await within(10_000, 'the batches close', batches.close())
    assert.deepEqual([seen.steps, seen.failures], [['clear ranges new', 'release new'], []])
  })

  it('are left to other replicas while this one drains', async (t) => {
    const { toClaim, batches, ring } = stage({}, { isDraining: () => true })
    t.after(() => batches.close())
    toClaim.push(ended('one'))
    await ring(0)
    assert.equal(toClaim.length, 1)
  })

  it('forget batches whose retention has ended, once an hour', async (t) => {
    const forgotten: number[] = []
    const { seen, state, batches, ring } = stage({ forgetBatches: async (before) => void forgotten.push(before) })
    t.after(() => batches.close())
    for (const now of [NOW, NOW + HOUR_MS - 1, NOW + HOUR_MS]) {
      state.now = now
      await ring(now === NOW ? 0 : POLL_MS)
    }
    assert.deepEqual([forgotten, seen.failures], [[NOW - 3 * DAY_MS, NOW + HOUR_MS - 3 * DAY_MS], []])
  })

  it('begin with the claims of an earlier process, if there is no other', async (t) => {
    let freed = 0
    for (const isAlone of [true, false]) {
      const { batches } = stage({ freeClaims: async () => void freed++ }, { isAlone })
      t.after(() => batches.close())
    }
    assert.equal(freed, 1)
  })
})

describe('a batch', () => {
  const caller = { workspace: { id: 'ws_1' }, keyId: 'key' } as Caller
  const request = { inputFileId: 'file', endpoint: '/api/v1/chat/completions', metadata: { a: 'b' } }
  const input = { id: 'file', purpose: 'batch', bytes: 7, place: 'there' }
  const withFile = (file: object, queued: number, created: NewBatch[] = []) =>
    stage(
      { queuedLines: async () => queued, createBatch: async (batch) => void created.push(batch) },
      { files: { place: 'here', file: async () => file } as unknown as BatchesParts['files'] },
    )

  it('is created where its file is, for a day, and its check begins at once', async (t) => {
    const created: NewBatch[] = []
    const { seen, toClaim, batches } = withFile(input, 9, created)
    t.after(() => batches.close())
    toClaim.push(ended('next'))
    const { id } = await batches.create(caller, request)
    await settled()
    assert.match(id, /^batch_[0-9a-f]{24}$/)
    assert.deepEqual(created, [
      {
        id,
        workspaceId: 'ws_1',
        keyId: 'key',
        endpoint: '/v1/chat/completions',
        inputFileId: 'file',
        inputBytes: 7,
        place: 'there',
        completionWindow: '24h',
        metadata: { a: 'b' },
        createdAt: NOW,
        expiresAt: NOW + DAY_MS,
      },
    ])
    assert.deepEqual(seen.steps, ['clear next'])
  })

  it('is refused if the workspace has as many lines as it may, and for another file or endpoint', async (t) => {
    const full = withFile(input, 10)
    const output = withFile({ ...input, purpose: 'batch_output' }, 0)
    for (const { batches } of [full, output]) t.after(() => batches.close())
    await assert.rejects(full.batches.create(caller, request), { code: 'quota_exceeded' })
    await assert.rejects(output.batches.create(caller, request), { param: 'input_file_id' })
    await assert.rejects(output.batches.create(caller, { ...request, endpoint: '/v1/images' }), { param: 'endpoint' })
  })

  it('is listed with others in pages, after the last one of the page before', async (t) => {
    const queries: unknown[] = []
    const { batches } = stage({
      batches: async (query) => (queries.push(query), [batchOf('one'), batchOf('two')]),
      batch: async (_workspaceId, id) => (id === 'none' ? undefined : batchOf(id)),
    })
    t.after(() => batches.close())
    const first = await batches.list({ workspaceId: 'ws_1', limit: 1 })
    assert.deepEqual([first.batches.map(({ id }) => id), first.hasMore], [['one'], true])
    assert.equal((await batches.list({ workspaceId: 'ws_1', limit: 2, after: 'zero' })).hasMore, false)
    assert.deepEqual(queries, [
      { workspaceId: 'ws_1', after: undefined, limit: 2 },
      { workspaceId: 'ws_1', after: batchOf('zero'), limit: 3 },
    ])
    await assert.rejects(batches.list({ workspaceId: 'ws_1', limit: 2, after: 'none' }), { code: 'not_found' })
  })

  it('cannot be cancelled once it has ended', async (t) => {
    const { seen, batches } = stage({ batch: async (_workspaceId, id) => ended(id) })
    t.after(() => batches.close())
    await assert.rejects(batches.cancel('ws_1', 'over'), { code: 'conflict' })
    assert.equal(seen.announced, 0)
  })

  it('shows its failures, its cost, and its pace of the last ten minutes', async (t) => {
    const minutes = (count: number): number => count * 60_000
    const counted = [{ code: 'counted' }] as unknown as Batch['failures']
    const since: number[] = []
    const { state, batches } = stage(
      {},
      {
        reader: {
          async batchProgress(_id, from) {
            since.push(from)
            return { endedLines: 50, amount: 3n, failures: [] }
          },
        },
      },
    )
    t.after(() => batches.close())
    state.now = minutes(60)
    const running = { state: 'in_progress', pause: null, failures: null } as const
    const early = await batches.progress(batchOf('a', { ...running, inProgressAt: minutes(40) }))
    assert.deepEqual([early.linesPerMinute, early.amount, early.failures], [5, 3n, []])
    const late = await batches.progress(batchOf('b', { ...running, inProgressAt: minutes(55), failures: counted }))
    assert.deepEqual([late.linesPerMinute, late.failures], [10, counted])
    assert.deepEqual(since, [minutes(50), minutes(55)])
  })
})
