import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { usualRules, type EngineSettings } from '../../../src/engines/on-demand/decisions.ts'
import { openScheduler } from '../../../src/engines/on-demand/scheduler.ts'
import { mutantsOf } from '../../mutants.ts'
import { someOf } from '../../support/long-run.ts'
import { meanWaitMs, traceOf, type Trace } from './waits.ts'
import type { OpenScheduler } from './world.ts'

/** What the clairvoyant knows. Its copy of the scheduler reads it here. */
const knowledge: { next: Map<EngineSettings, number> } = { next: new Map() }
Object.assign(globalThis, { knowledge })

/** The engine that is needed last gives way first, as in Belady's rule. */
const knowsTheFuture = {
  name: 'knows the future',
  file: 'decisions.ts',
  find: 'rank: isIdle(entry) ? [0, usedAtMs] : [1, sinceMs]',
  replace: 'rank: [isIdle(entry) ? 0 : 1, -(globalThis as any).knowledge.next.get(entry.settings)]',
}
const mostWaitingFirst = {
  name: 'most waiting first',
  file: 'decisions.ts',
  find: 'wantedSince(one)! - wantedSince(other)!',
  replace: 'other.waiting.size - one.waiting.size',
}

function watchNextUses({ models, calls }: Trace): (nowMs: number) => void {
  let index = 0
  return (nowMs) => {
    while (index < calls.length && calls[index]!.atMs <= nowMs) index++
    knowledge.next = new Map(
      models.map(({ settings }, model) => [
        settings,
        calls.find((call, at) => at >= index && call.model === model)?.atMs ?? Infinity,
      ]),
    )
  }
}

describe('waits for engines on demand', () => {
  const mutants = mutantsOf<{ openScheduler: OpenScheduler }>(
    new URL('../../../src/engines/on-demand/scheduler.ts', import.meta.url),
  )
  after(mutants.remove)

  it('are on average at most 1.3 times those of a clairvoyant schedule, with eight models on one device', async (t) => {
    const clairvoyants = [await mutants.load(knowsTheFuture), await mutants.load(knowsTheFuture, mostWaitingFirst)]
    for (const pauseMs of [20_000, 60_000]) {
      for (const seed of someOf([1, 2], 1)) {
        const trace = traceOf(seed, 150, pauseMs)
        const waitMs = meanWaitMs(openScheduler, usualRules, trace)
        const waits = clairvoyants.flatMap((clairvoyant) =>
          [1000, 5000, 15_000].flatMap((minServiceMs) =>
            [5000, 15_000, 30_000, 60_000].map((maxTurnMs) =>
              meanWaitMs(
                clairvoyant.openScheduler,
                { ...usualRules, minServiceMs, maxTurnMs },
                trace,
                watchNextUses(trace),
              ),
            ),
          ),
        )
        const leastMs = Math.min(...waits)
        t.diagnostic(
          `${trace.calls.length} calls: ${Math.round(waitMs)} ms, clairvoyant ${Math.round(leastMs)} ms, ratio ${(waitMs / leastMs).toFixed(2)}`,
        )
        assert.ok(waitMs <= 1.3 * leastMs, `seed ${seed}, a conversation every ${pauseMs} ms`)
      }
    }
  })
})
