import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LaneLimits } from '../../src/queue/lane.ts'
import type { Ticket } from '../../src/queue/admission.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { settledEpoch, testReplica, type TestReplica } from '../support/redis-replica.ts'
import { eventually } from '../support/waiting.ts'

const limits: LaneLimits = { tokenBudget: 1000, maxConcurrentRequests: 8, maxQueueDepth: 100, maxWaitMs: 60_000 }
/** Long enough that a busy machine notices in time that Redis refuses connections: without that proof no replica keeps serving. */
const LEASE_MS = 3000

/** Callers that come again and again at several replicas, and an engine that counts them. */
function load(replicas: readonly TestReplica[], lane: string, callers: number) {
  const figures = { atWork: 0, worst: 0, served: 0, refused: 0 }
  const servedBy = new Map<TestReplica, number>()
  const over = new AbortController()

  function begun(): void {
    figures.atWork += 1
    figures.worst = Math.max(figures.worst, figures.atWork)
  }

  async function live(it: TestReplica): Promise<void> {
    while (!over.signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>()
      it.admission.enter({ lane, workspace: 'acme', cost: 10 }, (decision, ticket) => {
        if (decision.kind !== 'admitted') {
          figures.refused += 1
          return resolve()
        }
        begun()
        setTimeout(() => {
          figures.atWork -= 1
          figures.served += 1
          servedBy.set(it, (servedBy.get(it) ?? 0) + 1)
          ticket.leave()
          resolve()
        }, 60)
      })
      await promise
      await sleep(1)
    }
  }
  const lives = Array.from({ length: callers }, (_, caller) => live(replicas[caller % replicas.length]!))
  return {
    figures,
    servedBy,
    /** Resolves when every replica has one more at work; the returned function ends these. */
    async hold(): Promise<() => void> {
      const tickets = await Promise.all(
        replicas.map((it) => {
          const { promise, resolve } = Promise.withResolvers<Ticket>()
          it.admission.enter({ lane, workspace: 'acme', cost: 10 }, ({ kind }, ticket) => {
            assert.equal(kind, 'admitted')
            begun()
            resolve(ticket)
          })
          return promise
        }),
      )
      return () => {
        figures.atWork -= tickets.length
        for (const ticket of tickets) ticket.leave()
      }
    },
    async end() {
      over.abort()
      for (const { admission } of replicas) admission.close()
      await Promise.all(lives)
    },
  }
}

describe('while Redis is unreachable', () => {
  let server: RedisServer
  let replicas: TestReplica[]
  const lane = 'shared lane'

  beforeEach(async () => {
    server = await startRedis()
    replicas = Array.from({ length: 4 }, () => testReplica(server.url, { leaseMs: LEASE_MS }))
    for (const { admission } of replicas) admission.setLanes(new Map([[lane, limits]]))
    await settledEpoch(replicas[0]!)
    await allAre('joined')
  })
  afterEach(async () => {
    for (const replica of replicas) await replica.vanish()
    await server.remove()
  })

  function allAre(state: string): Promise<void> {
    return eventually(`all are ${state}`, () => replicas.every(({ admission }) => admission.state() === state))
  }

  const figures = async () => {
    const it = (await replicas[0]!.admission.status()).get(lane)!
    return [it.inFlightRequests, it.committedTokens, it.queueDepth].join()
  }

  for (const isEmpty of [true, false]) {
    it(`[Q1] all replicas keep serving within the whole limit, and Redis returns ${isEmpty ? 'empty' : 'with old data'}`, async (t) => {
      const { figures: seen, hold, end } = load(replicas, lane, 40)
      t.after(end)
      await eventually('requests are served', () => seen.served > 60)
      if (!isEmpty) await server.save()
      // They continue with what they have in flight. Short requests may all be over before a busy machine notices the loss.
      const release = await hold()
      await server.kill()
      await allAre('apart')
      release()
      const before = seen.served
      await eventually('requests are served without Redis', () => seen.served > before + 40)
      await server.start()
      await allAre('joined')
      const after = seen.served
      await eventually('requests are served again', () => seen.served > after + 40)
      assert.equal(seen.refused, 0)
      await end()
      assert.equal(seen.worst <= limits.maxConcurrentRequests, true, `${seen.worst} at once`)
      await eventually('all is free', async () => (await figures()) === '0,0,0')
      assert.ok(new Set(replicas.map(({ log }) => log.at(-1))).size === 1, 'all are in the same epoch')
    })
  }

  it('[Q1] an idle service uses what each replica was promised', async (t) => {
    await sleep(LEASE_MS / 2)
    await server.kill()
    await allAre('apart')
    const { figures: seen, servedBy, end } = load(replicas, lane, 40)
    t.after(end)
    await eventually('every replica serves', () => servedBy.size === 4)
    await end()
    assert.ok(seen.worst <= limits.maxConcurrentRequests, `${seen.worst} at once`)
    await server.start()
  })

  it('[Q1] requests in flight are reported again before any request is admitted', async () => {
    const [holder, other] = replicas as [TestReplica, TestReplica]
    const tickets = Array.from({ length: 8 }, () =>
      holder.admission.enter({ lane, workspace: 'acme', cost: 1 }, () => {}),
    )
    await eventually('all is taken', async () => (await figures()) === '8,8,0')
    await server.kill()
    await allAre('apart')
    const decided: string[] = []
    const waiting = other.admission.enter({ lane, workspace: 'acme', cost: 1 }, ({ kind }) => decided.push(kind))
    await server.start()
    await allAre('joined')
    assert.equal(await figures(), '8,8,1')
    assert.deepEqual(decided, [])
    tickets[0]?.leave()
    await eventually('the next is admitted', () => decided.join() === 'admitted')
    waiting.leave()
  })

  it('[Q1] a replica that cannot tell whether Redis is down stops when its lease ends', async () => {
    server.signal('SIGSTOP')
    await allAre('stopped')
    const decision = await new Promise(
      (resolve) => void replicas[0]!.admission.enter({ lane, workspace: 'acme', cost: 1 }, resolve),
    )
    assert.deepEqual(decision, { kind: 'unavailable' })
    server.signal('SIGCONT')
    await allAre('joined')
  })
})
