import { ApiError } from '../../shared/errors.ts'
import { formatAud, formatCents, toCents, type PicoAud } from '../../shared/money/money.ts'
import type { Month } from '../../shared/money/sydney-time.ts'
import type { SpendLimit } from '../workspace.ts'
import type { SumsQuery, UsageStore } from '../../billing/usage/usage-store.ts'

/** The figures that a hard limit is compared with. */
export interface SpendFigures {
  readonly spent: PicoAud
  /** By other running requests. */
  readonly held: PicoAud
}

export function limitExceeded(limit: PicoAud, { spent, held }: SpendFigures, most: PicoAud): ApiError {
  // Exact amounts: in cents, a small request would seem to cost nothing.
  const aud = (amount: PicoAud): string => `A$${formatAud(amount)}`
  const running = held > 0n ? `, running requests may cost up to ${aud(held)}` : ''
  return new ApiError(
    'spend_limit_exceeded',
    `The workspace's spend limit for this month is ${aud(limit)} (excluding GST): ${aud(spent)} is spent${running}, and this request may cost up to ${aud(most)}. Ask the operator to raise the limit, lower max_tokens, or wait until next month.`,
  )
}

/** The sums could not be read, so the limit cannot be checked. */
export function limitUnknown(cause?: unknown): ApiError {
  const message = 'The spend limit of the workspace cannot be checked now, so the request is not served. Try again.'
  return new ApiError('service_unavailable', message, { cause })
}

export function limitHeaders(limit: SpendLimit | null, spent: PicoAud): Record<string, string> {
  if (!limit) return {}
  return {
    'X-Spend-Limit': formatCents(toCents(limit.amount)),
    'X-Spend-Used': formatCents(toCents(spent)),
    ...(spent >= limit.amount ? { 'X-Spend-Alert': limit.isSoft ? 'soft limit reached' : 'limit reached' } : {}),
  }
}

/** A limit applies to usage: adjustment notes and credits do not make room for more. */
function counted({ from, to }: Month): Omit<SumsQuery, 'limit'> {
  return { from, to, groupBy: 'workspace', creditNote: '', withoutCredits: true }
}

/** What every workspace has spent in a month, according to the store. */
export async function monthSums(store: UsageStore, month: Month): Promise<ReadonlyMap<string, PicoAud>> {
  const sums = await store.usageSums({ ...counted(month), limit: Number.MAX_SAFE_INTEGER })
  return new Map(sums.map(({ group, amount }) => [String(group), amount]))
}

/** What one workspace has spent in a month, according to the store. */
export async function monthSum(store: UsageStore, workspaceId: string, month: Month): Promise<PicoAud> {
  return (await store.usageTotal({ ...counted(month), workspaceId })).amount
}
