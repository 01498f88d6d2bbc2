import type { PicoAud } from '../../../shared/money/money.ts'
import { sydneyMonth, type Month } from '../../../shared/money/sydney-time.ts'
import type { Workspace } from '../../workspace.ts'
import type { AlarmClock } from '../../../shared/clock.ts'
import type { SpendEvents, Spending, SpendingHold, SpendView } from '../spending.ts'
import type { UsageStore } from '../../../billing/usage/usage-store.ts'
import type { RedisLink } from '../../../cluster/redis/link.ts'
import { limitExceeded, limitHeaders, monthSum, monthSums } from '../limit.ts'
import { spendScripts, type JournalOwners } from './account-scripts.ts'
import { openSpendReservations, type SpendReservations } from './spend-reservations.ts'

export interface RedisSpendingParts {
  readonly link: RedisLink
  readonly clock: AlarmClock
  /** One database for all replicas. */
  readonly store: UsageStore
  readonly journal: JournalOwners
  /** The current workspace; undefined if it does not exist. */
  workspace(id: string): Workspace | undefined
  /** Resolves with true when the database has every row settled before the call. */
  delivered(): Promise<boolean>
  readonly events: SpendEvents
}

export interface RedisSpending extends Spending, SpendView {
  /** Reports to the other replicas that everything is in the database, if it is. */
  close(): Promise<void>
}

/** If the database is down when this replica stops, the next start of the replica reports the delivery. */
const LAST_DELIVERY_MS = 2000

/**
 * Spend limits over all replicas of one database. Only workspaces with a hard limit wait for Redis.
 * See docs/decisions/2026-11-16-spend-limits.md.
 */
export async function redisSpending(parts: RedisSpendingParts): Promise<RedisSpending> {
  const { link, clock, store, journal, events } = parts
  const accounts = new Map<string, SpendReservations>()
  const thisMonth = (): Month => sydneyMonth(clock.now())
  /** For response headers before the first answer of Redis. */
  let first = { month: thisMonth().from, sums: await monthSums(store, thisMonth()) }
  let delivering: Promise<void> | undefined

  link.follow({
    scripts: Object.values(spendScripts),
    channels: [],
    joined: () => accounts.forEach((account) => account.joined()),
    lost: () => accounts.forEach((account) => account.lost()),
    heartbeat() {
      for (const [id, account] of accounts) if (hasLimit(id) && account.isInUse()) void account.sync()
      delivering ??= deliverAll().finally(() => (delivering = undefined))
    },
    receive() {},
  })

  function hasLimit(id: string): boolean {
    return Boolean(parts.workspace(id)?.spendLimit)
  }

  function accountOf(id: string): SpendReservations {
    let account = accounts.get(id)
    if (account) return account
    account = openSpendReservations(id, {
      link,
      clock,
      journal,
      month: thisMonth,
      readSpent: (month) => monthSum(store, id, sydneyMonth(month)),
      limit: () => parts.workspace(id)?.spendLimit?.amount,
      limitReached(spent) {
        const workspace = parts.workspace(id)
        if (workspace) events.limitReached(workspace, spent)
      },
    })
    accounts.set(id, account)
    return account
  }

  /** Marks rows as delivered only while the journal keeps up: a row whose caller has its answer may still wait for the disk. */
  async function deliverAll(): Promise<void> {
    const marks = [...accounts].flatMap(([id, account]) => {
      const mark = account.deliver()
      return mark ? [{ id, account, mark }] : []
    })
    if (marks.length === 0 || !(await parts.delivered().catch(() => false))) return
    for (const { mark } of marks) mark()
    await Promise.all(marks.filter(({ id }) => hasLimit(id)).map(({ account }) => account.sync()))
  }

  async function take({ id, spendLimit }: Workspace, more: PicoAud, most: PicoAud): Promise<void> {
    const account = accountOf(id)
    if (spendLimit && !spendLimit.isSoft) {
      const refused = await account.reserve(more, spendLimit.amount)
      if (!refused) return
      const held = refused.held - (most - more)
      throw limitExceeded(spendLimit.amount, { ...refused, held }, most)
    }
    account.reserveUnchecked(more)
    // Not awaited: the figures arrive before the response headers are sent.
    if (spendLimit) account.spent()
  }

  return {
    async hold(workspace, most): Promise<SpendingHold> {
      const account = accountOf(workspace.id)
      let held = 0n
      let open = true
      const raise = async (amount: PicoAud): Promise<void> => {
        if (!open || amount <= held) return
        const more = amount - held
        await take(workspace, more, amount)
        // The request was settled in the meantime.
        if (!open) account.settle(more, 0n, thisMonth().from)
        else held += more
      }
      await raise(most)
      return {
        raise,
        settle(amount, settledAt = clock.now()) {
          if (!open) return
          open = false
          account.settle(held, amount, sydneyMonth(settledAt).from)
          const { spendLimit } = workspace
          if (spendLimit && !spendLimit.isSoft) void account.sync()
        },
      }
    },
    headers(workspace) {
      const { id, spendLimit } = workspace
      if (!spendLimit) return {}
      const account = accountOf(id)
      return limitHeaders(spendLimit, account.spent() ?? firstSum(id) + account.ownSpent())
    },
    spent: (workspaceId) => monthSum(store, workspaceId, thisMonth()),
    async close() {
      await Promise.race([deliverAll(), lastDeliveryTimeout()])
      const inUse = [...accounts].filter(([id, account]) => hasLimit(id) && account.isInUse())
      const synced = inUse.map(([, account]) => account.sync())
      await Promise.race([Promise.all(synced), lastDeliveryTimeout()])
    },
  }

  function lastDeliveryTimeout(): Promise<void> {
    return new Promise((resolve) => void clock.after(LAST_DELIVERY_MS, resolve))
  }

  function firstSum(id: string): PicoAud {
    const month = thisMonth().from
    if (first.month !== month) first = { month, sums: new Map() }
    return first.sums.get(id) ?? 0n
  }
}
