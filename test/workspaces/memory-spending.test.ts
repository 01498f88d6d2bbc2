import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { sydneyDayPeriod, sydneyMonth } from '../../src/shared/money/sydney-time.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import type { UsageStore } from '../../src/billing/usage/usage-store.ts'
import type { SpendingHold } from '../../src/workspaces/spend-limits/spending.ts'
import { memorySpending } from '../../src/workspaces/spend-limits/memory.ts'
import { turn } from '../support/hand-clock.ts'

/** The exact orders of events around the beginning of a month. test/simulation/spending/months.test.ts has the others. */
describe('spending in memory, when a month begins', () => {
  const month = sydneyMonth(Date.UTC(2026, 10, 15))
  const next = sydneyMonth(month.to)
  const later = sydneyMonth(next.to)
  const limited = { id: 'ws', name: 'acme', spendLimit: { amount: 100n, isSoft: false } } as Workspace
  const unlimited = { ...limited, id: 'other', spendLimit: null } as Workspace

  let now: number
  /** What the ledger has, by month. */
  let ledger: Map<number, bigint>
  /** Reads that are under way. */
  let reads: { readonly month: number; answer(): void; fail(): void }[]
  beforeEach(() => {
    now = month.to - 1
    ledger = new Map([[month.from, 90n]])
    reads = []
  })

  const store = {
    async usageSums({ from }: { from: number }) {
      await new Promise<void>((answer, fail) => {
        reads.push({ month: from, answer, fail: () => fail(new Error('the database is away')) })
      })
      return [{ group: 'ws', amount: ledger.get(from) ?? 0n }]
    },
  } as unknown as UsageStore

  async function take(at: number, how: 'answer' | 'fail' = 'answer'): Promise<void> {
    const index = reads.findIndex((it) => it.month === at)
    assert.notEqual(index, -1, `${sydneyMonth(at).name} is being read`)
    reads.splice(index, 1)[0]![how]()
    await turn()
  }

  async function opened() {
    const opening = memorySpending(store, { now: () => now, monotonic: () => 0 }, { limitReached() {} })
    await take(month.from)
    return opening
  }

  it('has read the month in advance, so that its first rows count once', async () => {
    const spending = await opened()
    await take(next.from)
    const running = await spending.hold(limited, 10n)
    now = month.to
    ledger.set(next.from, 10n)
    running.settle(10n, now)
    assert.equal(await spending.spent('ws'), 10n)
    assert.deepEqual(
      reads.map((it) => it.month),
      [later.from],
      'the month after it is read next',
    )
    await spending.hold(limited, 90n)
    await assert.rejects(spending.hold(limited, 1n), { code: 'spend_limit_exceeded' })
  })

  it('leaves a row to a read that has not started', async () => {
    const spending = await opened()
    const running = await spending.hold(limited, 10n)
    await take(next.from, 'fail')
    now = month.to
    ledger.set(next.from, 10n)
    running.settle(10n, now)
    const spent = spending.spent('ws')
    await take(next.from)
    assert.equal(await spent, 10n)
  })

  it('assigns sums to their month, even if it ends while they are read', async () => {
    const spending = await opened()
    await take(next.from)
    now = next.to
    const waiting = spending.hold(limited, 60n)
    ledger.set(later.from, 50n).set(later.to, 30n)
    now = later.to
    await take(later.from)
    await take(later.to)
    await waiting
    await assert.rejects(spending.hold(limited, 11n), { code: 'spend_limit_exceeded' })
    await spending.hold(limited, 10n)
    now = later.to - 1
    assert.equal(await spending.spent('ws'), 50n)
  })

  it('shows the month that begins while the sums of the one before are read', async () => {
    const spending = await opened()
    await take(next.from, 'fail')
    now = month.to
    ledger.set(next.from, 90n)
    const spent = spending.spent('ws')
    await turn()
    now = next.to
    await take(next.from)
    const others = reads.map((it) => it.month)
    for (const other of others) await take(other)
    assert.equal(await spent, 0n)
  })

  it('forgets what was settled during a failed read, because the next read includes it', async () => {
    const spending = await opened()
    const running = await spending.hold(limited, 10n)
    now = month.to
    ledger.set(next.from, 10n)
    running.settle(10n, now)
    await take(next.from, 'fail')
    const spent = spending.spent('ws')
    await take(next.from)
    assert.equal(await spent, 10n)
  })

  it('refuses with 503 while the sums cannot be read, and only workspaces with a hard limit wait for them', async () => {
    const spending = await opened()
    await take(next.from, 'fail')
    now = month.to
    const refused = assert.rejects(spending.hold(limited, 1n), { code: 'service_unavailable', status: 503 })
    await spending.hold(unlimited, 1n)
    await spending.hold({ ...limited, spendLimit: { amount: 0n, isSoft: true } }, 1n)
    await take(next.from, 'fail')
    await refused
    const again = spending.hold(limited, 98n)
    await take(next.from)
    await again
  })

  it('retries the next month until it is read, one read at a time', async () => {
    const spending = await opened()
    await take(next.from, 'fail')
    await spending.hold(limited, 1n)
    await spending.hold(limited, 1n)
    assert.deepEqual(
      reads.map((it) => it.month),
      [next.from],
    )
    await take(next.from)
    await spending.hold(limited, 1n)
    assert.deepEqual(reads, [])
  })

  it('keeps the previous month, in case the clock is set back, and no older one', async () => {
    const spending = await opened()
    await take(next.from)
    ;(await spending.hold(limited, 10n)).settle(10n)
    now = month.to
    assert.equal(await spending.spent('ws'), 0n)
    await take(later.from)
    now = month.to - 1
    assert.equal(await spending.spent('ws'), 100n)
    assert.deepEqual(reads, [])
    now = next.to
    spending.headers(limited)
    now = month.to - 1
    const spent = spending.spent('ws')
    ledger.set(month.from, 95n)
    await take(month.from)
    assert.equal(await spent, 95n)
  })

  it('shows what is spent, and nothing without a limit; reports a limit once for each amount', async () => {
    const cent = 10_000_000_000n
    ledger.set(month.from, 3n * cent)
    const reached: bigint[] = []
    const opening = memorySpending(
      store,
      { now: () => now, monotonic: () => 0 },
      { limitReached: (_workspace, spent) => reached.push(spent) },
    )
    await take(month.from)
    const spending = await opening
    const soft = (amount: bigint): Workspace => ({ ...limited, spendLimit: { amount, isSoft: true } })
    assert.deepEqual(spending.headers(soft(4n * cent)), { 'X-Spend-Limit': '0.04', 'X-Spend-Used': '0.03' })
    assert.deepEqual(spending.headers(unlimited), {})
    ;(await spending.hold(unlimited, 1n)).settle(cent)
    ;(await spending.hold(soft(4n * cent), 1n)).settle(cent - 1n)
    assert.deepEqual(reached, [])
    for (let request = 0; request < 2; request += 1) (await spending.hold(soft(4n * cent), 1n)).settle(1n)
    ;(await spending.hold(soft(2n * cent), 1n)).settle(1n)
    assert.deepEqual(reached, [4n * cent, 4n * cent + 2n])
    for (const [amount, alert] of [
      [2n * cent, 'soft limit reached'],
      [4n * cent + 2n, 'soft limit reached'],
      [4n * cent + 3n, undefined],
    ] as const) {
      assert.equal(spending.headers(soft(amount))['X-Spend-Alert'], alert)
    }
    assert.equal(
      spending.headers({ ...limited, spendLimit: { amount: 2n * cent, isSoft: false } })['X-Spend-Alert'],
      'limit reached',
    )
    assert.deepEqual([await spending.spent('other'), await spending.spent('nobody')], [cent, 0n])
  })

  it('frees a reservation of the previous month when the request ends in this one', async () => {
    const spending = await opened()
    await take(next.from)
    const running = await spending.hold(limited, 10n)
    now = month.to
    await assert.rejects(spending.hold(limited, 91n), { code: 'spend_limit_exceeded' })
    running.settle(0n)
    running.settle(50n)
    await running.raise(100n)
    await spending.hold(limited, 100n)
  })
})

describe('the accounts of keys in memory', () => {
  const now = Date.UTC(2026, 10, 15)
  const workspace = { id: 'ws', name: 'acme', spendLimit: null } as Workspace

  /** `reads` are the keys whose sum of this day was read, in order. */
  async function opened() {
    const ledger = new Map<string, bigint>()
    const reads: string[] = []
    const store = {
      usageSums: async () => [],
      async usageTotal({ keyIds: [id = ''] = [], from }: { keyIds?: readonly string[]; from: number }) {
        const isToday = from === sydneyDayPeriod(now).from
        if (isToday) reads.push(id)
        return { amount: isToday ? (ledger.get(id) ?? 0n) : 0n }
      },
    } as unknown as UsageStore
    const spending = await memorySpending(store, { now: () => now, monotonic: () => 0 }, { limitReached() {} })
    return {
      reads,
      hold: (id: string, most: bigint) => spending.hold(workspace, most, { id, perDay: 100n }),
      spentByKey: (id: string) => spending.spentByKey({ id, perDay: 100n }),
      /** Settles a request of another key each time, as the ledger would have it. */
      async useOthers(count: number): Promise<void> {
        for (let index = 0; index < count; index += 1) {
          const running = await spending.hold(workspace, 1n, { id: `other ${index}`, perDay: 100n })
          running.settle(1n)
        }
      },
      settle(id: string, running: SpendingHold, amount: bigint): void {
        ledger.set(id, (ledger.get(id) ?? 0n) + amount)
        running.settle(amount)
      },
    }
  }

  it('are limited by the day and by the month, each by its own amount', async () => {
    const store = {
      usageSums: async () => [],
      usageTotal: async ({ from }: { from: number }) => ({ amount: from === sydneyDayPeriod(now).from ? 10n : 40n }),
    } as unknown as UsageStore
    const spending = await memorySpending(store, { now: () => now, monotonic: () => 0 }, { limitReached() {} })
    const hold = (most: bigint, limits: object) => spending.hold(workspace, most, { id: 'a', ...limits })
    await hold(10n, { perDay: 20n, perMonth: 50n })
    await assert.rejects(hold(1n, { perDay: 20n, perMonth: 60n }), { code: 'spend_limit_exceeded', message: /\bday\b/ })
    await assert.rejects(hold(1n, { perMonth: 50n }), { code: 'spend_limit_exceeded', message: /\bmonth\b/ })
    await hold(1n, { perDay: 21n, perMonth: 51n })
  })

  it('are forgotten when thousands of other keys were used since, and read again with the right sums', async () => {
    const { reads, hold, settle, spentByKey, useOthers } = await opened()
    settle('a', await hold('a', 60n), 50n)
    await useOthers(1500)
    await assert.rejects(hold('a', 51n), { code: 'spend_limit_exceeded' })
    assert.equal(reads.filter((id) => id === 'a').length, 1, 'not after a few')
    await useOthers(6000)
    await assert.rejects(hold('a', 51n), { code: 'spend_limit_exceeded' })
    assert.equal(reads.filter((id) => id === 'a').length, 2, 'forgotten, also when its last request was refused')
    settle('a', await hold('a', 50n), 50n)
    assert.deepEqual(await spentByKey('a'), { day: 100n, month: undefined })
    await useOthers(6000)
    assert.deepEqual(await spentByKey('a'), { day: 100n, month: undefined })
    assert.equal(reads.filter((id) => id === 'a').length, 3)
    await useOthers(6000)
    await spentByKey('a')
    assert.equal(reads.filter((id) => id === 'a').length, 4, 'also when it was only shown')
  })

  it('are kept while a request runs, even one that holds nothing', async () => {
    const { reads, hold, settle, useOthers } = await opened()
    const [large, free, also] = [await hold('a', 60n), await hold('b', 0n), await hold('a', 1n)]
    also.settle(0n)
    await useOthers(6000)
    await assert.rejects(hold('a', 41n), { code: 'spend_limit_exceeded' })
    await hold('b', 100n)
    await assert.rejects(free.raise(1n), { code: 'spend_limit_exceeded' })
    settle('a', large, 30n)
    settle('a', large, 30n)
    await hold('a', 70n)
    await assert.rejects(hold('a', 1n), { code: 'spend_limit_exceeded' })
    assert.deepEqual(
      ['a', 'b'].map((key) => reads.filter((id) => id === key).length),
      [1, 1],
    )
  })
})
