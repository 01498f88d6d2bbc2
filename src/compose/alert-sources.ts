import type { ExpiringKey, OverdueInvoice, SpendState } from '../alerts/watch.ts'
import type { InvoiceStore, IssuedInvoice } from '../billing/invoices/invoice-store.ts'
import { sydneyDate, sydneyMonth } from '../shared/money/sydney-time.ts'
import type { Clock } from '../shared/clock.ts'
import type { Accounts } from '../workspaces/accounts.ts'
import type { ExpiringKeysQuery, KeyStore } from '../workspaces/keys/key-store.ts'
import type { SpendView } from '../workspaces/spend-limits/spending.ts'

/** Where alerts read what they watch. A part of compose.ts. */

const DAY_MS = 86_400_000
/** An invoice is reported in the days after it is due. A service that starts later does not report all old ones. */
const OVERDUE_DAYS = 30
const PAGE = 500

/** Of every workspace that has a limit. */
export async function spendStates(parts: {
  readonly accounts: Pick<Accounts, 'workspaces'>
  readonly spending: Pick<SpendView, 'spent'>
  readonly clock: Clock
}): Promise<readonly SpendState[]> {
  const period = sydneyMonth(parts.clock.now()).name
  const states: SpendState[] = []
  for (const { id, spendLimit } of parts.accounts.workspaces()) {
    if (!spendLimit) continue
    const spent = await parts.spending.spent(id)
    states.push({ workspaceId: id, period, limit: spendLimit.amount, isSoft: spendLimit.isSoft, spent })
  }
  return states
}

export async function newlyOverdue(store: InvoiceStore, now: number): Promise<readonly OverdueInvoice[]> {
  const state = { is: 'overdue', today: sydneyDate(now) } as const
  const since = sydneyDate(now - OVERDUE_DAYS * DAY_MS)
  const found: OverdueInvoice[] = []
  let before: IssuedInvoice | undefined
  do {
    const page: readonly IssuedInvoice[] = await store.newestInvoices({
      workspaceId: undefined,
      before,
      state,
      limit: PAGE,
    })
    for (const { number, workspaceId, document } of page) {
      if (document.due !== null && document.due >= since) found.push({ number, workspaceId, due: document.due })
    }
    before = page.at(-1)
  } while (before)
  return found
}

export async function expiringKeys(
  store: Pick<KeyStore, 'expiringKeys'>,
  query: Omit<ExpiringKeysQuery, 'limit'>,
): Promise<readonly ExpiringKey[]> {
  const keys = await store.expiringKeys({ ...query, limit: PAGE })
  return keys.map(({ id, workspaceId, expiresAt }) => ({ id, workspaceId, expiresAt: expiresAt ?? 0 }))
}
