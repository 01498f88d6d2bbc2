import type { PicoAud } from '../../../shared/money/money.ts'
import { sydneyDayPeriod, sydneyMonth, type Month } from '../../../shared/money/sydney-time.ts'
import type { Workspace } from '../../workspace.ts'
import type { AlarmClock } from '../../../shared/clock.ts'
import type { SpendEvents, Spending, SpendingHold, SpendingKey, SpendView } from '../spending.ts'
import type { UsageStore } from '../../../billing/usage/usage-store.ts'
import type { RedisLink } from '../../../cluster/redis/link.ts'
import { keySum, limitExceeded, limitHeaders, monthSum, monthSums, type LimitKind } from '../limit.ts'
import { spendScripts, type JournalOwners } from './account-scripts.ts'
import type { HardLimit, SpendAccount } from './reservation-state.ts'
import { openSpendReservations } from './spend-reservations.ts'

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
  /** How long the accounts of a key are kept that no request uses. */
  readonly idleMs?: number
}

export interface RedisSpending extends Spending, SpendView {
  /** Reports to the other replicas that everything is in the database, if it is. */
  close(): Promise<void>
}

/** If the database is down when this replica stops, the next start of the replica reports the delivery. */
const LAST_DELIVERY_MS = 2000
/**
 * As long as other replicas remember what this one last held, in case Redis loses its data: they must have forgotten it,
 * because a closed account is not reported again. An account takes about 5 KB.
 */
const IDLE_MS = 3_600_000

/** The account for a limit of a key. */
interface KeyAccount {
  readonly account: SpendAccount
  /** How many requests use it. It has their reservations, or will have their cost. */
  users: number
}

/** A hard limit of a request: of its workspace, or of its key. */
interface RequestLimit extends HardLimit {
  readonly kind: LimitKind
  readonly ofKey?: KeyAccount
}

/** The accounts of a workspace and of its keys that have had a limit. Their reservations are made together. */
interface WorkspaceAccounts {
  readonly reservations: ReturnType<typeof openSpendReservations>
  readonly ofWorkspace: SpendAccount
  /** By the id of the key and the kind of limit. */
  readonly ofKeys: Map<string, KeyAccount>
}

/**
 * Spend limits over all replicas of one database. Only requests with a hard limit wait for Redis.
 * See docs/decisions/2026-11-16-spend-limits.md.
 */
export async function redisSpending(parts: RedisSpendingParts): Promise<RedisSpending> {
  const { link, clock, store, journal, events, idleMs = IDLE_MS } = parts
  const workspaces = new Map<string, WorkspaceAccounts>()
  const thisMonth = (): Month => sydneyMonth(clock.now())
  /** For response headers before the first answer of Redis. */
  let first = { month: thisMonth().from, sums: await monthSums(store, thisMonth()) }
  let delivering: Promise<void> | undefined

  link.follow({
    scripts: Object.values(spendScripts),
    channels: [],
    joined: () => workspaces.forEach(({ reservations }) => reservations.joined()),
    lost: () => workspaces.forEach(({ reservations }) => reservations.lost()),
    heartbeat() {
      for (const account of limitedAccounts()) if (account.isInUse()) void account.sync()
      closeIdle()
      delivering ??= deliverAll().finally(() => (delivering = undefined))
    },
    receive() {},
  })

  function hasLimit(id: string): boolean {
    return Boolean(parts.workspace(id)?.spendLimit)
  }

  function accountsOf(id: string): WorkspaceAccounts {
    let accounts = workspaces.get(id)
    if (accounts) return accounts
    const reservations = openSpendReservations({ link, clock, journal })
    const ofWorkspace = reservations.open(id, {
      periodAt: sydneyMonth,
      readSpent: (month) => monthSum(store, id, sydneyMonth(month)),
      isLimited: () => hasLimit(id),
      limit: () => parts.workspace(id)?.spendLimit?.amount,
      limitReached(spent) {
        const workspace = parts.workspace(id)
        if (workspace) events.limitReached(workspace, spent)
      },
    })
    accounts = { reservations, ofWorkspace, ofKeys: new Map() }
    workspaces.set(id, accounts)
    return accounts
  }

  /** It stays when the limit is removed, because the limit may be set again. */
  function keyAccount(workspaceId: string, keyId: string, kind: 'day' | 'month'): KeyAccount {
    const { reservations, ofKeys } = accountsOf(workspaceId)
    const name = `${keyId} ${kind}`
    let ofKey = ofKeys.get(name)
    if (ofKey) return ofKey
    const periodAt = kind === 'day' ? sydneyDayPeriod : sydneyMonth
    const account = reservations.open(`${workspaceId} ${name}`, {
      periodAt,
      readSpent: (from) => keySum(store, keyId, periodAt(from)),
      isLimited: () => true,
      limit: () => undefined,
      limitReached() {},
    })
    ofKey = { account, users: 0 }
    ofKeys.set(name, ofKey)
    return ofKey
  }

  /** The database has what closed accounts counted. */
  function closeIdle(): void {
    for (const { reservations, ofKeys } of workspaces.values()) {
      for (const [name, { account, users }] of ofKeys) {
        if (users === 0 && reservations.close(account, idleMs)) ofKeys.delete(name)
      }
    }
  }

  function* limitedAccounts(): Generator<SpendAccount> {
    for (const [id, { ofWorkspace, ofKeys }] of workspaces) {
      if (hasLimit(id)) yield ofWorkspace
      for (const { account } of ofKeys.values()) yield account
    }
  }

  /** Marks rows as delivered only while the journal keeps up: a row whose caller has its answer may still wait for the disk. */
  async function deliverAll(): Promise<void> {
    const limited = new Set(limitedAccounts())
    const all = [...workspaces.values()].flatMap(({ ofWorkspace, ofKeys }) => [
      ofWorkspace,
      ...[...ofKeys.values()].map(({ account }) => account),
    ])
    const marks = all.flatMap((account) => {
      const mark = account.deliver()
      return mark ? [{ account, mark }] : []
    })
    if (marks.length === 0 || !(await parts.delivered().catch(() => false))) return
    for (const { mark } of marks) mark()
    await Promise.all(marks.filter(({ account }) => limited.has(account)).map(({ account }) => account.sync()))
  }

  function limitsOf(workspace: Workspace, key: SpendingKey | undefined): readonly RequestLimit[] {
    const { id, spendLimit } = workspace
    const limits: RequestLimit[] = []
    if (spendLimit && !spendLimit.isSoft) {
      limits.push({ account: accountsOf(id).ofWorkspace, limit: spendLimit.amount, kind: 'workspace month' })
    }
    for (const kind of ['day', 'month'] as const) {
      const limit = key?.[kind === 'day' ? 'perDay' : 'perMonth']
      if (!key || limit === undefined) continue
      const ofKey = keyAccount(id, key.id, kind)
      limits.push({ account: ofKey.account, limit, kind: `key ${kind}`, ofKey })
    }
    return limits
  }

  return {
    async hold(workspace, most, key): Promise<SpendingHold> {
      const { reservations, ofWorkspace, ofKeys } = accountsOf(workspace.id)
      const limits = limitsOf(workspace, key)
      const accounts = new Set([ofWorkspace, ...limits.map(({ account }) => account)])
      const addUsers = (change: 1 | -1): void => {
        for (const { ofKey } of limits) if (ofKey) ofKey.users += change
      }
      let held = 0n
      let open = true

      async function take(more: PicoAud, whole: PicoAud): Promise<void> {
        const refused = limits.length === 0 ? undefined : await reservations.reserve(more, limits)
        const limit = refused && limits[refused.index]
        if (limit) {
          const figures = { spent: refused.spent, held: refused.held - (whole - more) }
          throw limitExceeded(limit.kind, limit.limit, figures, whole, clock.now())
        }
        if (limits[0]?.kind === 'workspace month') return
        ofWorkspace.reserveUnchecked(more)
        // Not awaited: the figures arrive before the response headers are sent.
        if (workspace.spendLimit) ofWorkspace.spent()
      }

      const raise = async (amount: PicoAud): Promise<void> => {
        if (!open || amount <= held) return
        const more = amount - held
        await take(more, amount)
        // The request was settled in the meantime.
        if (!open) for (const account of accounts) account.settle(more, 0n, clock.now())
        else held += more
      }
      addUsers(1)
      try {
        await raise(most)
      } catch (error) {
        addUsers(-1)
        throw error
      }
      return {
        raise,
        settle(amount, settledAt = clock.now()) {
          if (!open) return
          open = false
          for (const account of accounts) account.settle(held, amount, settledAt)
          // Limits that were set while the request ran.
          for (const name of key ? [`${key.id} day`, `${key.id} month`] : []) {
            const other = ofKeys.get(name)?.account
            if (other && !accounts.has(other)) other.settle(0n, amount, settledAt)
          }
          addUsers(-1)
          // Sends all accounts of the workspace that changed.
          void limits[0]?.account.sync()
        },
      }
    },
    headers(workspace) {
      const { id, spendLimit } = workspace
      if (!spendLimit) return {}
      const { ofWorkspace } = accountsOf(id)
      return limitHeaders(spendLimit, ofWorkspace.spent() ?? firstSum(id) + ofWorkspace.ownSpent())
    },
    spent: (workspaceId) => monthSum(store, workspaceId, thisMonth()),
    async spentByKey({ id, perDay, perMonth }) {
      const [day, month] = await Promise.all([
        perDay === undefined ? undefined : keySum(store, id, sydneyDayPeriod(clock.now())),
        perMonth === undefined ? undefined : keySum(store, id, thisMonth()),
      ])
      return { day, month }
    },
    async close() {
      await Promise.race([deliverAll(), lastDeliveryTimeout()])
      const synced = [...limitedAccounts()].filter((account) => account.isInUse()).map((account) => account.sync())
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
