import type { PicoAud } from '../../core/money/money.ts'
import { sydneyMonth, type Month } from '../../core/money/sydney-time.ts'
import type { Workspace } from '../../ports/accounts.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { SpendEvents, Spending, SpendingHold, SpendView } from '../../ports/spending.ts'
import type { UsageStore } from '../../ports/usage.ts'
import type { RedisLink } from '../../redis/link.ts'
import { limitExceeded, limitHeaders, monthSum, monthSums } from '../limit.ts'
import { scripts, type JournalOwners } from './account-scripts.ts'
import { openDesk, type Desk } from './desk.ts'

export interface RedisSpendingParts {
  readonly link: RedisLink
  readonly clock: AlarmClock
  /** One database for all replicas. */
  readonly store: UsageStore
  readonly journal: JournalOwners
  /** As it is now; undefined if there is none. */
  workspace(id: string): Workspace | undefined
  /** Resolves with true when the database has every row that was settled before the call. */
  delivered(): Promise<boolean>
  readonly events: SpendEvents
}

export interface RedisSpending extends Spending, SpendView {
  /** Tells the others that everything is in the database, if it is. */
  close(): Promise<void>
}

/** The database may be away when this replica goes. Then the others hear of it from its next start. */
const LAST_DELIVERY_MS = 2000

/**
 * Spend limits over all replicas of one database. Only workspaces with a hard limit wait for Redis.
 * docs/decisions/2026-11-16-spend-limits.md has the whole story.
 */
export async function redisSpending(parts: RedisSpendingParts): Promise<RedisSpending> {
  const { link, clock, store, journal, events } = parts
  const desks = new Map<string, Desk>()
  const thisMonth = (): Month => sydneyMonth(clock.now())
  /** What headers show before Redis was asked. */
  let first = { month: thisMonth().from, sums: await monthSums(store, thisMonth()) }
  let delivering: Promise<void> | undefined

  link.follow({
    scripts: Object.values(scripts),
    channels: [],
    joined: () => desks.forEach((desk) => desk.joined()),
    lost: () => desks.forEach((desk) => desk.lost()),
    beat() {
      for (const [id, desk] of desks) if (hasLimit(id) && desk.isInUse()) void desk.tell()
      delivering ??= deliverAll().finally(() => (delivering = undefined))
    },
    hear() {},
  })

  function hasLimit(id: string): boolean {
    return Boolean(parts.workspace(id)?.spendLimit)
  }

  function deskOf(id: string): Desk {
    let desk = desks.get(id)
    if (desk) return desk
    desk = openDesk(id, {
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
    desks.set(id, desk)
    return desk
  }

  /** Only a journal that keeps up says what the database has: a row whose caller was let go may still wait for the disk. */
  async function deliverAll(): Promise<void> {
    const marks = [...desks].flatMap(([id, desk]) => {
      const mark = desk.deliver()
      return mark ? [{ id, desk, mark }] : []
    })
    if (marks.length === 0 || !(await parts.delivered().catch(() => false))) return
    for (const { mark } of marks) mark()
    await Promise.all(marks.filter(({ id }) => hasLimit(id)).map(({ desk }) => desk.tell()))
  }

  async function take({ id, spendLimit }: Workspace, more: PicoAud, most: PicoAud): Promise<void> {
    const desk = deskOf(id)
    if (spendLimit && !spendLimit.isSoft) {
      const refused = await desk.take(more, spendLimit.amount)
      if (!refused) return
      const held = refused.held - (most - more)
      throw limitExceeded(spendLimit.amount, { ...refused, held }, most)
    }
    desk.takeFreely(more)
    // Not waited for: by the time of the answer, its headers know what others have spent.
    if (spendLimit) desk.spent()
  }

  return {
    async hold(workspace, most): Promise<SpendingHold> {
      const desk = deskOf(workspace.id)
      let held = 0n
      let open = true
      const raise = async (amount: PicoAud): Promise<void> => {
        if (!open || amount <= held) return
        const more = amount - held
        await take(workspace, more, amount)
        // Settled meanwhile.
        if (!open) desk.settle(more, 0n, thisMonth().from)
        else held += more
      }
      await raise(most)
      return {
        raise,
        settle(amount, settledAt = clock.now()) {
          if (!open) return
          open = false
          desk.settle(held, amount, sydneyMonth(settledAt).from)
          const { spendLimit } = workspace
          if (spendLimit && !spendLimit.isSoft) void desk.tell()
        },
      }
    },
    headers(workspace) {
      const { id, spendLimit } = workspace
      if (!spendLimit) return {}
      const desk = deskOf(id)
      return limitHeaders(spendLimit, desk.spent() ?? firstSum(id) + desk.ownSpent())
    },
    spent: (workspaceId) => monthSum(store, workspaceId, thisMonth()),
    async close() {
      await Promise.race([deliverAll(), lastPatience()])
      const inUse = [...desks].filter(([id, desk]) => hasLimit(id) && desk.isInUse())
      const told = inUse.map(([, desk]) => desk.tell())
      await Promise.race([Promise.all(told), lastPatience()])
    },
  }

  function lastPatience(): Promise<void> {
    return new Promise((resolve) => void clock.after(LAST_DELIVERY_MS, resolve))
  }

  function firstSum(id: string): PicoAud {
    const month = thisMonth().from
    if (first.month !== month) first = { month, sums: new Map() }
    return first.sums.get(id) ?? 0n
  }
}
