import assert from 'node:assert/strict'
import { after, describe, it, mock } from 'node:test'
import * as fc from 'fast-check'
import { memoryAdmission } from '../../src/queue/memory.ts'
import type { LaneLimits } from '../../src/queue/lane.ts'
import type { Decision, Ticket } from '../../src/queue/admission.ts'
import { mutantsOf } from '../mutants.ts'
import type { Mutation } from '../mutants.ts'
import { crowd, hasty, misbehaviour, narrow, wide } from '../support/admission-crowd.ts'
import type { Reaction } from '../support/admission-crowd.ts'
import { handClock } from '../support/hand-clock.ts'
import { runLength } from '../support/long-run.ts'

type Step =
  | { readonly do: 'enter'; readonly callers: number; readonly cost: number; readonly reaction: Reaction }
  | { readonly do: 'leave'; readonly caller: number }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'turn' }
  | { readonly do: 'limits'; readonly limits: LaneLimits }

const callers = fc.constantFrom(1, 1, 1, 1, 1, 1, 1, 1, 1, 40)
const reaction = fc.constantFrom<Reaction>('stay', 'stay', 'stay', 'leave', 'enter', 'throw')
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: fc.record({ do: fc.constant('enter' as const), callers, cost: fc.nat(11), reaction }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('leave' as const), caller: fc.nat(100) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(60) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('turn' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('limits' as const), limits: fc.constantFrom(narrow, wide, hasty) }),
  },
)

/** Any interleaving of grants, cancels, timeouts, limit changes and turns of the event loop, all by hand. */
function checkInterleavings(open: typeof memoryAdmission, options: fc.Parameters<[Step[]]>): Promise<void> {
  const steps = fc.array(step, { size: 'max', maxLength: 250 })
  const property = fc.asyncProperty(steps, async (steps) => {
    let turns: (() => void)[] = []
    mock.method(globalThis, 'setImmediate', (callback: () => void) => turns.push(callback))
    const surprises: unknown[] = []
    mock.method(globalThis, 'queueMicrotask', (rethrow: () => void) => {
      try {
        rethrow()
      } catch (error) {
        if (error !== misbehaviour) surprises.push(error)
      }
    })
    const clock = handClock(mock.timers)
    const admission = open(clock)
    const lane = crowd(admission, clock)
    const takeTurn = (): void => {
      const due = turns
      turns = []
      for (const callback of due) callback()
    }
    try {
      for (const step of steps) {
        if (step.do === 'enter') {
          for (let entered = 0; entered < step.callers; entered += 1) lane.enter(step.cost, step.reaction)
        } else if (step.do === 'leave') {
          const caller = lane.callers[step.caller % lane.callers.length]
          if (caller !== undefined) lane.leave(caller)
        } else if (step.do === 'wait') clock.advance(step.ms)
        else if (step.do === 'turn') takeTurn()
        else lane.setLimits(step.limits)
        if (surprises.length > 0) throw surprises[0]
        const status = (await admission.status()).get('lane')!
        if (turns.length === 0) lane.inspectAtRest(status)
        else lane.inspect(status)
      }
      // Twice, because some callers enter again when they are notified.
      for (let wait = 0; wait < 2; wait += 1) {
        clock.advance(narrow.maxWaitMs)
        while (turns.length > 0) takeTurn()
      }
      assert.equal(lane.waiting().length, 0, 'every caller gets an answer by the maximum wait')
      await lane.inspectWhenAllHaveLeft()
    } finally {
      mock.reset()
    }
  })
  return fc.assert(property, options)
}

describe('the in-memory admission under any interleaving', () => {
  it('[Q1][Q2][Q4][Q5][Q6] of grants, cancels, timeouts, limit changes and turns keeps its guarantees', async () => {
    await checkInterleavings(memoryAdmission, { numRuns: runLength(300, 1000) })
  })

  it('[Q2][Q5][Q6] of promises admits or refuses each caller or lets it leave, and only one of these', async () => {
    const caller = fc.record({ cost: fc.integer({ min: 1, max: 10 }), isImpatient: fc.boolean() })
    const property = fc.asyncProperty(
      fc.scheduler(),
      fc.array(caller, { minLength: 1, maxLength: 12 }),
      fc.array(fc.nat(60), { maxLength: 6 }),
      async (scheduler, callers, pauses) => {
        const clock = handClock(mock.timers)
        const admission = memoryAdmission(clock)
        admission.setLanes(new Map([['lane', { ...narrow, maxQueueDepth: 5 }]]))
        const happens = (what: string): Promise<string> => scheduler.schedule(Promise.resolve(what), what)
        const atWork = { requests: 0, tokens: 0 }

        const lives = callers.map(async ({ cost, isImpatient }, number) => {
          await happens(`${number} arrives`)
          let ticket: Ticket | undefined
          const decision = new Promise<Decision>((resolve) => {
            ticket = admission.enter({ lane: 'lane', workspace: 'acme', cost }, resolve)
          })
          const departure = isImpatient ? happens(`${number} leaves`) : new Promise<never>(() => {})
          const outcome = await Promise.race([decision, departure])
          if (typeof outcome === 'object' && outcome.kind === 'admitted') {
            atWork.requests += 1
            atWork.tokens += cost
            assert.ok(atWork.requests <= narrow.maxConcurrentRequests)
            assert.ok(atWork.tokens <= narrow.tokenBudget)
            await happens(`the engine is done with ${number}`)
            atWork.requests -= 1
            atWork.tokens -= cost
          }
          ticket?.leave()
          return outcome
        })
        const time = pauses.map(async (ms) => {
          await happens(`${ms} ms pass`)
          clock.advance(ms)
        })
        const everything = Promise.all([...lives, ...time])
        await scheduler.waitFor(everything)
        const { inFlightRequests, committedTokens, queueDepth } = (await admission.status()).get('lane')!
        assert.deepEqual([inFlightRequests, committedTokens, queueDepth], [0, 0, 0])
      },
    )
    await fc.assert(
      property.afterEach(() => mock.timers.reset()),
      { numRuns: runLength(100, 300) },
    )
  })
})

const mutations: readonly Mutation[] = [
  {
    name: 'a later arrival that fits overtakes callers that have not been notified yet',
    find: '&& !outbox.isEmpty()',
    replace: '&& false',
  },
  {
    name: 'a caller that has left is still notified',
    find: 'entry.decided = undefined\n      lane.leave',
    replace: 'lane.leave',
  },
  {
    name: 'callers after the first slice are never notified',
    file: 'lane-adapter.ts',
    find: 'else setImmediate(deliverTurn)',
    replace: '',
  },
  {
    name: 'a caller that fails keeps its place',
    file: 'lane-adapter.ts',
    find: 'this.leave()\n      throw error',
    replace: 'throw error',
  },
  {
    name: 'one caller that fails prevents the notification of others',
    file: 'lane-adapter.ts',
    find: 'queueMicrotask(() => {\n          throw error\n        })',
    replace: 'throw error',
  },
  {
    name: 'the timer is not set for an earlier deadline',
    file: 'lane-adapter.ts',
    find: 'if (deadlineMs >= setForMs) return',
    replace: 'if (setForMs !== Infinity) return',
  },
  {
    name: 'the timer fires only once',
    file: 'lane-adapter.ts',
    find: 'setForMs = Infinity\n    lane.expire',
    replace: 'lane.expire',
  },
  {
    name: 'the timer is set for the deadline as if it were a delay',
    file: 'lane-adapter.ts',
    find: 'deadlineMs - clock.monotonic()',
    replace: 'deadlineMs',
  },
  {
    name: 'callers that expired are not notified',
    file: 'lane-adapter.ts',
    find: 'lane.expire(clock.monotonic())\n    settled()',
    replace: 'lane.expire(clock.monotonic())',
  },
  {
    name: 'the next caller is not notified when another leaves',
    find: 'lane.leave(entry, clock.monotonic())\n      settled()',
    replace: 'lane.leave(entry, clock.monotonic())',
  },
  {
    name: 'callers that fit wider limits are not notified',
    find: 'lane.setLimits(limits, clock.monotonic())\n      settled()',
    replace: 'lane.setLimits(limits, clock.monotonic())',
  },
]

describe('a broken in-memory admission is caught', () => {
  const source = new URL('../../src/queue/memory.ts', import.meta.url)
  const mutants = mutantsOf<{ memoryAdmission: typeof memoryAdmission }>(source)
  const repeatable = { numRuns: runLength(150, 500), seed: 1, endOnFailure: true }
  after(mutants.remove)

  it('an unbroken copy passes', async () => {
    await checkInterleavings((await mutants.load()).memoryAdmission, repeatable)
  })

  for (const mutation of mutations) {
    it(mutation.name, async () => {
      const mutant = await mutants.load(mutation)
      await assert.rejects(checkInterleavings(mutant.memoryAdmission, repeatable))
    })
  }
})
