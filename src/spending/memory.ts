import type { PicoAud } from '../core/money/money.ts'
import { sydneyMonth, type Month } from '../core/money/sydney-time.ts'
import type { Workspace } from '../ports/accounts.ts'
import type { Clock } from '../ports/clock.ts'
import type { SpendEvents, SpendingHold, Spending, SpendView } from '../ports/spending.ts'
import type { UsageStore } from '../ports/usage.ts'
import { limitExceeded, limitHeaders, monthSums } from './limit.ts'

interface Account {
  spent: PicoAud
  held: PicoAud
  /** The limit that was last reported as reached, so that each is reported once a month. */
  reportedLimit: PicoAud | undefined
}

/**
 * What each workspace has spent this month, and the most its running requests can still cost, where only one process
 * serves the database. It decides from memory, and reads the ledger at the start and when a month begins.
 */
export async function memorySpending(
  store: UsageStore,
  clock: Clock,
  events: SpendEvents,
): Promise<Spending & SpendView> {
  let month: Month = sydneyMonth(clock.now())
  const accounts = new Map<string, Account>()
  let isLoaded = false
  let loading = load()
  await loading

  /** Adds what the ledger has for the month. */
  async function load(): Promise<void> {
    const { from } = month
    const sums = await monthSums(store, month)
    if (month.from !== from) return
    for (const [id, amount] of sums) accountOf(id).spent += amount
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
    headers: ({ id, spendLimit }) => limitHeaders(spendLimit, spendLimit ? accountOf(id).spent : 0n),
    spent: async (workspaceId) => accountOf(workspaceId).spent,
  }
}

/** Throws if a hard limit has no room for a request that may cost this much. */
function requireRoom({ spendLimit }: Workspace, account: Account, most: PicoAud): void {
  if (!spendLimit || spendLimit.isSoft || account.spent + account.held + most <= spendLimit.amount) return
  throw limitExceeded(spendLimit.amount, account, most)
}
