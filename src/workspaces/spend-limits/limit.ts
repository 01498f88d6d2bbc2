import { ApiError } from '../../shared/errors.ts'
import { formatAud, formatCents, toCents, type PicoAud } from '../../shared/money/money.ts'
import {
  sydneyDate,
  sydneyDayPeriod,
  sydneyMonth,
  writtenDate,
  type CalendarPeriod,
} from '../../shared/money/sydney-time.ts'
import type { SpendLimit } from '../workspace.ts'
import type { SumsQuery, UsageStore } from '../../billing/usage/usage-store.ts'

/** The figures that a hard limit is compared with. */
export interface SpendFigures {
  readonly spent: PicoAud
  /** By other running requests. */
  readonly held: PicoAud
}

/** Whose limit it is, and for what period. */
export type LimitKind = 'workspace month' | 'key day' | 'key month'

const limitNames: Readonly<Record<LimitKind, string>> = {
  'workspace month': "The workspace's spend limit for this month",
  'key day': "This API key's spend limit for this day",
  'key month': "This API key's spend limit for this month",
}

export function limitExceeded(
  kind: LimitKind,
  limit: PicoAud,
  { spent, held }: SpendFigures,
  most: PicoAud,
  now: number,
): ApiError {
  // Exact amounts: in cents, a small request would seem to cost nothing.
  const aud = (amount: PicoAud): string => `A$${formatAud(amount)}`
  const running = held > 0n ? `, running requests may cost up to ${aud(held)}` : ''
  const { to } = kind === 'key day' ? sydneyDayPeriod(now) : sydneyMonth(now)
  return new ApiError(
    'spend_limit_exceeded',
    `${limitNames[kind]} is ${aud(limit)} (excluding GST): ${aud(spent)} is spent${running}, and this request may cost up to ${aud(most)}. Ask for a higher limit, lower max_tokens, or wait: it resets on ${writtenDate(sydneyDate(to))} at midnight in Sydney.`,
  )
}

/** The sums could not be read, so the limit cannot be checked. */
export function limitUnknown(cause?: unknown): ApiError {
  const message =
    'A spend limit of the workspace or key cannot be checked now, so the request is not served. Try again.'
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
function counted({ from, to }: CalendarPeriod): Omit<SumsQuery, 'limit'> {
  return { from, to, groupBy: 'workspace', creditNote: '', withoutCredits: true }
}

/** What every workspace has spent in a month, according to the store. */
export async function monthSums(store: UsageStore, month: CalendarPeriod): Promise<ReadonlyMap<string, PicoAud>> {
  const sums = await store.usageSums({ ...counted(month), limit: Number.MAX_SAFE_INTEGER })
  return new Map(sums.map(({ group, amount }) => [String(group), amount]))
}

/** What one workspace has spent in a month, according to the store. */
export async function monthSum(store: UsageStore, workspaceId: string, month: CalendarPeriod): Promise<PicoAud> {
  return (await store.usageTotal({ ...counted(month), workspaceId })).amount
}

/** What these keys have spent in a day or month, according to the store. Keys without usage are left out. */
export async function keySums(
  store: Pick<UsageStore, 'usageSums'>,
  keyIds: readonly string[],
  period: CalendarPeriod,
): Promise<ReadonlyMap<string, PicoAud>> {
  const sums = await store.usageSums({ ...counted(period), groupBy: 'key', keyIds, limit: keyIds.length })
  return new Map(sums.map(({ group, amount }) => [String(group), amount]))
}

/** What one key has spent in a day or month, according to the store. */
export async function keySum(store: UsageStore, keyId: string, period: CalendarPeriod): Promise<PicoAud> {
  return (await store.usageTotal({ ...counted(period), keyIds: [keyId] })).amount
}
