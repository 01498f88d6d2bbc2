import { setImmediate as turn } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { ApiError } from '../../../src/shared/errors.ts'
import type { PicoAud } from '../../../src/shared/money/money.ts'
import { sydneyDayPeriod, sydneyMonth, type CalendarPeriod } from '../../../src/shared/money/sydney-time.ts'
import { seededRandom } from '../../../src/shared/seeded-random.ts'
import type { Workspace } from '../../../src/workspaces/workspace.ts'
import type { AlarmClock } from '../../../src/shared/clock.ts'
import type { Spending, SpendingHold, SpendingKey, SpendView } from '../../../src/workspaces/spend-limits/spending.ts'
import type { UsageStore } from '../../../src/billing/usage/usage-store.ts'
import type { LinkFollower, RedisLink } from '../../../src/cluster/redis/link.ts'
import { luaBeside } from '../../../src/cluster/redis/script.ts'
import { memorySpending } from '../../../src/workspaces/spend-limits/memory.ts'
import { accountScripts, spendScripts } from '../../../src/workspaces/spend-limits/redis/account-scripts.ts'
import { redisSpending } from '../../../src/workspaces/spend-limits/redis/spending.ts'

const CENT = 10_000_000_000n
const LIMIT = 1000n * CENT
const DAY_MS = 86_400_000
/** What has the limit: a workspace for months, or a key for months or days. */
interface Limited {
  readonly workspace: Workspace
  readonly key?: SpendingKey
  periodAt(at: number): CalendarPeriod
  /** More periods than an adapter keeps, in days. */
  readonly jumpDays: number
}

const unlimited = { id: 'ws', name: 'acme', spendLimit: null } as Workspace
export const limitedSubjects = {
  workspace: {
    workspace: { ...unlimited, spendLimit: { amount: LIMIT, isSoft: false } },
    periodAt: sydneyMonth,
    jumpDays: 95,
  },
  'key by month': { workspace: unlimited, key: { id: 'key', perMonth: LIMIT }, periodAt: sydneyMonth, jumpDays: 95 },
  'key by day': { workspace: unlimited, key: { id: 'key', perDay: LIMIT }, periodAt: sydneyDayPeriod, jumpDays: 3 },
} as const satisfies Record<string, Limited>

export class WrongCount extends Error {}

/** A row of the ledger, from the moment that it is durable. */
interface Row {
  readonly settledAt: number
  readonly amount: PicoAud
  /** The step at which it was in the database. */
  readonly writtenAt: number
  /** The step at which it was settled with the adapter. */
  countedAt: number
  /** The step from which on every read of the ledger is known to have it. */
  knownAt: number
}

/** A read of one month's sum. The database answers with what it has at some moment between the call and the answer. */
interface Read {
  readonly month: number
  readonly askedAt: number
  seen: PicoAud | undefined
  seenAt: number
  answer(amount: PicoAud): void
  fail(error: Error): void
}

/** What the world gives to an adapter. */
export interface MonthStage {
  readonly clock: AlarmClock
  readonly store: UsageStore
  readonly workspace: Workspace
  /** Resolves when the database has all rows that were settled before. */
  delivered(): Promise<boolean>
}

export interface MonthAdapter {
  readonly name: string
  open(stage: MonthStage): Promise<OpenAdapter>
}

interface OpenAdapter {
  readonly spending: Spending & SpendView
  /** A second has passed. */
  heartbeat(): void
  /** Resolves when everything has happened that does not need the world. */
  rest(): Promise<void>
  /** Whether what a read found is counted from the moment that the request is settled, or from when it is known to be delivered. */
  readonly knowsRowsWhen: 'settled' | 'delivered'
  close(): Promise<void>
}

export const memoryAdapter: MonthAdapter = {
  name: 'memory',
  async open({ store, clock }) {
    return {
      spending: await memorySpending(store, clock, { limitReached() {} }),
      heartbeat() {},
      rest: () => turn(),
      knowsRowsWhen: 'settled',
      close: async () => {},
    }
  },
}

/** The real scripts in a real Redis, which answers at once; the clock is the simulation's. */
export function redisAdapter(socket: string): MonthAdapter {
  const source = new URL('../../../src/workspaces/spend-limits/redis/', import.meta.url).href
  return {
    name: 'Redis',
    async open({ store, clock, workspace: served, delivered }) {
      const redis = new Redis({ path: socket, protocol: 2 })
      const now = "local function clock() return tonumber(redis.call('GET', 'simulated:now')) end"
      const simulated = accountScripts((name) => (name === 'outside' ? now : luaBeside(source, name)))
      const membership = { epoch: 'one', incarnation: 1, quietUntilMs: 0 }
      const followers: LinkFollower[] = []
      let underWay = 0
      await redis.flushall()
      await redis.hset('weir:{replicas}', 'epoch', 'one', 'quiet_until', '0')
      const link: RedisLink = {
        replica: 'one',
        leaseMs: 5000,
        async run(script, keys, values) {
          underWay += 1
          const { lua } = script === spendScripts.checkpoint ? simulated.checkpoint : simulated.reserve
          try {
            await redis.set('simulated:now', Math.floor(clock.monotonic()))
            return await redis.eval(lua, keys.length, ...keys, ...values)
          } finally {
            underWay -= 1
          }
        },
        follow: (follower) => void followers.push(follower),
        publish: async () => {},
        membership: () => membership,
        replicas: () => 1,
        proven: () => ({ sinceMs: 0, untilMs: Infinity }),
        close: async () => {},
      }
      const journal = { owner: 'one', predecessor: '' }
      const spending = await redisSpending({
        link,
        clock,
        store,
        journal,
        workspace: () => served,
        delivered,
        events: { limitReached() {} },
      })
      return {
        spending,
        heartbeat: () => followers.forEach((it) => it.heartbeat()),
        async rest() {
          for (let idle = 0; idle < 2; idle = underWay > 0 ? 0 : idle + 1) await turn()
        },
        knowsRowsWhen: 'delivered',
        close: async () => redis.disconnect(),
      }
    },
  }
}

export interface MonthHappenings {
  months: number
  held: number
  refused: number
  unavailable: number
  /** Rows that were settled in a month whose sum was not known yet. */
  settledUnread: number
  failedReads: number
}

/**
 * One workspace or key whose months or days change while requests run, are settled, and sums are read. `jumps`: the clock is also set
 * by several periods, and back over the beginning of one; the store fails.
 *
 * No decision may count less than the ledger has. It may count a row twice only if a read overlapped its settlement: a
 * month that was read before it began is never read again in memory, and only in quiet moments with Redis.
 */
export async function simulateMonths(
  adapter: MonthAdapter,
  seed: number,
  steps: number,
  { jumps, limited }: { readonly jumps: boolean; readonly limited: Limited },
): Promise<MonthHappenings> {
  const { workspace, key, periodAt, jumpDays } = limited
  const random = seededRandom(seed)
  const below = (count: number): number => Math.floor(random() * count)
  const happenings = { months: 0, held: 0, refused: 0, unavailable: 0, settledUnread: 0, failedReads: 0 }
  let nowMs = periodAt(Date.UTC(2026, 10, 15)).to - 5000
  let monotonicMs = 1000
  let step = 0
  const rows: Row[] = []
  const reads: Read[] = []
  const answered: Read[] = []
  const deliveries: { readonly askedAt: number; resolve(isDelivered: boolean): void }[] = []
  const running = new Set<{ readonly hold: SpendingHold; readonly most: PicoAud }>()
  /** Durable, and not settled with the adapter yet. */
  const settling: { readonly row: Row; readonly hold: SpendingHold; readonly most: PicoAud }[] = []
  /** Settled with the adapter. */
  const settled: Row[] = []
  const errors: Error[] = []

  const monthOf = (at: number): number => periodAt(at).from
  const sum = (some: readonly { readonly amount: PicoAud }[]): PicoAud => some.reduce((all, it) => all + it.amount, 0n)
  const inMonth = (month: number, some: readonly Row[]): Row[] => some.filter((it) => monthOf(it.settledAt) === month)

  /** The ledger starts with something in every month, so that a read that is missing shows. */
  const first = (month: number): PicoAud => BigInt(1 + ((month / DAY_MS) & 7)) * CENT
  function ask(month: number): Promise<PicoAud> {
    const { promise, resolve, reject } = Promise.withResolvers<PicoAud>()
    reads.push({ month, askedAt: step, seen: undefined, seenAt: -1, answer: resolve, fail: reject })
    return promise
  }
  const store = {
    // The sums of all workspaces matter only if the workspace has the limit.
    usageSums: async ({ from }: { from: number }) => (key ? [] : [{ group: 'ws', amount: await ask(from) }]),
    usageTotal: async ({ from }: { from: number }) => ({ amount: await ask(from) }),
  } as unknown as UsageStore
  const clock: AlarmClock = { now: () => nowMs, monotonic: () => monotonicMs, after: () => () => {} }

  function see(read: Read): void {
    read.seen ??= first(read.month) + sum(inMonth(read.month, rows))
    if (read.seenAt < 0) read.seenAt = step
  }
  function finish(read: Read): void {
    reads.splice(reads.indexOf(read), 1)
    see(read)
    answered.push(read)
    read.answer(read.seen!)
  }

  function finishAll(): void {
    while (reads[0]) finish(reads[0])
  }

  // The start reads its own month, and waits for nothing else.
  const opening = adapter.open({
    clock,
    store,
    workspace,
    delivered: () => new Promise((resolve) => deliveries.push({ askedAt: step, resolve })),
  })
  while (!(await Promise.race([opening.then(() => true), turn(false)]))) {
    for (const read of reads.splice(0)) {
      if (read.month === monthOf(nowMs)) finish({ ...read })
      else reads.push(read)
    }
  }
  const opened = await opening
  const { spending } = opened

  const heldByAll = (): PicoAud => [...running, ...settling].reduce((all, { most }) => all + most, 0n)
  const truth = (month: number): PicoAud => first(month) + sum(inMonth(month, settled))
  /** What a read may have found in the ledger that is counted as well, or held. The first read of a month finds nothing. */
  function countedTwice(month: number): PicoAud {
    const ofMonth = answered.filter((it) => it.month === month).slice(jumps ? 0 : 1)
    return sum(
      inMonth(month, rows).filter((row) =>
        ofMonth.some(({ askedAt, seenAt }) => row.writtenAt <= seenAt && row.knownAt >= askedAt),
      ),
    )
  }

  function arrive(most: PicoAud): void {
    const arrival = spending.hold(workspace, most, key).then(
      (hold) => {
        happenings.held += 1
        const counted = truth(monthOf(nowMs)) + heldByAll() + most
        running.add({ hold, most })
        if (counted > LIMIT) throw new WrongCount(`held, although it makes ${counted / CENT} cents`)
      },
      (error: unknown) => {
        if (!(error instanceof ApiError)) throw error
        if (error.code !== 'spend_limit_exceeded') return void (happenings.unavailable += 1)
        happenings.refused += 1
        const month = monthOf(nowMs)
        const counted = truth(month) + heldByAll() + most + countedTwice(month)
        if (counted <= LIMIT) throw new WrongCount(`refused, although it makes ${counted / CENT} cents`)
      },
    )
    arrival.catch((error: unknown) => void errors.push(error as Error))
  }

  function write(): void {
    const [first] = running
    if (!first) return
    running.delete(first)
    const amount = (first.most / CENT / BigInt(1 + below(4))) * CENT
    const row = { settledAt: nowMs, amount, writtenAt: step, countedAt: Infinity, knownAt: Infinity }
    rows.push(row)
    settling.push({ row, ...first })
  }

  function settle(): void {
    const next = settling.shift()
    if (!next) return
    const month = monthOf(next.row.settledAt)
    if (!answered.some((it) => it.month === month)) happenings.settledUnread += 1
    settled.push(next.row)
    next.row.countedAt = step
    if (opened.knowsRowsWhen === 'settled') next.row.knownAt = step
    next.hold.settle(next.row.amount, next.row.settledAt)
  }

  function deliver(): void {
    for (const { askedAt, resolve } of deliveries.splice(0)) {
      for (const row of settled) if (row.countedAt <= askedAt) row.knownAt = Math.min(row.knownAt, step)
      resolve(true)
    }
  }

  /** The month is nearly over. */
  async function turnMonth(): Promise<void> {
    // Much has happened in it, so the next month was read, unless the store has failed all the time. Only requests show
    // that a key is in use.
    if (key) arrive(CENT)
    for (let second = 0; second < (jumps ? 1 : 4); second += 1) {
      monotonicMs += 1000
      spending.headers(workspace)
      opened.heartbeat()
      await opened.rest()
      if (!jumps) finishAll()
      await opened.rest()
    }
    nowMs = periodAt(nowMs).to - 1
  }

  const actions: readonly { readonly weight: number; act(): unknown }[] = [
    { weight: 30, act: () => arrive(BigInt(1 + below(200)) * CENT) },
    { weight: 20, act: write },
    { weight: 20, act: settle },
    { weight: 15, act: () => reads[0] && see(reads[0]) },
    { weight: 15, act: () => reads[0] && finish(reads[0]) },
    { weight: 10, act: () => opened.heartbeat() },
    { weight: 10, act: deliver },
    { weight: 20, act: () => void ((nowMs += 1 + below(3)), (monotonicMs += 500)) },
    { weight: 2, act: turnMonth },
    {
      weight: jumps ? 4 : 0,
      act() {
        const read = reads.shift()
        if (read) happenings.failedReads += 1
        read?.fail(new ApiError('service_unavailable', 'The database is away.'))
      },
    },
    { weight: jumps ? 3 : 0, act: () => void (nowMs = periodAt(nowMs).from - 1) },
    { weight: jumps ? 1 : 0, act: () => void (nowMs += (below(2) === 0 ? jumpDays : -jumpDays) * DAY_MS) },
  ]
  const all = actions.reduce((weights, { weight }) => weights + weight, 0)

  try {
    for (step = 1; step <= steps; step += 1) {
      const month = monthOf(nowMs)
      let chosen = random() * all
      await actions.find(({ weight }) => (chosen -= weight) < 0)?.act()
      await opened.rest()
      if (errors[0]) throw errors[0]
      if (monthOf(nowMs) !== month) happenings.months += 1
    }
    await requireExactRoom()
    return happenings
  } catch (error) {
    if (!(error instanceof WrongCount)) throw error
    throw new WrongCount(`step ${step}: ${error.message} (WEIR_SEED=${seed})`)
  } finally {
    await opened.close()
  }

  /** When nothing runs and a minute has passed, exactly what is left can be held. */
  async function requireExactRoom(): Promise<void> {
    const rest = async (): Promise<void> => {
      for (let round = 0; round < 4; round += 1) {
        finishAll()
        deliver()
        opened.heartbeat()
        await opened.rest()
      }
    }
    for (let minute = 0; minute < 3; minute += 1) {
      await rest()
      while (running.size > 0) write()
      while (settling.length > 0) settle()
      monotonicMs += 61_000
      step += 1
    }
    await rest()
    if (errors[0]) throw errors[0]
    const month = monthOf(nowMs)
    const left = LIMIT - truth(month)
    // Memory never reads a month again.
    const doubtful = opened.knowsRowsWhen === 'settled' ? countedTwice(month) : 0n
    for (const [most, outcome] of [
      [left + 1n, 'refused'],
      [left - doubtful, 'held'],
    ] as const) {
      if (most <= 0n) continue
      const attempt = spending.hold(workspace, most, key).then(
        (hold) => {
          hold.settle(0n, nowMs)
          return 'held'
        },
        (error: ApiError) => (error.code === 'spend_limit_exceeded' ? 'refused' : error.code),
      )
      await rest()
      const seen = await Promise.race([attempt, turn('not decided')])
      if (seen !== outcome) throw new WrongCount(`with ${left / CENT} cents left, ${most / CENT} are ${seen}`)
    }
  }
}
