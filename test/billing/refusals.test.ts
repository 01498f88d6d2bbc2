import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { ApiError, errorTable, type ErrorCode } from '../../src/shared/errors.ts'
import { pendingRefusals } from '../../src/billing/refused-requests/pending-refusals.ts'
import { refusedReport } from '../../src/billing/refused-requests/routes/refused-report.ts'
import {
  NEWEST_OF_CODE,
  reasonOf,
  type Refusal,
  type RefusalBatch,
} from '../../src/billing/refused-requests/refusals.ts'
import { openRefusals } from '../../src/billing/refused-requests/refusal-recorder.ts'
import { sampleRefusal } from '../support/refusal-samples.ts'
import { handClock, turn, type HandClock } from '../support/hand-clock.ts'

const HOUR_MS = 3_600_000
const sumOf = ({ hours }: RefusalBatch): number => hours.reduce((sum, { requests }) => sum + requests, 0)

describe('refusals that are not stored yet', () => {
  it('count every request, and keep the newest of each workspace and code', () => {
    const pending = pendingRefusals()
    for (let index = 0; index < 100_000; index++) pending.add(sampleRefusal())
    const quiet = sampleRefusal({ workspaceId: 'ws_2', keyId: 'key_2' })
    pending.add(quiet)
    const rare = sampleRefusal({ code: 'spend_limit_exceeded', httpStatus: 402 })
    pending.add(rare)
    for (let index = 0; index < 1000; index++) pending.add(sampleRefusal())
    const last = sampleRefusal()
    pending.add(last)
    const batch = pending.take()!
    assert.deepEqual(
      batch.hours.map((it) => [it.workspaceId, it.hour, it.keyId, it.code, it.requests]),
      [
        ['ws_1', HOUR_MS, 'key_1', 'rate_limit_exceeded', 101_001],
        ['ws_2', HOUR_MS, 'key_2', 'rate_limit_exceeded', 1],
        ['ws_1', HOUR_MS, 'key_1', 'spend_limit_exceeded', 1],
      ],
    )
    assert.equal(batch.newest.length, NEWEST_OF_CODE + 2)
    assert.ok([quiet, rare, last].every((it) => batch.newest.includes(it)))
    assert.equal(pending.take(), undefined)
  })

  it('beyond the number of keys that a workspace may list are counted together by hour, even after a batch was taken', () => {
    const pending = pendingRefusals()
    const flood = (at: number): void => {
      for (let index = 0; index < 5000; index++) pending.add(sampleRefusal({ keyId: `key_${index}`, at }))
    }
    flood(1)
    const first = pending.take()!
    assert.equal(first.hours.length, 101)
    assert.equal(first.hours.find(({ keyId }) => keyId === '')?.requests, 4900)
    flood(2)
    for (let index = 0; index < 50; index++)
      pending.add(sampleRefusal({ workspaceId: 'ws_2', keyId: `other_${index}`, at: 2 }))
    const second = pending.take()!
    assert.equal(second.hours.filter(({ workspaceId }) => workspaceId === 'ws_1').length, 101)
    assert.deepEqual(
      new Set(second.hours.filter(({ workspaceId }) => workspaceId === 'ws_1').map(({ keyId }) => keyId)),
      new Set(first.hours.map(({ keyId }) => keyId)),
      'the same keys in the same hour, so the store has no more rows',
    )
    assert.equal(second.hours.filter(({ workspaceId }) => workspaceId === 'ws_2').length, 50)
    flood(HOUR_MS + 1)
    assert.ok(pending.take()!.hours.every(({ hour }) => hour === HOUR_MS))
  })

  it('are neither lost nor counted twice if the store did not accept them', () => {
    const pending = pendingRefusals()
    for (let index = 0; index < 30; index++) pending.add(sampleRefusal())
    const batch = pending.take()!
    const later = sampleRefusal()
    pending.add(later)
    pending.putBack(batch)
    const again = pending.take()!
    assert.equal(sumOf(again), 31)
    assert.deepEqual(again.newest, [...batch.newest.slice(1), later])
  })

  it('stay within a limit while the store accepts nothing, hour after hour', () => {
    const pending = pendingRefusals()
    for (let index = 0; index < 60_000; index++) {
      pending.add(sampleRefusal({ workspaceId: `ws_${index}`, at: index * HOUR_MS }))
    }
    const batch = pending.take()!
    assert.deepEqual([batch.hours.length, batch.newest.length], [50_000, 50_000])
    pending.add(sampleRefusal())
    assert.equal(pending.take()!.newest.length, 1, 'there is room again')
    pending.add(sampleRefusal())
    pending.putBack(batch)
    assert.equal(pending.take()!.newest.length, 50_000, 'the older ones first')
  })
})

describe('the reason of a refusal', () => {
  it('is our own message, unless that may quote the caller', () => {
    const said = 'words of the caller'
    const quoting = (Object.keys(errorTable) as ErrorCode[]).filter(
      (code) => reasonOf(new ApiError(code, said)) !== said,
    )
    assert.deepEqual(quoting.toSorted(), [
      'conflict',
      'internal_error',
      'invalid_json',
      'invalid_type',
      'invalid_value',
      'method_not_allowed',
      'missing_required_parameter',
      'model_not_found',
      'not_found',
      'unknown_url',
      'unsupported_content',
      'unsupported_media_type',
      'unsupported_parameter',
      'unsupported_value',
      'upstream_error',
      'upstream_timeout',
    ])
    for (const code of quoting) assert.match(reasonOf(new ApiError(code, said)), /^[A-Z].*\.$/)
    assert.equal(reasonOf(new ApiError('queue_full', 'x'.repeat(10_000))).length, 500)
  })
})

describe('a report of refusals', () => {
  const now = Date.UTC(2026, 10, 19, 3)
  async function asked(parameters: object, newest: readonly Refusal[] = []) {
    const queries: Record<string, unknown>[] = []
    const ask = async (query: unknown) => (queries.push(query as Record<string, unknown>), [])
    const report = (await refusedReport(
      {
        refusedOverTime: ask,
        refusedGroups: ask,
        refusedRequests: async (query) => (await ask(query), newest),
        refusedRequest: async () => undefined,
      },
      'ws_1',
      parameters,
      now,
    )) as { newest: readonly unknown[]; next: string | null }
    return { queries, report }
  }

  it('has the newest hundred and the largest two hundred groups of the last seven days, unless others are asked for', async () => {
    const from = Date.UTC(2026, 10, 12, 13)
    const scope = { workspaceId: 'ws_1', keyId: undefined, code: undefined, from, to: from + 7 * 24 * HOUR_MS }
    const { queries } = await asked({})
    const rest = { model: undefined, httpStatus: undefined, before: undefined, limit: 101 }
    assert.deepEqual(queries, [scope, { ...scope, limit: 200 }, { ...scope, ...rest }])
    const { queries: chosen } = await asked({
      key: '',
      model: '',
      status: 429,
      limit: 7,
      before: '5_r-1',
      to: '2026-11-18',
    })
    assert.partialDeepStrictEqual(chosen[2], {
      ...rest,
      httpStatus: 429,
      before: { at: 5, requestId: 'r-1' },
      limit: 8,
    })
    for (const before of ['', '5', '5_', 'x_r', `5_${'r'.repeat(101)}`, `${'5'.repeat(16)}_r`])
      await assert.rejects(asked({ before }), { code: 'invalid_value', param: 'before' }, before)
  })

  it('names where the next page starts only if there is more', async () => {
    const newest = [1, 2, 3].map((at) => sampleRefusal({ at, requestId: `r-${at}` }))
    assert.equal((await asked({ limit: 3 }, newest)).report.next, null)
    const { report } = await asked({ limit: 2 }, newest)
    assert.deepEqual([report.newest.length, report.next], [2, '2_r-2'])
  })
})

describe('the record of refusals', () => {
  interface Stage {
    readonly clock: HandClock
    readonly refusals: ReturnType<typeof openRefusals>
    readonly batches: RefusalBatch[]
    readonly failures: string[]
    /** What the store does with the next batch. */
    answer: () => Promise<void>
  }

  function stageOf(t: TestContext): Stage {
    const clock = handClock(t.mock.timers)
    const batches: RefusalBatch[] = []
    const failures: string[] = []
    const none = async (): Promise<never[]> => []
    const stage: Stage = {
      clock,
      batches,
      failures,
      answer: async () => {},
      refusals: openRefusals({
        store: {
          async addRefusals(batch, since) {
            assert.equal(since, clock.now() - 31 * 24 * HOUR_MS)
            await stage.answer()
            batches.push(batch)
          },
        },
        reader: {
          refusedOverTime: none,
          refusedGroups: none,
          refusedRequests: async () => batches.flatMap(({ newest }) => newest),
          refusedRequest: async () => undefined,
        },
        clock,
        failed: ({ message }) => failures.push(message),
      }),
    }
    return stage
  }

  it('writes many at a time, after a delay, and nothing while nothing is refused', async (t) => {
    const { refusals, clock, batches } = stageOf(t)
    for (let index = 0; index < 1000; index++) refusals.add(sampleRefusal())
    await turn()
    assert.equal(batches.length, 0)
    clock.advance(2000)
    await turn()
    assert.deepEqual(batches.map(sumOf), [1000])
    clock.advance(60_000)
    await turn()
    assert.equal(batches.length, 1)
    refusals.add(sampleRefusal())
    clock.advance(2000)
    await turn()
    assert.deepEqual(batches.map(sumOf), [1000, 1])
    await refusals.close()
  })

  it('lets readers see everything refused before their read, even while a batch is being written', async (t) => {
    const stage = stageOf(t)
    const { refusals, clock } = stage
    const writing = Promise.withResolvers<void>()
    stage.answer = () => writing.promise
    const first = sampleRefusal()
    refusals.add(first)
    clock.advance(2000)
    await turn()
    const second = sampleRefusal()
    refusals.add(second)
    const read = refusals.refusedRequests({ from: 0, to: 1, limit: 1 })
    stage.answer = async () => {}
    writing.resolve()
    assert.deepEqual(await read, [first, second])
    await refusals.close()
  })

  it('keeps what the store does not accept, retries, and reports the failure once', async (t) => {
    const stage = stageOf(t)
    const { refusals, clock, batches, failures } = stage
    stage.answer = () => Promise.reject(new Error('away'))
    for (let index = 0; index < 3; index++) {
      refusals.add(sampleRefusal())
      clock.advance(2000)
      await turn()
    }
    assert.deepEqual(await refusals.refusedRequests({ from: 0, to: 1, limit: 1 }), [], 'a reader is not refused')
    stage.answer = async () => {}
    clock.advance(2000)
    await turn()
    assert.deepEqual(batches.map(sumOf), [3])
    assert.deepEqual(failures, ['away'])
    stage.answer = () => Promise.reject(new Error('away again'))
    refusals.add(sampleRefusal())
    await refusals.close()
    assert.deepEqual([failures, clock.pending()], [['away', 'away again'], 0])
  })

  it('writes the last ones when it is closed', async (t) => {
    const { refusals, batches, clock } = stageOf(t)
    refusals.add(sampleRefusal())
    await refusals.close()
    assert.deepEqual([batches.map(sumOf), clock.pending()], [[1], 0])
  })

  it('does not wait long for a store that hangs when it is closed', async (t) => {
    const stage = stageOf(t)
    stage.answer = () => new Promise(() => {})
    stage.refusals.add(sampleRefusal())
    const closed = stage.refusals.close()
    stage.clock.advance(2000)
    await closed
  })
})
