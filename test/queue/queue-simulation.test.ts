import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LaneLimits } from '../../src/queue/lane.ts'
import { syntheticArrivals, parseSizes } from '../../src/queue/synthetic-load.ts'
import type { SyntheticLoad } from '../../src/queue/synthetic-load.ts'
import { simulateQueue } from '../../src/queue/queue-simulation.ts'
import type { Arrival, EngineSpeed } from '../../src/queue/queue-simulation.ts'
import { seededRandom } from '../../src/shared/seeded-random.ts'

const limits: LaneLimits = { tokenBudget: 10_000, maxConcurrentRequests: 1, maxQueueDepth: 10, maxWaitMs: 60_000 }
const engine: EngineSpeed = { tokensPerSecond: 100, prefillTokensPerSecond: 1000, slowdown: 0 }

/** A request that takes one second of engine time: 100 ms for the input, 900 ms for the output. */
const second = (atMs: number): Arrival => ({ atMs, inputTokens: 100, maxTokens: 200, outputTokens: 90 })

function run(arrivals: Iterable<Arrival>, changes: Partial<LaneLimits & EngineSpeed> = {}, durationMs = 4000) {
  return simulateQueue({ limits: { ...limits, ...changes }, engine: { ...engine, ...changes }, arrivals, durationMs })
}

function near(actual: number, expected: number, distance = 1e-9): void {
  assert.ok(Math.abs(actual - expected) <= distance, `${actual} is not near ${expected}`)
}

describe('a simulated queue with batch work', () => {
  /** Lines that take one second each. */
  const batch = { lines: Infinity, inputTokens: 100, outputTokens: 90 }
  const simulate = (changes: Partial<LaneLimits>, arrivals: Iterable<Arrival>, lines = Infinity) =>
    simulateQueue({
      limits: { ...limits, maxConcurrentRequests: 3, ...changes },
      engine,
      arrivals,
      durationMs: 4000,
      batch: { ...batch, lines },
    })

  it('runs lines on what is idle, beside the reserve, and aborts them for requests that would wait', () => {
    const idle = simulate({}, [])
    assert.deepEqual(idle.batch, { lines: 8, linesPerDay: 8 * 21_600, preempted: 0 })
    near(idle.concurrencyUse, 2 / 3)
    assert.equal(idle.requests, 0)
    // One takes the reserve, and two take the places of lines, which begin again when all have ended.
    const busy = simulate({}, [second(500), second(500), second(500)])
    assert.equal(busy.admittedAtOnce, 3)
    assert.equal(busy.waitMs?.max, 0)
    assert.equal(busy.batch?.preempted, 2)
    assert.equal(busy.batch.lines, 4)
    const patient = simulate({ batch: { preempt: false } }, [second(500), second(500), second(500)])
    assert.equal(patient.batch?.preempted, 0)
    assert.equal(patient.admittedAfterWait, 2)
    assert.equal(patient.waitMs?.max, 500)
  })

  it('runs no more lines than there are, and none that can never fit', () => {
    assert.equal(simulate({}, [], 3).batch?.lines, 3)
    const online = [second(500), second(500), second(500)]
    assert.deepEqual(simulate({}, online, 2).batch, { lines: 2, linesPerDay: 2 * 21_600, preempted: 2 })
    assert.equal(simulate({ batch: { maxShare: 0 } }, []).batch?.lines, 0)
    assert.equal(simulate({ tokenBudget: 150 }, []).batch?.lines, 0)
    assert.equal(simulate({ batch: { maxQueueDepth: 0 } }, []).batch?.lines, 8)
    assert.equal(run([second(0)]).batch, null)
  })
})

describe('a simulated queue', () => {
  it('[Q5] makes requests wait while the engine is busy, and measures utilisation', () => {
    const report = run([second(0), second(0), second(500)])
    assert.equal(report.admittedAtOnce, 1)
    assert.equal(report.admittedAfterWait, 2)
    assert.equal(report.waitMs?.max, 1500)
    assert.equal(report.answerMs?.max, 2500)
    near(report.concurrencyUse, 0.75)
    near(report.budgetUse, (0.75 * 300) / 10_000)
    near(report.heldByConcurrency, 0.5)
    assert.equal(report.heldByBudget, 0)
    assert.equal(report.queueDepthMax, 2)
    near(report.outputTokensPerSecond, 270 / 4)
    assert.equal(report.moments.length, 60)
    near(report.moments[0]!.queueDepth, 1)
  })

  it('[Q7] reports when the token budget holds the first request back', () => {
    const report = run([second(0), second(0)], { maxConcurrentRequests: 5, tokenBudget: 599 })
    assert.equal(report.heldByBudget, 0.25)
    assert.equal(report.heldByConcurrency, 0)
  })

  it('[Q4][Q6][Q7] counts every kind of refusal', () => {
    const large: Arrival = { atMs: 0, inputTokens: 10_000, maxTokens: 1, outputTokens: 1 }
    const report = run([second(0), second(0), second(0), large], { maxQueueDepth: 1, maxWaitMs: 300 })
    const { requests, admittedAtOnce, overloaded, queueFull, tooLarge } = report
    assert.deepEqual(
      { requests, admittedAtOnce, overloaded, queueFull, tooLarge },
      {
        requests: 4,
        admittedAtOnce: 1,
        overloaded: 1,
        queueFull: 1,
        tooLarge: 1,
      },
    )
  })

  it('[Q5] slows all requests down as more run, and speeds up as they end', () => {
    const short: Arrival = { atMs: 0, inputTokens: 0, maxTokens: 50, outputTokens: 50 }
    const report = run([second(0), short], { maxConcurrentRequests: 2, slowdown: 1 })
    // Both run at half speed until the short one ends at 1000 ms; then the long one finishes at full speed.
    assert.equal(report.answerMs?.max, 1500)
    assert.equal(report.answerMs?.mean, 1250)
  })

  it('[Q5] cuts an answer off at its max_tokens', () => {
    const report = run([{ atMs: 0, inputTokens: 0, maxTokens: 100, outputTokens: 500 }])
    assert.equal(report.answerMs?.max, 1000)
  })

  it('[Q5] agrees with queueing theory for an M/D/1 queue', () => {
    const load: SyntheticLoad = { ...baseLoad, requestsPerSecond: 0.8, durationMs: 200_000_000 }
    const arrivals = syntheticArrivals(load, seededRandom(7))
    const report = run(arrivals, { maxQueueDepth: 1_000_000, maxWaitMs: 1_000_000_000 }, load.durationMs)
    // Pollaczek–Khinchine: at 80 % utilisation and one second each, the mean wait is 0.8 / (2 × 0.2) seconds.
    near(report.waitMs?.mean ?? 0, 2000, 60)
    near(report.concurrencyUse, 0.8, 0.01)
  })

  it('measures use until the end of the period, and follows its requests beyond it', () => {
    const report = run([second(0), second(0), second(0), second(2500)], {}, 3000)
    // They run from 0, 1000 and 2000 ms on, and the last one begins when the period is over.
    assert.deepEqual(
      [report.requests, report.answerMs?.max, report.concurrencyUse, report.heldByConcurrency],
      [4, 3000, 1, 5 / 6],
    )
    near(report.outputTokensPerSecond, 270 / 3)
    near(report.budgetUse, 300 / 10_000)
    assert.deepEqual(
      [0, 29, 49, 50, 59].map((index) => Math.round(report.moments[index]!.queueDepth)),
      [2, 1, 0, 1, 1],
    )
    assert.deepEqual([report.moments[59]?.inFlightRequests, report.moments[59]?.committedTokens], [1, 300])
  })

  it('does not simulate the limit for one workspace', () => {
    assert.equal(run([second(0), second(0)], { maxRequestsPerWorkspace: 1 }).admittedAfterWait, 1)
  })

  it('has no use of limits that are 0', () => {
    const report = run([second(0)], { maxConcurrentRequests: 0, tokenBudget: 0 })
    assert.deepEqual([report.tooLarge, report.concurrencyUse, report.budgetUse], [1, 0, 0])
  })

  it('reports no waits when there are no requests', () => {
    const report = run([])
    assert.equal(report.waitMs, null)
    assert.equal(report.concurrencyUse, 0)
  })
})

const baseLoad: SyntheticLoad = {
  process: 'poisson',
  requestsPerSecond: 10,
  burstSize: 5,
  durationMs: 10_000_000,
  inputTokens: { kind: 'fixed', tokens: 100 },
  maxTokens: { kind: 'fixed', tokens: 200 },
  outputTokens: { kind: 'fixed', tokens: 90 },
}

function load(changes: Partial<SyntheticLoad>, seed = 3): Arrival[] {
  return [...syntheticArrivals({ ...baseLoad, ...changes }, seededRandom(seed))]
}

function times(process: SyntheticLoad['process']): number[] {
  return load({ process, durationMs: 1001 }).map(({ atMs }) => atMs)
}

describe('a synthetic load', () => {
  it('has the requested rate, whatever the arrival process', () => {
    for (const process of ['poisson', 'constant', 'bursts'] as const) {
      near(load({ process }).length, 100_000, 1500)
    }
  })

  it('arrives evenly or in bursts', () => {
    assert.deepEqual(times('constant').slice(0, 3), [100, 200, 300])
    assert.deepEqual(times('bursts'), [500, 500, 500, 500, 500, 1000, 1000, 1000, 1000, 1000])
  })

  it('has the requested sizes, and no answer above its max_tokens', () => {
    const arrivals = load({
      inputTokens: { kind: 'long_tail', median: 400, p95: 3000 },
      maxTokens: { kind: 'between', low: 100, high: 300 },
      outputTokens: { kind: 'fixed', tokens: 200 },
    })
    const inputs = arrivals.map(({ inputTokens }) => inputTokens).sort((one, other) => one - other)
    near(inputs[Math.floor(inputs.length * 0.5)]!, 400, 20)
    near(inputs[Math.floor(inputs.length * 0.95)]!, 3000, 200)
    const allowed = arrivals.map(({ maxTokens }) => maxTokens)
    assert.deepEqual([allowed.reduce((a, b) => Math.min(a, b)), allowed.reduce((a, b) => Math.max(a, b))], [100, 300])
    assert.ok(arrivals.every(({ outputTokens, maxTokens }) => outputTokens <= maxTokens))
  })

  it('allows each request at least one token, and as many as its size says at most', () => {
    const sizes = load({ maxTokens: { kind: 'fixed', tokens: 0 }, durationMs: 1000 })
    assert.ok(sizes.length > 0 && sizes.every(({ maxTokens, outputTokens }) => maxTokens === 1 && outputTokens === 1))
    const inputs = load({ inputTokens: { kind: 'between', low: 7, high: 9 }, durationMs: 10_000 })
    assert.deepEqual(new Set(inputs.map(({ inputTokens }) => inputTokens)), new Set([7, 8, 9]))
  })

  it('is the same every time for the same seed', () => {
    assert.deepEqual(load({ durationMs: 5000 }, 1), load({ durationMs: 5000 }, 1))
    assert.notDeepEqual(load({ durationMs: 5000 }, 1), load({ durationMs: 5000 }, 2))
  })

  it('takes sizes as a number, a range, or a median and a 95th percentile', () => {
    assert.deepEqual(parseSizes('800'), { kind: 'fixed', tokens: 800 })
    assert.deepEqual(parseSizes('200-4000'), { kind: 'between', low: 200, high: 4000 })
    assert.deepEqual(parseSizes('400/3000'), { kind: 'long_tail', median: 400, p95: 3000 })
    for (const wrong of ['', 'many', '1.5', '-1', '4000-200', '0/10', '3/2', '1-2-3']) {
      assert.equal(parseSizes(wrong), undefined, wrong)
    }
  })
})
