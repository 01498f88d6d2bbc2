import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiError } from '../../src/shared/errors.ts'
import type { PicoAud } from '../../src/shared/money/money.ts'
import { sydneyDay } from '../../src/shared/money/sydney-time.ts'
import type { SpendingKey } from '../../src/workspaces/spend-limits/spending.ts'
import type { Store } from '../../src/store/store.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { settledEpoch } from '../support/redis-replica.ts'
import { limitedWorkspace, spendReplica, type SpendReplica } from '../support/spend-replica.ts'
import { storeAdapters, type TestDatabase } from '../support/store-adapters.ts'
import { eventually } from '../support/waiting.ts'

const CENT = 10_000_000_000n
const LEASE_MS = 1000

/** How a request was refused. */
function codeOf(attempt: Promise<unknown>): Promise<string> {
  return attempt.then(
    () => 'served',
    (error: ApiError) => error.code,
  )
}

/** A machine that is busy may lose its connection to Redis for a moment, so callers retry as the error advises. */
async function decided<Value>(attempt: () => Promise<Value>): Promise<Value> {
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if ((error as ApiError).code !== 'service_unavailable') throw error
      await sleep(20)
    }
  }
}

for (const adapter of storeAdapters) {
  describe(`a spend limit over four replicas on one ${adapter.name}`, () => {
    let server: RedisServer
    let database: TestDatabase
    let store: Store
    let replicas: SpendReplica[]

    async function start(workspace: ReturnType<typeof limitedWorkspace>, options = {}): Promise<SpendReplica[]> {
      replicas = []
      for (let index = 0; index < 4; index += 1) {
        replicas.push(await spendReplica(server.url, store, workspace, options))
      }
      await settledEpoch(replicas[0]!.replica)
      await joined()
      return replicas
    }
    const joined = (): Promise<void> =>
      eventually('all have joined', () => replicas.every(({ replica }) => replica.link.membership() !== undefined))

    beforeEach(async () => {
      server = await startRedis()
      database = await adapter.create()
      store = await database.open()
      replicas = []
    })
    afterEach(async () => {
      await Promise.all(replicas.map((it) => it.close()))
      await server.remove()
      await database.remove()
    })

    /** What all of them have settled. A row may get from a journal into the database meanwhile. */
    async function settled(workspaceId: string): Promise<PicoAud> {
      const waiting = replicas.flatMap(({ journal }) => journal)
      const stored = await store.usage({ workspaceId, from: 0, to: Number.MAX_SAFE_INTEGER, limit: 100_000 })
      const amounts = new Map([...waiting, ...stored].map(({ requestId, amount }) => [requestId, amount]))
      return [...amounts.values()].reduce((sum, amount) => sum + amount, 0n)
    }

    it('[S1] is not overdrawn by 64 parallel callers, and every cent of it can be spent', async () => {
      const limit = 1000n * CENT
      const workspace = limitedWorkspace(limit)
      await start(workspace)
      let served = 0
      async function live(caller: number): Promise<void> {
        for (let request = 0; ; request += 1) {
          const most = BigInt(1 + ((caller + request) % 9)) * CENT
          const replica = replicas[(caller + request) % 4]!
          const code = await codeOf(
            decided(() => replica.serve(most, most - BigInt(request % 2) * (CENT / 2n), sleep(2))),
          )
          if (code !== 'served') return assert.equal(code, 'spend_limit_exceeded')
          served += 1
        }
      }
      await Promise.all(Array.from({ length: 64 }, (_, caller) => live(caller)))
      const spent = await settled(workspace.current.id)
      assert.ok(spent <= limit, `${spent} of ${limit} is spent`)
      assert.ok(spent > limit - 64n * 9n * CENT && served > 100, `${spent} of ${limit} is spent by ${served} requests`)
      // Nothing runs any more, so what is left is free to the last unit, wherever it is asked for.
      const rest = limit - spent
      await eventually('the rest can be held', async () => {
        const code = await codeOf(decided(() => replicas[3]!.serve(rest, rest)))
        return code === 'served'
      })
      for (const replica of replicas)
        assert.equal(await codeOf(decided(() => replica.serve(1n, 1n))), 'spend_limit_exceeded')
      assert.equal(await settled(workspace.current.id), limit)
    })

    it('[S1] of a key is not overdrawn by 64 parallel callers, beside that of its workspace and those of other keys', async () => {
      // More than all four can ask for, so that only the limits of keys refuse.
      const workspace = limitedWorkspace(6000n * CENT)
      await start(workspace)
      const id = crypto.randomUUID()
      const keys: readonly SpendingKey[] = [
        { id: `${id} a`, perMonth: 400n * CENT, perDay: 10_000n * CENT },
        { id: `${id} b`, perMonth: 300n * CENT },
        { id: `${id} c`, perDay: 500n * CENT },
        { id: `${id} d` },
      ]
      const first = keys[0]!
      async function live(caller: number): Promise<void> {
        const key = keys[caller % 4]!
        for (let request = 0; request < 60; request += 1) {
          const most = BigInt(1 + ((caller + request) % 9)) * CENT
          const replica = replicas[(caller + request) % 4]!
          const cost = most - BigInt(request % 2) * (CENT / 2n)
          const code = await codeOf(decided(() => replica.serve(most, cost, sleep(2), key)))
          if (code !== 'served') return assert.equal(code, 'spend_limit_exceeded')
        }
      }
      await Promise.all(Array.from({ length: 64 }, (_, caller) => live(caller)))
      await Promise.all(replicas.map((it) => it.ship()))
      const rows = await store.usage({
        workspaceId: workspace.current.id,
        from: 0,
        to: Number.MAX_SAFE_INTEGER,
        limit: 100_000,
      })
      const spentBy = (keyId: string, day?: number): PicoAud =>
        rows
          .filter((row) => row.keyId === keyId && (day === undefined || sydneyDay(row.settledAt) === day))
          .reduce((sum, { amount }) => sum + amount, 0n)
      for (const { id: keyId, perMonth = 10n ** 18n, perDay = 10n ** 18n } of keys) {
        assert.ok(spentBy(keyId) <= perMonth, `${keyId} has spent ${spentBy(keyId)} of ${perMonth}`)
        for (const { settledAt } of rows) assert.ok(spentBy(keyId, sydneyDay(settledAt)) <= perDay)
      }
      const spent = spentBy(first.id)
      assert.ok(spent > 400n * CENT - 16n * 9n * CENT, `the key could spend ${spent}`)
      const rest = 400n * CENT - spent
      await eventually(
        'the rest can be held',
        async () => (await codeOf(decided(() => replicas[3]!.serve(rest, rest, undefined, first)))) === 'served',
      )
      for (const replica of replicas) {
        const code = await codeOf(decided(() => replica.serve(1n, 1n, undefined, first)))
        assert.equal(code, 'spend_limit_exceeded')
      }
    })

    it('counts what the database had before, and reports what is spent and reserved', async () => {
      const workspace = limitedWorkspace(100n * CENT)
      const earlier = await spendReplica(server.url, store, workspace)
      await settledEpoch(earlier.replica)
      await decided(() => earlier.serve(60n * CENT, 60n * CENT))
      await earlier.close()
      await server.kill()
      await server.start()
      const [one, other] = (await start(workspace)) as [SpendReplica, SpendReplica]
      const first = await decided(() => one.spending.hold(workspace.current, 30n * CENT))
      await assert.rejects(
        decided(() => other.serve(11n * CENT, 0n)),
        {
          code: 'spend_limit_exceeded',
          message: /A\$1\.00 .*A\$0\.60 is spent, running requests may cost up to A\$0\.30, .* up to A\$0\.11/,
        },
      )
      first.settle(20n * CENT)
      await eventually(
        'the rest of the hold is free',
        async () => (await codeOf(decided(() => other.serve(20n * CENT, 0n)))) === 'served',
      )
    })

    it('counts what a dead replica held until its journal is in the database', async () => {
      const workspace = limitedWorkspace(100n * CENT)
      const [dead, other] = (await start(workspace, { shipsItself: false })) as [SpendReplica, SpendReplica]
      // One request is settled in its journal, which others do not see; another one runs.
      await decided(() => dead.serve(30n * CENT, 30n * CENT))
      await decided(() => dead.spending.hold(workspace.current, 20n * CENT))
      const { length } = dead.journal
      assert.equal(length, 1)
      await dead.vanish()
      await sleep(2 * LEASE_MS)
      assert.equal(await codeOf(decided(() => other.serve(51n * CENT, 0n))), 'spend_limit_exceeded')
      assert.equal(await codeOf(decided(() => other.serve(50n * CENT, 0n))), 'served')
      // Its next start brings the journal into the database first. What ran cost nothing.
      await dead.ship()
      const successor = await spendReplica(server.url, store, workspace, { predecessor: dead.replica.name })
      replicas.push(successor)
      await eventually('it has joined', () => successor.replica.link.membership() !== undefined)
      assert.equal(await codeOf(decided(() => successor.serve(71n * CENT, 0n))), 'spend_limit_exceeded')
      assert.equal(await codeOf(decided(() => other.serve(1n * CENT, 0n))), 'served')
      await eventually('the others have let go', async () => {
        return (await codeOf(decided(() => successor.serve(70n * CENT, 70n * CENT)))) === 'served'
      })
      assert.equal(await codeOf(decided(() => other.serve(1n, 0n))), 'spend_limit_exceeded')
    })

    it('is kept while Redis is unreachable: within what was reserved, and then with 503', async () => {
      const workspace = limitedWorkspace(100n * CENT)
      const [one, other] = (await start(workspace, { shipsItself: false })) as [SpendReplica, SpendReplica]
      const hold = await decided(() => one.spending.hold(workspace.current, 40n * CENT))
      await server.kill()
      await eventually('they have noticed', () => replicas.every(({ replica }) => !replica.link.membership()))
      assert.equal(await codeOf(other.serve(1n, 1n)), 'service_unavailable')
      hold.settle(15n * CENT)
      assert.equal(await codeOf(one.serve(26n * CENT, 0n)), 'service_unavailable')
      await decided(() => one.serve(25n * CENT, 10n * CENT))
      await server.start()
      await joined()
      // Redis is empty. The replicas report the 25 cents, which the database does not have, before any request is served.
      assert.equal(await codeOf(decided(() => other.serve(76n * CENT, 0n))), 'spend_limit_exceeded')
      assert.equal(await codeOf(decided(() => other.serve(75n * CENT, 75n * CENT))), 'served')
      for (const { spending } of replicas) {
        assert.equal(await codeOf(decided(() => spending.hold(workspace.current, 1n))), 'spend_limit_exceeded')
      }
    })

    it('follows a changed limit, and a soft one that becomes hard, including requests at other replicas', async () => {
      const workspace = limitedWorkspace(10n * CENT, true)
      const [one, other] = (await start(workspace)) as [SpendReplica, SpendReplica]
      const running = await decided(() => one.spending.hold(workspace.current, 30n * CENT))
      workspace.set({ amount: 50n * CENT, isSoft: false })
      await eventually('it counts', async () => (await codeOf(decided(() => other.serve(21n * CENT, 0n)))) !== 'served')
      assert.equal(await codeOf(decided(() => other.serve(20n * CENT, 20n * CENT))), 'served')
      running.settle(30n * CENT)
      await eventually(
        'it is settled',
        async () => (await codeOf(decided(() => other.serve(1n, 0n)))) === 'spend_limit_exceeded',
      )
      workspace.set({ amount: 60n * CENT, isSoft: false })
      assert.equal(await codeOf(decided(() => one.serve(10n * CENT, 10n * CENT))), 'served')
      workspace.set({ amount: 20n * CENT, isSoft: false })
      assert.equal(await codeOf(decided(() => one.serve(1n, 0n))), 'spend_limit_exceeded')
      workspace.set(null)
      assert.equal(await codeOf(decided(() => one.serve(1000n * CENT, 0n))), 'served')
    })

    it('shows in the headers what other replicas have spent, and is reported once when it is reached', async () => {
      for (const isSoft of [false, true]) {
        const reported: PicoAud[] = []
        const workspace = limitedWorkspace(5n * CENT, isSoft)
        await start(workspace, { told: reported })
        for (const replica of replicas) await decided(() => replica.serve(1n * CENT, 1n * CENT))
        const headers = (it: SpendReplica) => JSON.stringify(it.spending.headers(workspace.current))
        const sum = '{"X-Spend-Limit":"0.05","X-Spend-Used":"0.04"}'
        for (const replica of replicas) await eventually('it sees the sum', () => headers(replica) === sum)
        await decided(() => replicas[2]!.serve(1n * CENT, 1n * CENT))
        for (const replica of replicas) {
          await eventually('it sees the alert', () => headers(replica).includes('limit reached'))
        }
        assert.deepEqual(reported, [5n * CENT])
        await eventually('the database has it', async () => {
          return (await replicas[1]!.spending.spent(workspace.current.id)) === 5n * CENT
        })
        await Promise.all(replicas.map((it) => it.close()))
      }
      replicas = []
    })
  })
}
