import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, it, type TestContext } from 'node:test'
import type { Batch, BatchStore, ClaimedRange, LineResult } from '../../src/batches/batch-store.ts'
import type { BatchFiles } from '../../src/batches/files.ts'
import { billedResults, openRunner, type RunnerParts } from '../../src/batches/runner.ts'
import { byteBudget } from '../../src/shared/byte-budget.ts'
import { ApiError, CallerLeft } from '../../src/shared/errors.ts'
import { chatLine } from '../support/batch-lines.ts'
import { handClock, turn } from '../support/hand-clock.ts'
import { gate, within } from '../support/waiting.ts'

/** The runner over a scripted store and engine. The test advances the clock, and every line of a file is alike. */

const NOW = Date.UTC(2026, 0)
const MIB = 2 ** 20
const caller = { workspace: { id: 'ws_1' }, keyId: 'key' } as never
const batchOf = (id: string, changes: Partial<Batch> = {}): Batch =>
  ({
    id,
    workspaceId: 'ws_1',
    keyId: 'key',
    endpoint: '/v1/chat/completions',
    place: 'here',
    pause: null,
    ...changes,
  }) as Batch
const rangeOf = (batchId: string, lines = 1): ClaimedRange => ({
  batchId,
  firstLine: 1,
  lines,
  byteStart: 0,
  byteEnd: 1000,
  claims: 1,
})

interface StageOptions extends Partial<Omit<RunnerParts, 'store' | 'files'>> {
  readonly ranges: readonly ClaimedRange[]
  readonly batches?: readonly Batch[]
  readonly store?: Partial<BatchStore>
  readonly file?: BatchFiles['file']
  readonly read?: BatchFiles['read']
}

/** A range is free again once it is released, unless its batch is paused, or `over`. */
function stage(t: TestContext, { ranges, batches = [], store, file, read, ...parts }: StageOptions) {
  const clock = handClock(t.mock.timers)
  /** What the store was asked for, besides looking for work. */
  const asked: string[] = []
  const seen = { looks: 0, lines: [] as string[], left: 0, failures: [] as string[] }
  const free = [...ranges]
  const over = new Set<string>()
  const pausedUntil = new Map<string, number>()
  const scripted: Partial<BatchStore> = {
    async runnableBatches() {
      seen.looks++
      return free
        .map(({ batchId }) => batches.find(({ id }) => id === batchId) ?? batchOf(batchId))
        .filter(({ id }) => !over.has(id) && (pausedUntil.get(id) ?? 0) <= clock.monotonic())
    },
    async claimRange({ id }, _most, now, leaseUntil) {
      assert.deepEqual([now, leaseUntil], [NOW, NOW + 10_000])
      await turn()
      asked.push(`claim ${id}`)
      const index = free.findIndex(({ batchId }) => batchId === id)
      return free.splice(index, 1)[0]
    },
    renewRanges: async (renewed, until) => {
      asked.push(`renew ${renewed.map(({ batchId }) => batchId).join()} for ${until - clock.now()}`)
    },
    batchesInProgress: async (ids) => ids.filter((id) => !over.has(id)),
    results: async () => [],
    async releaseRange(range) {
      asked.push(`release ${range.batchId}`)
      free.push(range)
    },
    endRange: async ({ batchId }) => void asked.push(`end ${batchId}`),
    pauseBatch: async (id, { code, since }, resumeAt) => {
      assert.equal(since, clock.now())
      asked.push(`pause ${id} for ${resumeAt - since}: ${code}`)
      pausedUntil.set(id, clock.monotonic() + resumeAt - since)
    },
    resumeBatch: async (id) => void asked.push(`resume ${id}`),
    finalizeBatch: async (id, ending, errors, at) => {
      assert.deepEqual([errors?.count, at], [1, clock.now()])
      asked.push(`finalize ${id} ${ending}: ${errors?.data[0]?.code}`)
      over.add(id)
    },
    ...store,
  }
  const runner = openRunner(
    {
      store: scripted as BatchStore,
      files: {
        place: 'here',
        file: file ?? (async () => ({ id: '' })),
        read: read ?? (async () => linesIn(ranges[0]?.lines ?? 0)),
      } as BatchFiles,
      memory: byteBudget(1e9),
      owner: '',
      running: new Set<string>(),
      clock,
      maxInFlight: 8,
      endpoints: { jobOf: async () => ({ answer: { kind: 'whole', read: async () => {} } }) },
      pipeline: async (_job: unknown, _caller: unknown, { requestId }: { requestId: string }) =>
        void seen.lines.push(requestId),
      sleep: () => new Promise(() => {}),
      callerOf: async () => caller,
      rowsOf: async () => [],
      isDelivered: () => true,
      isDraining: () => false,
      failed: ({ message }: Error) => void seen.failures.push(message),
      leftMs: () => 0,
      ...parts,
    } as unknown as RunnerParts,
    () => void seen.left++,
  )
  t.after(async () => {
    const closed = runner.close()
    await settled()
    clock.advance(60_000)
    await within(10_000, 'the runner closes', closed)
  })
  return { clock, asked, seen, free, over, runner }
}

const linesIn = (count: number): Readable =>
  Readable.from(Array.from({ length: count }, (_, index) => Buffer.from(`${JSON.stringify(chatLine(index))}\n`)))

/** Lines that an engine has until the gate opens. */
const until = ({ opened }: { readonly opened: Promise<void> }): Partial<StageOptions> => ({
  async pipeline(_job, _caller, reply) {
    reply.setWaiting(false)
    const cut = Promise.withResolvers<never>()
    reply.onGone(() => cut.reject(new Error('cut off')))
    await Promise.race([opened, cut.promise])
  },
})

/** More than enough for every promise that no timer holds up. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 40; turns++) await turn()
}

describe('a range of lines', () => {
  it('is claimed, run and ended, and the next one is looked for at once', async (t) => {
    const { asked, seen, runner } = stage(t, { ranges: [rangeOf('one', 2)] })
    runner.wake()
    await settled()
    assert.deepEqual(asked, ['claim one', 'end one'])
    assert.deepEqual(seen.lines, ['one-1-1-1', 'one-2-1-1'])
    assert.deepEqual([seen.left, seen.failures], [1, []])
  })

  it('whose input cannot be read pauses its batch with the reason, and is claimed again after five seconds', async (t) => {
    const { clock, asked, seen, runner } = stage(t, {
      ranges: [rangeOf('one')],
      async read() {
        if (asked.length < 3) throw new Error('the file storage answered with status 503')
        return linesIn(1)
      },
    })
    runner.wake()
    await settled()
    const first = ['claim one', 'pause one for 5000: service_unavailable', 'release one']
    assert.deepEqual([asked, seen.failures], [first, ['the file storage answered with status 503']])
    clock.advance(5000)
    await settled()
    assert.deepEqual(asked.slice(3), ['claim one', 'end one'])
  })

  it('whose results cannot be read is left to others, and looked for again after ten seconds', async (t) => {
    let isAway = true
    const { clock, asked, seen, runner } = stage(t, {
      ranges: [rangeOf('one')],
      store: {
        async results() {
          if (isAway) throw new Error('the store is away')
          return []
        },
      },
    })
    runner.wake()
    await settled()
    clock.advance(9999)
    await settled()
    assert.deepEqual([asked, seen.failures], [['claim one', 'release one'], ['the store is away']])
    isAway = false
    clock.advance(1)
    await settled()
    assert.deepEqual(asked.slice(2), ['claim one', 'end one'])
  })

  it('ends its batch if the input file is gone for good', async (t) => {
    const { asked, seen, runner } = stage(t, {
      ranges: [rangeOf('one')],
      async file() {
        throw new ApiError('not_found', 'gone')
      },
    })
    runner.wake()
    await settled()
    assert.deepEqual(asked, ['claim one', 'finalize one failed: not_found', 'release one'])
    assert.deepEqual(seen.failures, [])
  })

  it('ends its batch if the key of the batch has been revoked', async (t) => {
    const { asked, seen, runner } = stage(t, { ranges: [rangeOf('one')], callerOf: async () => undefined })
    runner.wake()
    await settled()
    assert.deepEqual(asked, ['claim one', 'finalize one failed: invalid_api_key', 'release one'])
    assert.deepEqual([seen.lines, seen.failures], [[], []])
  })

  it('is released if the service drains before all of its lines have begun', async (t) => {
    const state = { isDraining: false }
    const engine = gate()
    const { asked, runner } = stage(t, {
      ranges: [rangeOf('one', 2)],
      maxInFlight: 1,
      isDraining: () => state.isDraining,
      ...until(engine),
    })
    runner.wake()
    await settled()
    state.isDraining = true
    engine.open()
    await settled()
    assert.deepEqual(asked, ['claim one', 'release one'])
  })

  it('is released if one of its lines was left without a result', async (t) => {
    const { asked, seen, runner } = stage(t, {
      ranges: [rangeOf('one', 2)],
      pipeline: async (_job, _caller, { requestId }) => {
        seen.lines.push(requestId)
        if (seen.lines.length === 1) throw new CallerLeft()
      },
    })
    runner.wake()
    await settled()
    assert.deepEqual(asked, ['claim one', 'release one', 'claim one', 'end one'])
  })

  it('is renewed every second for ten, and stops when its batch is no longer in progress', async (t) => {
    const engine = gate()
    const { clock, asked, seen, over } = stage(t, { ranges: [rangeOf('one', 2)], maxInFlight: 1, ...until(engine) })
    clock.advance(0)
    await settled()
    for (let seconds = 1; seconds <= 2; seconds++) {
      clock.advance(1000)
      await settled()
    }
    over.add('one')
    clock.advance(1000)
    await settled()
    assert.equal(seen.left, 0)
    engine.open()
    await settled()
    const renewed = 'renew one for 10000'
    assert.deepEqual(asked, ['claim one', renewed, renewed, renewed, 'release one'])
    assert.equal(seen.left, 1)
  })

  it('stops when the key of its batch is revoked, and those of other batches go on', async (t) => {
    const engine = gate()
    const revoked = new Set<string>()
    const { asked, seen, runner } = stage(t, {
      ranges: [rangeOf('one'), rangeOf('one'), rangeOf('two')],
      callerOf: async ({ id }) => (revoked.has(id) ? undefined : caller),
      ...until(engine),
    })
    runner.wake()
    await settled()
    assert.equal(asked.length, 3)
    revoked.add('one')
    await runner.refresh()
    engine.open()
    await settled()
    assert.deepEqual(asked.slice(3).toSorted(), [
      'end two',
      'finalize one failed: invalid_api_key',
      'release one',
      'release one',
      'renew one,two,one for 10000',
    ])
    assert.equal(seen.left, 2, 'once for each batch')
  })

  it('is not stopped by a renewal that began before it was claimed', async (t) => {
    const [engine, renewing] = [gate(), gate()]
    const { asked, free, runner } = stage(t, {
      ranges: [rangeOf('one')],
      ...until(engine),
      store: {
        async batchesInProgress(ids) {
          await renewing.opened
          return ids
        },
      },
    })
    runner.wake()
    await settled()
    const renewed = runner.refresh()
    free.push(rangeOf('two'))
    runner.wake()
    await settled()
    renewing.open()
    await renewed
    engine.open()
    await settled()
    assert.deepEqual(asked, ['claim one', 'renew one for 10000', 'claim two', 'end one', 'end two'])
  })

  it('has begun before the next range of its batch is claimed', async (t) => {
    const engine = gate()
    let isAway = true
    const { asked, seen, free, runner } = stage(t, {
      ranges: [rangeOf('one')],
      store: {
        async renewRanges() {
          if (isAway) throw new Error('the store is away')
        },
      },
      ...until(engine),
    })
    runner.wake()
    await settled()
    // From now on, lines wait.
    await runner.refresh()
    free.push(rangeOf('two'), rangeOf('two'))
    runner.wake()
    await settled()
    assert.deepEqual(asked, ['claim one', 'claim two'])
    isAway = false
    await runner.refresh()
    await settled()
    assert.deepEqual(asked, ['claim one', 'claim two', 'claim two'])
    engine.open()
    await settled()
    assert.equal(seen.left, 2, 'once for each batch')
  })

  it('begins no line while the store is away, because others may have claimed it', async (t) => {
    const engine = gate()
    let isAway = true
    let begun = 0
    const { clock, asked, seen, runner } = stage(t, {
      ranges: [rangeOf('one', 3)],
      maxInFlight: 2,
      store: {
        async renewRanges() {
          if (isAway) throw new Error('the store is away')
        },
      },
      async pipeline(_job, _caller, reply) {
        reply.setWaiting(false)
        begun++
        await engine.opened
      },
    })
    runner.wake()
    await settled()
    await runner.refresh()
    engine.open()
    await settled()
    assert.deepEqual([begun, seen.failures], [2, ['the store is away']])
    isAway = false
    clock.advance(1000)
    await settled()
    assert.deepEqual([begun, asked], [3, ['claim one', 'end one']])
  })

  it('does not run again what has a result, also an answer that was billed before its row was read', async (t) => {
    const result = (line: number, state: LineResult['state']) =>
      ({ line, state, requestId: `r-${line}`, owner: 'other', errorCode: null, body: '' }) as const
    const completed: (readonly number[])[] = []
    const { asked, seen, runner } = stage(t, {
      ranges: [rangeOf('one', 4)],
      rowsOf: async (ids) => {
        assert.deepEqual(ids, ['r-2', 'r-3'])
        return [
          { requestId: 'r-2', outcome: 'completed' },
          { requestId: 'r-3', outcome: 'interrupted' },
        ]
      },
      store: {
        results: async () => [result(1, 'failed'), result(2, 'stored'), result(3, 'stored')],
        async writeResults(written, stored, at) {
          assert.deepEqual([written, at], [[], NOW])
          completed.push(stored.map(({ line }) => line))
          return []
        },
      },
    })
    runner.wake()
    await settled()
    assert.deepEqual([completed, seen.lines], [[[2]], ['one-3-1-1', 'one-4-1-1']])
    assert.deepEqual(asked, ['claim one', 'end one'])
  })

  it('pauses its batch once at the spend limit, and a line that has its answer ends the pause', async (t) => {
    const refused = new ApiError('spend_limit_exceeded', 'spent')
    let isSpent = true
    const paused = batchOf('one', { pause: { code: 'spend_limit_exceeded', message: 'spent', since: NOW } })
    const { clock, asked, runner } = stage(t, {
      ranges: [rangeOf('one', 2)],
      batches: [paused],
      async pipeline() {
        if (isSpent) throw refused
      },
    })
    runner.wake()
    await settled()
    assert.deepEqual(asked, ['claim one', 'pause one for 5000: spend_limit_exceeded', 'release one'])
    isSpent = false
    clock.advance(5000)
    await settled()
    assert.deepEqual(asked.slice(3), ['claim one', 'resume one', 'resume one', 'end one'])
  })

  it('no longer counts lines that ended at the spend limit as running', async (t) => {
    let isSpent = true
    const { clock, seen, asked, runner } = stage(t, {
      ranges: [rangeOf('one', 2)],
      maxInFlight: 1,
      async pipeline(_job, _caller, { requestId }) {
        if (isSpent) throw new ApiError('spend_limit_exceeded', 'spent')
        seen.lines.push(requestId)
      },
    })
    runner.wake()
    await settled()
    isSpent = false
    clock.advance(5000)
    await settled()
    assert.deepEqual([seen.lines.length, asked.at(-1)], [2, 'end one'])
  })
})

describe('how many ranges are claimed', () => {
  it('is limited by the bytes that they have in memory', async (t) => {
    const reading = Promise.withResolvers<never>()
    const { asked, runner } = stage(t, {
      ranges: ['one', 'two', 'three'].map((id) => ({ ...rangeOf(id), byteStart: 32 * MIB, byteEnd: 64 * MIB })),
      file: () => reading.promise,
    })
    runner.wake()
    await settled()
    const claimed = [...asked]
    reading.reject(new Error('over'))
    assert.deepEqual(claimed, ['claim one', 'claim two'])
  })

  it('is at most 64', async (t) => {
    const reading = Promise.withResolvers<never>()
    const { asked, runner } = stage(t, {
      ranges: Array.from({ length: 70 }, (_, index) => rangeOf(`batch ${index}`)),
      maxInFlight: 1000,
      file: () => reading.promise,
    })
    runner.wake()
    for (let rounds = 0; rounds < 20; rounds++) await settled()
    const claimed = asked.length
    reading.reject(new Error('over'))
    assert.equal(claimed, 64)
  })

  for (const [maxInFlight, order] of [
    [3, ['claim a', 'claim c', 'claim b']],
    [2, ['claim a', 'claim c']],
  ] as const) {
    it(`is limited by lines in flight, and the workspace with the fewest comes first (${maxInFlight})`, async (t) => {
      const engine = gate()
      const { asked, free, runner } = stage(t, {
        ranges: [rangeOf('a', 2)],
        batches: [batchOf('c', { workspaceId: 'ws_2' })],
        maxInFlight,
        ...until(engine),
      })
      runner.wake()
      await settled()
      free.push(rangeOf('b'), rangeOf('c'))
      runner.wake()
      await settled()
      assert.deepEqual(asked, order)
      engine.open()
      await settled()
      assert.deepEqual(asked.filter((it) => it.startsWith('end')).toSorted(), ['end a', 'end b', 'end c'])
    })
  }

  it('is looked at again after a second if other replicas run all lines that the workspace may have', async (t) => {
    const { clock, asked, seen, runner } = stage(t, {
      ranges: [rangeOf('one')],
      store: { claimRange: async () => (asked.push('refused'), undefined) },
    })
    runner.wake()
    await settled()
    clock.advance(999)
    await settled()
    assert.deepEqual(asked, ['refused'])
    clock.advance(1)
    await settled()
    assert.deepEqual([asked, seen.looks], [['refused', 'refused'], 2])
  })

  it('is looked at again after ten seconds if there was nothing to run, or the store failed', async (t) => {
    const { clock, seen, runner } = stage(t, {
      ranges: [],
      store: {
        async runnableBatches() {
          if (++seen.looks === 1) throw new Error('the store is away')
          return []
        },
      },
    })
    runner.wake()
    await settled()
    for (const looks of [2, 3]) {
      clock.advance(9999)
      await settled()
      assert.equal(seen.looks, looks - 1)
      clock.advance(1)
      await settled()
      assert.equal(seen.looks, looks)
    }
    assert.deepEqual(seen.failures, ['the store is away'])
  })
})

describe('a runner that closes', () => {
  it('waits for the lines that engines have, releases the rest, and claims nothing more', async (t) => {
    const engine = gate()
    const { clock, asked, free, runner } = stage(t, {
      ranges: [rangeOf('one', 2)],
      maxInFlight: 1,
      leftMs: () => 3000,
      ...until(engine),
    })
    runner.wake()
    await settled()
    free.push(rangeOf('two'))
    let isClosed = false
    const closed = runner.close().then(() => (isClosed = true))
    clock.advance(2999)
    await settled()
    assert.equal(isClosed, false)
    engine.open()
    await closed
    runner.wake()
    await settled()
    assert.deepEqual([asked, clock.pending()], [['claim one', 'release one'], 0])
  })

  it('sets no timer after a renewal that was under way, and waits for no line that has not begun', async (t) => {
    const renewing = gate()
    let isAway = false
    const { clock, asked, runner } = stage(t, {
      ranges: [rangeOf('one', 2)],
      maxInFlight: 1,
      async pipeline() {
        // The store goes away while the first line runs, so the second one does not begin.
        clock.advance(1000)
        await settled()
      },
      store: {
        async renewRanges() {
          if (!isAway) {
            isAway = true
            throw new Error('away')
          }
          await renewing.opened
        },
      },
    })
    runner.wake()
    await settled()
    await settled()
    clock.advance(1000)
    await settled()
    const closed = runner.close()
    await within(10_000, 'the runner closes', closed)
    renewing.open()
    await settled()
    assert.deepEqual([asked, clock.pending()], [['claim one', 'release one'], 0])
  })

  it('cuts them off when its time is up', async (t) => {
    const { clock, asked, runner } = stage(t, {
      ranges: [rangeOf('one')],
      leftMs: () => 3000,
      pipeline: (_job, _caller, reply) =>
        new Promise((_resolve, reject) => {
          reply.setWaiting(false)
          reply.onGone(() => reject(new Error('cut off')))
        }),
    })
    runner.wake()
    await settled()
    const closed = runner.close()
    await settled()
    assert.deepEqual(asked, ['claim one'])
    clock.advance(3000)
    await within(10_000, 'the runner closes', closed)
    assert.deepEqual(asked, ['claim one', 'release one'])
  })
})

describe('an answer that was kept, and whose line was not completed', () => {
  const cases: readonly (readonly [string, Kept, boolean])[] = [
    ['was billed', { outcome: 'completed' }, true],
    ['was not billed, because its process died', { outcome: 'interrupted' }, false],
    ['may be billed by the journal of the process that has it', { isDelivered: false }, true],
    ['may be billed, because its request runs here', { isRunning: true }, true],
    ['will never be billed: the ledger has every row of that process', {}, false],
  ]
  for (const [what, { outcome, isDelivered = true, isRunning = false }, isBilled] of cases) {
    it(`${isBilled ? 'is delivered' : 'is not delivered'} if it ${what}`, async () => {
      const kept: LineResult = { line: 1, state: 'stored', requestId: 'r', owner: 'o', errorCode: null }
      const billed = await billedResults(
        {
          rowsOf: async () => (outcome ? [{ requestId: 'r', outcome }] : []),
          isDelivered: (owner) => (assert.equal(owner, 'o'), isDelivered),
          running: new Set(isRunning ? ['r'] : []),
        },
        [kept],
      )
      assert.deepEqual(billed, isBilled ? [kept] : [])
    })
  }
})

interface Kept {
  readonly outcome?: 'completed' | 'interrupted'
  readonly isDelivered?: boolean
  readonly isRunning?: boolean
}
