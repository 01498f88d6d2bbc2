import { hostname } from 'node:os'
import type { ExpiringKey, KeySpend, OverdueInvoice, WatchParts, WorkspaceSpend } from '../alerts/watch.ts'
import type { InvoiceStore, IssuedInvoice } from '../billing/invoices/invoice-store.ts'
import type { UsageStore } from '../billing/usage/usage-store.ts'
import { isLoopback } from '../config/loopback.ts'
import { sydneyDate, sydneyDayPeriod, sydneyMonth, type Month } from '../shared/money/sydney-time.ts'
import type { Engines } from '../open-engines.ts'
import type { Admission } from '../queue/admission.ts'
import { withoutPassword } from '../shared/address-without-password.ts'
import type { Clock } from '../shared/clock.ts'
import type { Accounts } from '../workspaces/accounts.ts'
import type { ExpiringKeysQuery, KeyStore } from '../workspaces/keys/key-store.ts'
import { keySums } from '../workspaces/spend-limits/limit.ts'
import type { SpendView } from '../workspaces/spend-limits/spending.ts'
import type { ApiKey } from '../workspaces/workspace.ts'

/** Where alerts read what they watch. A part of compose.ts. */

const DAY_MS = 86_400_000
/** An invoice is reported in the days after it is due. A service that starts later does not report all old ones. */
const OVERDUE_DAYS = 30
const PAGE = 500

/** Of every workspace that has a limit. */
export async function workspaceSpend(parts: {
  readonly accounts: Pick<Accounts, 'workspaces'>
  readonly spending: Pick<SpendView, 'spent'>
  readonly clock: Clock
}): Promise<readonly WorkspaceSpend[]> {
  const period = sydneyMonth(parts.clock.now()).name
  const states: WorkspaceSpend[] = []
  for (const { id, spendLimit } of parts.accounts.workspaces()) {
    if (!spendLimit) continue
    const spent = await parts.spending.spent(id)
    states.push({ workspaceId: id, period, limit: spendLimit.amount, isSoft: spendLimit.isSoft, spent })
  }
  return states
}

/** Of every valid key that has a limit, in this day and this month. */
export async function* keySpend(
  store: Pick<KeyStore, 'keysWithSpendLimit'> & Pick<UsageStore, 'usageSums'>,
  clock: Clock,
): AsyncGenerator<readonly KeySpend[]> {
  let after: string | undefined
  for (;;) {
    const now = clock.now()
    const keys = await store.keysWithSpendLimit({ now, after, limit: PAGE })
    after = keys.at(-1)?.id
    if (after === undefined) return
    yield [
      ...(await statesOf(store, keys, 'spendPerDay', { ...sydneyDayPeriod(now), name: sydneyDate(now) })),
      ...(await statesOf(store, keys, 'spendPerMonth', sydneyMonth(now))),
    ]
  }
}

async function statesOf(
  store: Pick<UsageStore, 'usageSums'>,
  keys: readonly ApiKey[],
  kind: 'spendPerDay' | 'spendPerMonth',
  period: Month,
): Promise<readonly KeySpend[]> {
  // With a limit of 0 nothing can be spent, so nothing is to be reported.
  const limited = keys.flatMap(({ id, workspaceId, [kind]: limit }) => (limit ? [{ id, workspaceId, limit }] : []))
  if (limited.length === 0) return []
  const ids = limited.map(({ id }) => id)
  const spent = await keySums(store, ids, period)
  return limited.map(({ id, workspaceId, limit }) => ({
    workspaceId,
    keyId: id,
    period: period.name,
    limit,
    spent: spent.get(id) ?? 0n,
  }))
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

/** Every lane with the address of its engine. */
export function engineStates({ addresses }: Pick<Engines, 'addresses'>): ReturnType<WatchParts['engines']> {
  return [...addresses()].map(([lane, { url, isUp }]) => {
    // A unix socket has no host.
    const host = URL.parse(url)?.hostname.replaceAll(/[[\]]/g, '') || 'localhost'
    return { lane, url: withoutPassword(url), machine: isLoopback(host) ? hostname() : undefined, isUp }
  })
}

export async function laneDepths({ status }: Pick<Admission, 'status'>): ReturnType<WatchParts['lanes']> {
  return [...(await status())].map(
    ([
      lane,
      {
        queueDepth,
        limits: { maxQueueDepth },
      },
    ]) => ({
      lane,
      queueDepth,
      maxQueueDepth,
    }),
  )
}
