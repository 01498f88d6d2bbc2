import assert from 'node:assert/strict'
import { after, before, describe, it, type TestContext } from 'node:test'
import { sydneyDayPeriod, sydneyMonth } from '../../src/shared/money/sydney-time.ts'
import type { SpendLimit, Workspace } from '../../src/workspaces/workspace.ts'
import type { SpendingKey } from '../../src/workspaces/spend-limits/spending.ts'
import type { UsageStore } from '../../src/billing/usage/usage-store.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { spendingAdapters } from '../support/spending-adapters.ts'
import { eventually } from '../support/waiting.ts'

const refused = { code: 'spend_limit_exceeded', status: 402 }
/** An amount with more digits than a number has. */
const LARGE = 900_000_000_000_000_001n

/** What every adapter of `Spending` promises to its callers. */
for (const adapter of spendingAdapters) {
  describe(`spend limits in ${adapter.name}`, () => {
    before(() => adapter.start())
    after(() => adapter.stop())

    /** A workspace of its own, and what the ledger has of it by month. */
    async function till(t: TestContext, limit: SpendLimit | null, spent: bigint | ((from: number) => bigint) = 0n) {
      const id = `ws_${crypto.randomUUID()}`
      let workspace = { id, name: 'acme', spendLimit: limit } as Workspace
      const stage = { now: systemClock.now(), reached: [] as bigint[] }
      const sum = (from: number): bigint => (typeof spent === 'bigint' ? spent : spent(from))
      const store = {
        usageSums: async ({ from }: { from: number }) => [{ group: id, amount: sum(from) }],
        usageTotal: async ({ from }: { from: number }) => ({ amount: sum(from) }),
      } as unknown as UsageStore
      const spending = await adapter.open({
        store,
        clock: { ...systemClock, now: () => stage.now },
        workspace: () => workspace,
        limitReached: (amount) => stage.reached.push(amount),
      })
      t.after(() => spending.close())
      return {
        stage,
        hold: (most: bigint, key?: SpendingKey) => spending.hold(workspace, most, key),
        spentByKey: spending.spentByKey,
        headers: () => spending.headers(workspace),
        setLimit: (spendLimit: SpendLimit | null) => void (workspace = { ...workspace, spendLimit }),
        /** Others may need a moment to hear of what was settled. */
        hasRoom: (most: bigint, key?: SpendingKey) =>
          eventually(`there is room for ${most}`, async () => {
            const hold = await spending.hold(workspace, most, key).catch(() => undefined)
            hold?.settle(0n)
            return hold !== undefined
          }),
      }
    }

    it('reserves up to the limit, and not one unit more', async (t) => {
      const { hold } = await till(t, { amount: LARGE, isSoft: false }, LARGE - 100n)
      await hold(60n)
      await assert.rejects(hold(41n), refused)
      await hold(40n)
      await assert.rejects(hold(1n), refused)
    })

    it('frees what a request did not cost, and counts what it did', async (t) => {
      const { hold, hasRoom } = await till(t, { amount: 100n, isSoft: false })
      const first = await hold(100n)
      first.settle(30n)
      first.settle(90n)
      await hasRoom(70n)
      await assert.rejects(hold(71n), refused)
    })

    it('raises a reservation, or leaves it unchanged', async (t) => {
      const { hold, hasRoom } = await till(t, { amount: 100n, isSoft: false })
      const first = await hold(10n)
      const second = await hold(40n)
      await assert.rejects(first.raise(61n), { ...refused, message: /may cost up to A\$0\.000000000061\./ })
      await first.raise(60n)
      await first.raise(20n)
      await assert.rejects(hold(1n), refused)
      first.settle(60n)
      await first.raise(1000n)
      second.settle(0n)
      await hasRoom(40n)
    })

    it('reserves for only as many concurrent requests as there is room for', async (t) => {
      const { hold } = await till(t, { amount: 100n, isSoft: false })
      const outcomes = await Promise.allSettled(Array.from({ length: 50 }, () => hold(7n)))
      assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 14)
    })

    it('refuses nothing with a soft limit or none, and reports once that it is reached', async (t) => {
      const { hold, headers, setLimit, stage } = await till(t, { amount: 10_000_000_000n, isSoft: true })
      for (let request = 0; request < 3; request += 1) (await hold(10n ** 15n)).settle(10_000_000_000n)
      await eventually('it shows', () => headers()['X-Spend-Alert'] === 'soft limit reached')
      assert.deepEqual([headers()['X-Spend-Limit'], headers()['X-Spend-Used']], ['0.01', '0.03'])
      await eventually('it is reported', () => stage.reached.length > 0)
      ;(await hold(1n)).settle(1n)
      assert.equal(stage.reached.length, 1)
      setLimit(null)
      ;(await hold(10n ** 18n)).settle(0n)
      assert.deepEqual(headers(), {})
    })

    it('reports a limit when its last unit is spent, and not before', async (t) => {
      const { hold, hasRoom, stage } = await till(t, { amount: 100n, isSoft: false })
      ;(await hold(99n)).settle(99n)
      await hasRoom(1n)
      await assert.rejects(hold(2n), refused)
      assert.deepEqual(stage.reached, [])
      ;(await hold(1n)).settle(1n)
      await eventually('it is reported', () => stage.reached.length > 0)
      assert.deepEqual(stage.reached, [100n])
    })

    it('counts a request in the month of its row, which may be over when the row is durable', async (t) => {
      const { to } = sydneyMonth(Date.UTC(2026, 10, 15))
      const { hold, hasRoom, stage } = await till(t, { amount: 100n, isSoft: false })
      stage.now = to - 1
      const [early, late] = [await hold(30n), await hold(20n)]
      stage.now = to
      await hasRoom(50n)
      early.settle(30n, to - 1)
      await hasRoom(80n)
      late.settle(20n, to)
      await hasRoom(80n)
      await assert.rejects(hold(81n), refused)
    })

    it('starts again with each month in Sydney, including running requests and what the month already has', async (t) => {
      const { from, to } = sydneyMonth(Date.UTC(2026, 10, 15))
      const { hold, hasRoom, stage } = await till(t, { amount: 100n, isSoft: false }, (at) => (at === from ? 60n : 5n))
      stage.now = to - 1
      const running = await hold(40n)
      await assert.rejects(hold(1n), refused)
      stage.now = to
      await hasRoom(55n)
      await assert.rejects(hold(56n), refused)
      running.settle(40n)
      await hasRoom(55n)
      await assert.rejects(hold(56n), refused)
    })

    it('keeps the limits of a key to the last unit, within the limit of its workspace, and names the one without room', async (t) => {
      const { hold } = await till(t, { amount: 100n, isSoft: false })
      const [one, other] = [`key_${crypto.randomUUID()}`, `key_${crypto.randomUUID()}`]
      const key = { id: one, perDay: 30n, perMonth: 50n }
      await hold(30n, key)
      await assert.rejects(hold(1n, key), { ...refused, message: /^This API key's spend limit for this day is/ })
      await hold(20n, { id: one, perMonth: 50n })
      await assert.rejects(hold(1n, { id: one, perMonth: 50n }), {
        ...refused,
        message: /^This API key's spend limit for this month is A\$0\.00000000005 .* may cost up to A\$0\.00000000005,/,
      })
      // What a key could not have takes nothing from the workspace.
      await hold(50n, { id: other, perDay: 60n })
      await assert.rejects(hold(1n, { id: other, perDay: 60n }), {
        ...refused,
        message: /^The workspace's spend limit/,
      })
    })

    it('frees and raises what a key holds, and counts what it spent', async (t) => {
      const { hold, hasRoom, spentByKey } = await till(t, null)
      const key = { id: `key_${crypto.randomUUID()}`, perDay: 100n }
      const first = await hold(40n, key)
      await assert.rejects(first.raise(101n), refused)
      await first.raise(100n)
      await assert.rejects(hold(1n, key), refused)
      first.settle(70n)
      await hasRoom(30n, key)
      await assert.rejects(hold(31n, key), refused)
      assert.equal((await spentByKey({ id: key.id })).day, undefined)
    })

    it('reserves for only as many concurrent requests of a key as there is room for', async (t) => {
      const { hold } = await till(t, { amount: 10_000n, isSoft: false })
      const key = { id: `key_${crypto.randomUUID()}`, perDay: 200n, perMonth: 100n }
      const outcomes = await Promise.allSettled(Array.from({ length: 50 }, () => hold(7n, key)))
      assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 14)
    })

    it('starts the limits of a key again with each day and month in Sydney, including what runs', async (t) => {
      const lastDay = sydneyDayPeriod(sydneyMonth(Date.UTC(2026, 10, 15)).to - 1)
      const spent = (from: number): bigint => (from === lastDay.to ? 5n : 0n)
      const { hold, hasRoom, stage } = await till(t, null, spent)
      const key = { id: `key_${crypto.randomUUID()}`, perDay: 60n, perMonth: 100n }
      stage.now = lastDay.from - 1
      ;(await hold(60n, key)).settle(60n, lastDay.from - 1)
      await assert.rejects(hold(1n, key), { ...refused, message: /for this day is/ })
      stage.now = lastDay.from
      await hasRoom(40n, key)
      await assert.rejects(hold(41n, key), { ...refused, message: /for this month is/ })
      const running = await hold(40n, key)
      stage.now = lastDay.to
      await hasRoom(15n, key)
      await assert.rejects(hold(16n, key), { ...refused, message: /for this day is/ })
      running.settle(30n, lastDay.to - 1)
      await hasRoom(55n, key)
      await assert.rejects(hold(56n, key), { ...refused, message: /for this day is/ })
    })

    it('counts a request that ran when the limit of its key was set', async (t) => {
      const { hold, hasRoom } = await till(t, null)
      const id = `key_${crypto.randomUUID()}`
      const running = await hold(80n, { id })
      const key = { id, perMonth: 100n }
      await hasRoom(100n, key)
      running.settle(70n)
      await hasRoom(30n, key)
      await assert.rejects(hold(31n, key), refused)
    })
  })
}
