import { ApiError } from '../core/errors.ts'
import { formatCents, toCents, type PicoAud } from '../core/money/money.ts'
import { sydneyMonth, type Month } from '../core/money/sydney-time.ts'
import type { Workspace } from '../ports/accounts.ts'
import type { Clock } from '../ports/clock.ts'
import type { SpendingHold, Spending } from '../ports/spending.ts'
import type { UsageStore } from '../ports/usage.ts'

/**
 * What each workspace has spent this month, and the most its running requests can still cost. Only one process
 * serves a data directory, so it decides from memory; it reads the ledger at the start and
 * when a month begins.
 */
export interface SpendControl extends Spending {
  /** Response headers for a workspace that has a limit. */
  headers(workspace: Workspace): Record<string, string>
  spent(workspaceId: string): PicoAud
}

interface Account {
  spent: PicoAud
  held: PicoAud
  /** The limit that was last reported as reached, so that each is reported once a month. */
  reportedLimit: PicoAud | undefined
}

export interface SpendEvents {
  /** A limit was reached, soft or hard. */
  limitReached(workspace: Workspace, spent: PicoAud): void
}

export async function openSpending(store: UsageStore, clock: Clock, events: SpendEvents): Promise<SpendControl> {
  let month: Month = sydneyMonth(clock.now())
  const accounts = new Map<string, Account>()
  let isLoaded = false
  let loading = load()
  await loading

  /** Adds what the ledger has for the month. */
  async function load(): Promise<void> {
    const { from, to } = month
    const sums = await store.usageSums({
      from,
      to,
      groupBy: 'workspace',
      limit: Number.MAX_SAFE_INTEGER,
      creditNote: '',
      withoutCredits: true,
    })
    if (month.from !== from) return
    for (const { group, amount } of sums) accountOf(String(group)).spent += amount
    isLoaded = true
  }

  /** A clock that is set may lead into a month that has rows already, before or after this one. */
  function followClock(): void {
    const now = clock.now()
    if (now >= month.from && now < month.to) return
    month = sydneyMonth(now)
    for (const account of accounts.values()) Object.assign(account, { spent: 0n, reportedLimit: undefined })
    isLoaded = false
    loading = load()
    loading.catch(() => {})
  }

  function accountOf(id: string): Account {
    followClock()
    let account = accounts.get(id)
    if (!account) accounts.set(id, (account = { spent: 0n, held: 0n, reportedLimit: undefined }))
    return account
  }

  async function loaded(): Promise<void> {
    try {
      await loading
    } catch {
      // The store failed. Try again, and refuse the request if it fails again.
      await (loading = load())
    }
  }

  function reportLimit(workspace: Workspace, account: Account): void {
    const limit = workspace.spendLimit?.amount
    if (limit === undefined || account.spent < limit || account.reportedLimit === limit) return
    account.reportedLimit = limit
    events.limitReached(workspace, account.spent)
  }

  return {
    async hold(workspace, most): Promise<SpendingHold> {
      followClock()
      if (!isLoaded) await loaded()
      let held = 0n
      let open = true
      const raise = (amount: PicoAud): void => {
        if (!open || amount <= held) return
        const account = accountOf(workspace.id)
        requireRoom(workspace, { ...account, held: account.held - held }, amount)
        account.held += amount - held
        held = amount
      }
      raise(most)
      return {
        raise: async (amount) => raise(amount),
        settle(amount) {
          if (!open) return
          open = false
          const current = accountOf(workspace.id)
          current.held -= held
          current.spent += amount
          reportLimit(workspace, current)
        },
      }
    },
    headers(workspace) {
      const limit = workspace.spendLimit
      if (!limit) return {}
      const { spent } = accountOf(workspace.id)
      return {
        'X-Spend-Limit': formatCents(toCents(limit.amount)),
        'X-Spend-Used': formatCents(toCents(spent)),
        ...(spent >= limit.amount ? { 'X-Spend-Alert': limit.isSoft ? 'soft limit reached' : 'limit reached' } : {}),
      }
    },
    spent: (workspaceId) => accountOf(workspaceId).spent,
  }
}

/** Throws if a hard limit has no room for a request that may cost this much. */
function requireRoom({ spendLimit }: Workspace, account: Account, most: PicoAud): void {
  if (!spendLimit || spendLimit.isSoft || account.spent + account.held + most <= spendLimit.amount) return
  throw refusal(spendLimit.amount, account, most)
}

function refusal(limit: PicoAud, { spent, held }: Account, most: PicoAud): ApiError {
  const aud = (amount: PicoAud): string => `A$${formatCents(toCents(amount))}`
  const running = held > 0n ? `, running requests may cost up to ${aud(held)}` : ''
  return new ApiError(
    'spend_limit_exceeded',
    `The workspace's spend limit for this month is ${aud(limit)} (excluding GST): ${aud(spent)} is spent${running}, and this request may cost up to ${aud(most)}. Ask the operator to raise the limit, lower max_tokens, or wait until next month.`,
  )
}
