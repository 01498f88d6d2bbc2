import assert from 'node:assert/strict'
import { after, before, describe, it, type TestContext } from 'node:test'
import type { LaneLimits } from '../../src/queue/lane.ts'
import type { Decision, Ticket } from '../../src/queue/admission.ts'
import { admissionAdapters } from '../support/admission-adapters.ts'
import { eventually } from '../support/waiting.ts'

const limits: LaneLimits = { tokenBudget: 1000, maxConcurrentRequests: 1, maxQueueDepth: 1000, maxWaitMs: 60_000 }
const FREE = [0, 0, 0]

/** The contract of every adapter of `Admission`. Decisions may be asynchronous. */
for (const adapter of admissionAdapters) {
  describe(`admission in ${adapter.name}`, () => {
    let lanes = 0
    before(() => adapter.start())
    after(() => adapter.stop())

    /** A new lane, and the decisions its callers have received, in order. */
    async function newLane(t: TestContext, changes: Partial<LaneLimits> = {}) {
      const { admission, isReady, close } = adapter.open()
      t.after(close)
      const lane = `lane ${++lanes}`
      const change = (next: Partial<LaneLimits>): void => admission.setLanes(new Map([[lane, { ...limits, ...next }]]))
      change(changes)
      await eventually('the lane is open', isReady)
      const received: string[] = []
      const figures = async () => {
        const status = (await admission.status()).get(lane)
        return status && [status.inFlightRequests, status.committedTokens, status.queueDepth]
      }
      return {
        admission,
        lane,
        change,
        received,
        figures,
        enter: (name: string, cost = 1, workspace = 'acme'): Ticket =>
          admission.enter({ lane, workspace, cost }, ({ kind }) => received.push(`${name} ${kind}`)),
        receives: (...expected: string[]) =>
          eventually(
            `${expected.join(', ')}; received: ${received.join(', ')}`,
            () => received.join() === expected.join(),
          ),
        holds: (...expected: number[]) =>
          eventually(expected.join(), async () => (await figures())?.join() === expected.join()),
      }
    }

    it('[Q1] admits below both limits, and charges the cost', async (t) => {
      const { enter, receives, holds } = await newLane(t)
      enter('ann', 300)
      await receives('ann admitted')
      await holds(1, 300, 0)
    })

    it('refuses at once what a workspace has above its most in the lane, waiting and in flight together', async (t) => {
      const { enter, receives, change } = await newLane(t, { maxRequestsPerWorkspace: 2 })
      const ann = enter('ann')
      await receives('ann admitted')
      enter('bob')
      enter('cat')
      await receives('ann admitted', 'cat workspace_queue_full')
      const dan = enter('dan', 1, 'bolt')
      ann.leave()
      await receives('ann admitted', 'cat workspace_queue_full', 'bob admitted')
      dan.leave()
      change({ maxRequestsPerWorkspace: 1 })
      enter('eve')
      await receives('ann admitted', 'cat workspace_queue_full', 'bob admitted', 'eve workspace_queue_full')
      change({ maxConcurrentRequests: 2 })
      enter('fay')
      await receives(
        'ann admitted',
        'cat workspace_queue_full',
        'bob admitted',
        'eve workspace_queue_full',
        'fay admitted',
      )
    })

    it('reports how long the head of the queue has waited', async (t) => {
      const { admission, lane, enter, receives } = await newLane(t)
      const oldest = async (): Promise<number> => (await admission.status()).get(lane)?.oldestWaitMs ?? NaN
      const ann = enter('ann')
      await receives('ann admitted')
      assert.equal(await oldest(), 0, 'the queue is empty')
      const bob = enter('bob')
      await eventually('bob has waited', async () => (await oldest()) > 20)
      enter('cid')
      const before = await oldest()
      await eventually('it is of the oldest', async () => (await oldest()) > before)
      bob.leave()
      await eventually('bob has left', async () => (await oldest()) < before)
      ann.leave()
      await receives('ann admitted', 'cid admitted')
      await eventually('the queue is empty', async () => (await oldest()) === 0)
    })

    it('[Q4][Q7] refuses a request when the queue is full, or when it is larger than the budget', async (t) => {
      const { enter, receives, holds } = await newLane(t, { maxQueueDepth: 0 })
      enter('ann')
      enter('bob')
      enter('large', 1001)
      await receives('ann admitted', 'bob queue_full', 'large too_large')
      await holds(1, 1, 0)
    })

    it('[Q6] refuses at once if the maximum wait is 0', async (t) => {
      const { enter, receives } = await newLane(t, { maxWaitMs: 0 })
      enter('ann')
      enter('bob')
      await receives('ann admitted', 'bob overloaded')
    })

    it('[Q2][Q5] admits in the order of arrival, and no request past a head that does not fit', async (t) => {
      const { enter, received, receives, holds } = await newLane(t, { maxConcurrentRequests: 3 })
      const ann = enter('ann', 600)
      enter('large', 500)
      enter('small', 1)
      await receives('ann admitted')
      await holds(1, 600, 2)
      ann.leave()
      await receives('ann admitted', 'large admitted', 'small admitted')
      assert.equal(received.length, 3)
      await holds(2, 501, 0)
    })

    it('[Q5] reports how long a caller waited', async (t) => {
      const { admission, lane, enter, holds } = await newLane(t)
      const ann = enter('ann')
      const enteredAt = performance.now()
      const waited = new Promise<Decision>(
        (resolve) => void admission.enter({ lane, workspace: 'acme', cost: 1 }, resolve),
      )
      const enteredBy = performance.now()
      await holds(1, 1, 1)
      const leftAt = performance.now()
      ann.leave()
      const decision = await waited
      assert.ok(decision.kind === 'admitted')
      assert.ok(decision.waitMs >= leftAt - enteredBy, `${decision.waitMs}`)
      assert.ok(decision.waitMs <= performance.now() - enteredAt + 1, `${decision.waitMs}`)
    })

    it('[Q6] refuses after the maximum wait, and not earlier', async (t) => {
      const { admission, lane, enter, receives, holds } = await newLane(t, { maxWaitMs: 120 })
      enter('ann')
      await receives('ann admitted')
      const enteredAt = performance.now()
      const decision = await new Promise<Decision>(
        (resolve) => void admission.enter({ lane, workspace: 'acme', cost: 1 }, resolve),
      )
      assert.equal(decision.kind, 'overloaded')
      assert.ok(performance.now() - enteredAt >= 119)
      await holds(1, 1, 0)
    })

    it('[Q1] returns a charge once, however often a caller leaves', async (t) => {
      const { enter, receives, holds } = await newLane(t, { maxConcurrentRequests: 2 })
      const ann = enter('ann', 10)
      enter('bob', 20)
      await receives('ann admitted', 'bob admitted')
      ann.leave()
      ann.leave()
      await holds(1, 20, 0)
    })

    it('[Q2] does not notify a caller that left the queue', async (t) => {
      const { enter, received, receives, holds } = await newLane(t)
      const ann = enter('ann')
      const bob = enter('bob')
      const cat = enter('cat')
      await holds(1, 1, 2)
      bob.leave()
      ann.leave()
      await receives('ann admitted', 'cat admitted')
      cat.leave()
      await holds(...FREE)
      assert.equal(received.length, 2)
    })

    it('[Q2] forgets a caller that leaves at once', async (t) => {
      const { enter, receives, holds } = await newLane(t)
      for (let caller = 0; caller < 20; caller += 1) enter(`guest ${caller}`).leave()
      const ann = enter('ann')
      await eventually('ann is in flight', async () => {
        await holds(1, 1, 0)
        return true
      })
      ann.leave()
      await holds(...FREE)
      await receives(
        ...(adapter.name === 'memory' ? [...Array(20).keys()].map((guest) => `guest ${guest} admitted`) : []),
        'ann admitted',
      )
    })

    it('[Q7] follows changed limits, which evict no request', async (t) => {
      const { enter, change, received, receives, holds } = await newLane(t)
      const tickets = ['ann', 'bob', 'cat', 'dan'].map((name) => enter(name, 100))
      await holds(1, 100, 3)
      change({ maxConcurrentRequests: 3 })
      await receives('ann admitted', 'bob admitted', 'cat admitted')
      change({ maxConcurrentRequests: 1, maxQueueDepth: 0 })
      await holds(3, 300, 1)
      enter('eve')
      await receives('ann admitted', 'bob admitted', 'cat admitted', 'eve queue_full')
      for (const ticket of tickets.slice(0, 2)) ticket.leave()
      await holds(1, 100, 1)
      tickets[2]?.leave()
      await eventually('dan is admitted', () => received.at(-1) === 'dan admitted')
    })

    it('[Q7] refuses a waiting request that has become larger than the budget, when its turn comes', async (t) => {
      const { enter, change, receives, holds } = await newLane(t)
      const ann = enter('ann', 100)
      enter('large', 800)
      enter('bob', 100)
      await holds(1, 100, 2)
      change({ tokenBudget: 200 })
      ann.leave()
      await receives('ann admitted', 'large too_large', 'bob admitted')
    })

    it('[Q2] serves the requests in a lane that is missing from the new set, and refuses new ones', async (t) => {
      const { admission, enter, figures, receives, holds } = await newLane(t)
      const ann = enter('ann')
      const bob = enter('bob')
      await holds(1, 1, 1)
      admission.setLanes(new Map())
      enter('cat')
      ann.leave()
      await receives('ann admitted', 'cat closed', 'bob admitted')
      bob.leave()
      assert.equal(await figures(), undefined)
    })

    it('[Q2] opens a lane again with its charges when it is added back', async (t) => {
      const { admission, enter, change, receives, holds } = await newLane(t)
      const ann = enter('ann', 5)
      await receives('ann admitted')
      admission.setLanes(new Map())
      change({})
      await holds(1, 5, 0)
      ann.leave()
      await holds(...FREE)
    })

    it('[Q5] refuses all waiting and later requests once it is closed, and lets the rest finish', async (t) => {
      const { admission, enter, receives, holds } = await newLane(t)
      const ann = enter('ann')
      enter('bob')
      await holds(1, 1, 1)
      admission.close()
      enter('cat')
      await receives('ann admitted', 'bob closed', 'cat closed')
      ann.leave()
      await holds(...FREE)
    })

    it('[Q1][Q5] frees the place of a caller whose callback throws', async (t) => {
      const { admission, lane, enter, receives, holds } = await newLane(t)
      const ann = enter('ann')
      const uncaught = new Promise<unknown>((resolve) => {
        const listeners = process.listeners('uncaughtException')
        process.removeAllListeners('uncaughtException')
        process.once('uncaughtException', (error) => {
          for (const listener of listeners) process.on('uncaughtException', listener)
          resolve(error)
        })
      })
      admission.enter({ lane, workspace: 'acme', cost: 1 }, () => {
        throw new Error('no')
      })
      enter('cat')
      await holds(1, 1, 2)
      ann.leave()
      await receives('ann admitted', 'cat admitted')
      assert.match(String(await uncaught), /no/)
      await holds(1, 1, 0)
    })

    it('[Q5] passes a place through a queue of 500, in order', async (t) => {
      const { admission, lane, enter, holds } = await newLane(t)
      const first = enter('first')
      const order: number[] = []
      const all = Array.from(
        { length: 500 },
        (_, number) =>
          new Promise<void>((resolve) => {
            admission.enter({ lane, workspace: 'acme', cost: 1 }, (_decision, ticket) => {
              order.push(number)
              ticket.leave()
              resolve()
            })
          }),
      )
      await holds(1, 1, 500)
      first.leave()
      await Promise.all(all)
      assert.deepEqual(order, [...Array(500).keys()])
      await holds(...FREE)
    })
  })
}
