import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { ApiError, errorTable, type ErrorCode } from '../../src/shared/errors.ts'
import { pendingRefusals } from '../../src/billing/refused-requests/pending-refusals.ts'
import { NEWEST_OF_CODE, reasonOf, type RefusalBatch } from '../../src/billing/refused-requests/refusals.ts'
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
      pending.add(sampleRefusal({ workspaceId: 'ws_2', keyId: `key_${index}`, at: 2 }))
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
    const { hours, newest } = pending.take()!
    assert.deepEqual([hours.length, newest.length], [50_000, 50_000])
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
    await refusals.close()
  })

  it('writes the last ones when it is closed', async (t) => {
    const { refusals, batches } = stageOf(t)
    refusals.add(sampleRefusal())
    await refusals.close()
    assert.deepEqual(batches.map(sumOf), [1])
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
