import type { PicoAud } from '../../shared/money/money.ts'
import { sydneyDayPeriod, sydneyMonth, type CalendarPeriod } from '../../shared/money/sydney-time.ts'
import type { Workspace } from '../workspace.ts'
import type { Clock } from '../../shared/clock.ts'
import type { SpendEvents, SpendingHold, SpendingKey, Spending, SpendView } from './spending.ts'
import type { UsageStore } from '../../billing/usage/usage-store.ts'
import { recentValues } from '../keys/known-by-hash.ts'
import { keySum, limitExceeded, limitHeaders, limitUnknown, monthSums, type LimitKind } from './limit.ts'

/** What is spent in one month or day, by workspace or key: the ledger's sums, and what was settled since they were read. */
interface PeriodSpending {
  readonly period: CalendarPeriod
  readonly spent: Map<string, PicoAud>
  /** The limit that was last reported as reached, so that each is reported once a month. */
  readonly reportedLimits: Map<string, PicoAud>
  isRead: boolean
  /** The read in progress. */
  reading: Promise<void> | undefined
  /** Something was settled during the read, which the read may have found or not. */
  isUnsure: boolean
}

/** How often a sum is read again because something was settled in the meantime. After that, it may count twice. */
const READS_MAX = 5

/**
 * Tracks what is spent in the present month or day, and the most that running requests can still cost.
 *
 * The ledger is read once for each period, at the start and one period ahead: nothing is settled in a period before it
 * begins, so no row is both in its sums and counted here. Only a clock that is changed by more than a period leads to one
 * that was not read.
 */
function spendingOverTime(
  clock: Clock,
  periodAt: (at: number) => CalendarPeriod,
  sumsOf: (period: CalendarPeriod) => Promise<ReadonlyMap<string, PicoAud>>,
) {
  /** This period, the one before and the next, by their beginning. A clock may be set back over the beginning of a period. */
  const periods = new Map<number, PeriodSpending>()
  /** What running requests hold. It belongs to no period. */
  const held = new Map<string, PicoAud>()
  let present = enter(periodAt(clock.now()))

  function enter(period: CalendarPeriod): PeriodSpending {
    const previous = periodAt(period.from - 1)
    for (const from of periods.keys()) {
      if (from !== previous.from && from !== period.from && from !== period.to) periods.delete(from)
    }
    const entered = spendingIn(period)
    spendingIn(periodAt(period.to))
    readInBackground(period)
    return entered
  }

  function spendingIn(period: CalendarPeriod): PeriodSpending {
    let it = periods.get(period.from)
    if (!it) {
      it = { period, spent: new Map(), reportedLimits: new Map(), isRead: false, reading: undefined, isUnsure: false }
      periods.set(period.from, it)
    }
    return it
  }

  /** Reads the period and the next one, if they have not been read yet. */
  function readInBackground(period: CalendarPeriod): void {
    for (const from of [period.from, period.to]) {
      const it = periods.get(from)
      if (it && !it.isRead) read(it).catch(() => {})
    }
  }

  function read(it: PeriodSpending): Promise<void> {
    return (it.reading ??= readSums(it))
  }

  async function readSums(it: PeriodSpending): Promise<void> {
    try {
      for (let reads = 1; !it.isRead; reads += 1) {
        it.isUnsure = false
        const sums = await sumsOf(it.period)
        it.isRead = !it.isUnsure || reads === READS_MAX
        // The next read includes what was settled during this one.
        if (!it.isRead) it.spent.clear()
        else for (const [id, amount] of sums) add(it.spent, id, amount)
      }
    } catch (error) {
      it.spent.clear()
      throw error
    } finally {
      it.reading = undefined
    }
  }

  function now(): PeriodSpending {
    const at = clock.now()
    if (at < present.period.from || at >= present.period.to) present = enter(periodAt(at))
    return present
  }

  /** The period may end while its sums are read. */
  async function nowRead(): Promise<PeriodSpending> {
    for (;;) {
      const it = now()
      if (it.isRead) return it
      await read(it).catch((cause: unknown) => {
        throw limitUnknown(cause)
      })
    }
  }

  return {
    held,
    now,
    nowRead,
    /** A read may have failed, so try again until this period and the next are read. */
    readAhead: (): void => readInBackground(now().period),
    /** Adds what a request cost. undefined if a later read of the ledger will include its row. */
    count(id: string, amount: PicoAud, settledAt: number): PeriodSpending | undefined {
      const it = periods.get(periodAt(settledAt).from)
      if (!it || !(it.isRead || it.reading)) return undefined
      if (it.reading) it.isUnsure = true
      add(it.spent, id, amount)
      return it
    },
  }
}

type SpendingOverTime = ReturnType<typeof spendingOverTime>

/** One hard limit of a request. */
interface HardLimit {
  readonly kind: LimitKind
  readonly id: string
  readonly amount: PicoAud
  readonly spending: SpendingOverTime
}

/** How many keys that no request uses keep their accounts. One takes about 5 KB. */
const IDLE_KEYS_MAX = 4000

/** The accounts of a key that has had a limit. */
interface KeyAccounts {
  readonly keyId: string
  day: SpendingOverTime | undefined
  month: SpendingOverTime | undefined
  /** How many requests use them. */
  users: number
}

/**
 * While a request uses them, the accounts of a key are kept, because they have its reservation. Others are forgotten, the
 * least recently used first: the ledger has their sums.
 */
function accountsOfKeys() {
  const used = new Map<string, KeyAccounts>()
  const idle = recentValues<KeyAccounts>(IDLE_KEYS_MAX)
  const find = (keyId: string): KeyAccounts | undefined => used.get(keyId) ?? idle.get(keyId)
  return {
    find,
    /** Call `release` afterwards. */
    use(keyId: string): KeyAccounts {
      const accounts = find(keyId) ?? { keyId, day: undefined, month: undefined, users: 0 }
      accounts.users += 1
      used.set(keyId, accounts)
      idle.delete(keyId)
      return accounts
    },
    release(accounts: KeyAccounts): void {
      accounts.users -= 1
      if (accounts.users > 0) return
      used.delete(accounts.keyId)
      idle.set(accounts.keyId, accounts)
    },
  }
}

/**
 * Tracks spending in memory: of all workspaces, and of each key from the first request that has a limit. For a database that
 * only one process serves, and a store whose reads include every row that was settled before.
 */
export async function memorySpending(
  store: UsageStore,
  clock: Clock,
  events: SpendEvents,
): Promise<Spending & SpendView> {
  const workspaces = spendingOverTime(clock, sydneyMonth, (month) => monthSums(store, month))
  const keys = accountsOfKeys()
  await workspaces.nowRead()

  function accountOf(accounts: KeyAccounts, kind: 'day' | 'month'): SpendingOverTime {
    const { keyId } = accounts
    return (accounts[kind] ??= spendingOverTime(
      clock,
      kind === 'day' ? sydneyDayPeriod : sydneyMonth,
      async (period) => new Map([[keyId, await keySum(store, keyId, period)]]),
    ))
  }

  function limitsOf(
    { id, spendLimit }: Workspace,
    key: SpendingKey | undefined,
    accounts: KeyAccounts | undefined,
  ): readonly HardLimit[] {
    const limits: HardLimit[] = []
    if (spendLimit && !spendLimit.isSoft) {
      limits.push({ kind: 'workspace month', id, amount: spendLimit.amount, spending: workspaces })
    }
    if (accounts && key?.perDay !== undefined) {
      limits.push({ kind: 'key day', id: key.id, amount: key.perDay, spending: accountOf(accounts, 'day') })
    }
    if (accounts && key?.perMonth !== undefined) {
      limits.push({ kind: 'key month', id: key.id, amount: key.perMonth, spending: accountOf(accounts, 'month') })
    }
    return limits
  }

  function countWorkspace(workspace: Workspace, amount: PicoAud, settledAt: number): void {
    const { id, spendLimit } = workspace
    const it = workspaces.count(id, amount, settledAt)
    const spent = it?.spent.get(id) ?? 0n
    const limit = spendLimit?.amount
    if (!it || limit === undefined || spent < limit || it.reportedLimits.get(id) === limit) return
    it.reportedLimits.set(id, limit)
    events.limitReached(workspace, spent)
  }

  return {
    async hold(workspace, most, key): Promise<SpendingHold> {
      const accounts = key?.perDay === undefined && key?.perMonth === undefined ? undefined : keys.use(key.id)
      const limits = limitsOf(workspace, key, accounts)
      // A workspace without a hard limit also holds, because a limit may be set at any time.
      const holders = [
        { id: workspace.id, spending: workspaces },
        ...limits.filter(({ spending }) => spending !== workspaces),
      ]
      let own = 0n
      let open = true
      const raise = async (amount: PicoAud): Promise<void> => {
        for (const { spending } of holders) spending.readAhead()
        // A period may change, or have to be read, while another one is read.
        while (limits.some(({ spending }) => !spending.now().isRead)) {
          for (const { spending } of limits) await spending.nowRead()
        }
        if (!open || amount <= own) return
        for (const { kind, id, amount: limit, spending } of limits) {
          const spent = spending.now().spent.get(id) ?? 0n
          const byOthers = (spending.held.get(id) ?? 0n) - own
          if (spent + byOthers + amount > limit) {
            throw limitExceeded(kind, limit, { spent, held: byOthers }, amount, clock.now())
          }
        }
        for (const { id, spending } of holders) add(spending.held, id, amount - own)
        own = amount
      }
      try {
        await raise(most)
      } catch (error) {
        if (accounts) keys.release(accounts)
        throw error
      }
      return {
        raise,
        settle(amount, settledAt = clock.now()) {
          if (!open) return
          open = false
          // Keys and workspaces come and go, so only those with running requests are kept.
          for (const { id, spending } of holders) if (add(spending.held, id, -own) === 0n) spending.held.delete(id)
          countWorkspace(workspace, amount, settledAt)
          if (!key) return
          // Also in accounts for limits that were set while the request ran.
          const present = keys.find(key.id)
          present?.day?.count(key.id, amount, settledAt)
          present?.month?.count(key.id, amount, settledAt)
          if (accounts) keys.release(accounts)
        },
      }
    },
    headers: ({ id, spendLimit }) => limitHeaders(spendLimit, spendLimit ? (workspaces.now().spent.get(id) ?? 0n) : 0n),
    spent: async (workspaceId) => (await workspaces.nowRead()).spent.get(workspaceId) ?? 0n,
    async spentByKey({ id, perDay, perMonth }) {
      const accounts = keys.use(id)
      const spent = async (kind: 'day' | 'month'): Promise<PicoAud> =>
        (await accountOf(accounts, kind).nowRead()).spent.get(id) ?? 0n
      try {
        return {
          day: perDay === undefined ? undefined : await spent('day'),
          month: perMonth === undefined ? undefined : await spent('month'),
        }
      } finally {
        keys.release(accounts)
      }
    },
  }
}

/** Returns the new amount. */
function add(amounts: Map<string, PicoAud>, id: string, amount: PicoAud): PicoAud {
  const sum = (amounts.get(id) ?? 0n) + amount
  amounts.set(id, sum)
  return sum
}
