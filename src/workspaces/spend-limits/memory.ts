import type { PicoAud } from '../../shared/money/money.ts'
import { sydneyMonth, type Month } from '../../shared/money/sydney-time.ts'
import type { Workspace } from '../workspace.ts'
import type { Clock } from '../../shared/clock.ts'
import type { SpendEvents, SpendingHold, Spending, SpendView } from './spending.ts'
import type { UsageStore } from '../../billing/usage/usage-store.ts'
import { limitExceeded, limitHeaders, limitUnknown, monthSums } from './limit.ts'

/** What is spent in one month, by workspace: the ledger's sums, and what was settled since they were read. */
interface MonthSpending {
  readonly month: Month
  readonly spent: Map<string, PicoAud>
  /** The limit that was last reported as reached, so that each is reported once a month. */
  readonly reportedLimits: Map<string, PicoAud>
  isRead: boolean
  /** The read in progress. */
  reading: Promise<void> | undefined
}

/**
 * Tracks in memory what each workspace has spent this month, and the most its running requests can still cost. For a
 * database that only one process serves.
 *
 * The ledger is read once for each month, at the start and one month ahead: nothing is settled in a month before it
 * begins, so no row is both in its sums and counted here. Only a clock that is changed by more than a month leads to a month
 * that was not read; what is settled while that month is being read may count twice.
 */
export async function memorySpending(
  store: UsageStore,
  clock: Clock,
  events: SpendEvents,
): Promise<Spending & SpendView> {
  /** This month, the one before and the next, by their beginning. A clock may be set back over the beginning of a month. */
  const months = new Map<number, MonthSpending>()
  /** What the running requests of each workspace hold. It belongs to no month. */
  const held = new Map<string, PicoAud>()
  let present = enter(sydneyMonth(clock.now()))
  await read(present)

  function enter(month: Month): MonthSpending {
    const previous = sydneyMonth(month.from - 1)
    for (const from of months.keys()) {
      if (from !== previous.from && from !== month.from && from !== month.to) months.delete(from)
    }
    const entered = monthSpending(month)
    monthSpending(sydneyMonth(month.to))
    readInBackground(month)
    return entered
  }

  function monthSpending(month: Month): MonthSpending {
    let it = months.get(month.from)
    if (!it) {
      it = { month, spent: new Map(), reportedLimits: new Map(), isRead: false, reading: undefined }
      months.set(month.from, it)
    }
    return it
  }

  /** Reads the month and the next one, if they have not been read yet. */
  function readInBackground(month: Month): void {
    for (const from of [month.from, month.to]) {
      const it = months.get(from)
      if (it && !it.isRead) read(it).catch(() => {})
    }
  }

  function read(it: MonthSpending): Promise<void> {
    return (it.reading ??= readSums(it))
  }

  async function readSums(it: MonthSpending): Promise<void> {
    try {
      for (const [id, amount] of await monthSums(store, it.month)) add(it.spent, id, amount)
      it.isRead = true
    } catch (error) {
      // The next read includes what was settled during this one.
      it.spent.clear()
      throw error
    } finally {
      it.reading = undefined
    }
  }

  function thisMonth(): MonthSpending {
    const now = clock.now()
    if (now < present.month.from || now >= present.month.to) present = enter(sydneyMonth(now))
    return present
  }

  /** The month may change while its sums are read. */
  async function thisMonthRead(): Promise<MonthSpending> {
    for (;;) {
      const it = thisMonth()
      if (it.isRead) return it
      await read(it).catch((cause: unknown) => {
        throw limitUnknown(cause)
      })
    }
  }

  function count(workspace: Workspace, amount: PicoAud, settledAt: number): void {
    const it = months.get(sydneyMonth(settledAt).from)
    // The row is in the ledger, so a later read will include it.
    if (!it || !(it.isRead || it.reading)) return
    const spent = add(it.spent, workspace.id, amount)
    const limit = workspace.spendLimit?.amount
    if (limit === undefined || spent < limit || it.reportedLimits.get(workspace.id) === limit) return
    it.reportedLimits.set(workspace.id, limit)
    events.limitReached(workspace, spent)
  }

  return {
    async hold(workspace, most): Promise<SpendingHold> {
      const { id, spendLimit } = workspace
      let own = 0n
      let open = true
      const raise = async (amount: PicoAud): Promise<void> => {
        // A read may have failed, so try again until both months are read.
        readInBackground(thisMonth().month)
        const isHard = spendLimit !== null && !spendLimit.isSoft
        const spent = isHard ? ((await thisMonthRead()).spent.get(id) ?? 0n) : 0n
        if (!open || amount <= own) return
        const byOthers = (held.get(id) ?? 0n) - own
        if (isHard && spent + byOthers + amount > spendLimit.amount) {
          throw limitExceeded(spendLimit.amount, { spent, held: byOthers }, amount)
        }
        held.set(id, byOthers + amount)
        own = amount
      }
      await raise(most)
      return {
        raise,
        settle(amount, settledAt = clock.now()) {
          if (!open) return
          open = false
          if (add(held, id, -own) === 0n) held.delete(id)
          count(workspace, amount, settledAt)
        },
      }
    },
    headers: ({ id, spendLimit }) => limitHeaders(spendLimit, spendLimit ? (thisMonth().spent.get(id) ?? 0n) : 0n),
    spent: async (workspaceId) => (await thisMonthRead()).spent.get(workspaceId) ?? 0n,
  }
}

/** Returns the new amount. */
function add(amounts: Map<string, PicoAud>, id: string, amount: PicoAud): PicoAud {
  const sum = (amounts.get(id) ?? 0n) + amount
  amounts.set(id, sum)
  return sum
}
