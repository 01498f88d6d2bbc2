import { randomUUID } from 'node:crypto'
import { ApiError } from '../../shared/errors.ts'
import { CREDIT, type LedgerRow } from '../../ledger/rows.ts'
import { formatAud, formatCents, grouped, parseAud, toCents, type PicoAud } from '../../shared/money/money.ts'
import { freeVersions, noUsage } from '../rating/rating.ts'
import type { Month } from '../../shared/money/sydney-time.ts'
import type { Workspace } from '../../workspaces/workspace.ts'

/** Credits of a free amount, such as for goodwill. Each is a ledger row of its own. */

/** Keeps an invoice readable. */
const MAX_CREDITS = 100
const CENT: PicoAud = 10_000_000_000n

export function requireCreditAmount(text: string): PicoAud {
  const amount = parseAud(text)
  if (amount !== undefined && amount > 0n && amount % CENT === 0n) return amount
  throw new ApiError(
    'invalid_value',
    '\'amount\' must be an amount in dollars and cents, excluding GST, such as "25.00".',
    { param: 'amount' },
  )
}

/** A credit never exceeds the amount it is given on, so that no invoice or month is ever negative. */
export function requireRoom(amount: PicoAud, left: PicoAud, subject: string, credits: number): void {
  if (credits >= MAX_CREDITS) {
    throw new ApiError('conflict', `${subject} already has ${credits} credits, and can have ${MAX_CREDITS}.`)
  }
  if (amount <= left) return
  const most =
    left < CENT ? 'nothing is left of it' : `A$${grouped(formatCents(toCents(left - (left % CENT))))} is left`
  throw new ApiError(
    'conflict',
    `A credit of A$${grouped(formatAud(amount))} is more than ${subject} comes to: ${most}, excluding GST.`,
    { param: 'amount' },
  )
}

export function creditRow(
  workspace: Workspace,
  amount: PicoAud,
  at: { readonly now: number; readonly settledAt: number },
  credit: NonNullable<LedgerRow['credit']>,
): LedgerRow {
  return {
    ...noUsage,
    requestId: `credit:${randomUUID()}`,
    workspaceId: workspace.id,
    keyId: '',
    model: CREDIT,
    lane: CREDIT,
    endpoint: CREDIT,
    priceVersion: freeVersions.default,
    maxTokens: 0,
    startedAt: at.now,
    tier: 'default',
    estimated: false,
    outcome: 'completed',
    httpStatus: null,
    errorCode: null,
    amount: -amount,
    queueWaitMs: 0,
    firstTokenMs: null,
    durationMs: 0,
    settledAt: at.settledAt,
    credit,
  }
}

/** When a credit is settled: now, or at the end of a month that is over. */
export function settlingTime(month: Month, now: number): number {
  if (now < month.from) {
    throw new ApiError('conflict', `${month.name} has not begun yet in Sydney.`, { param: 'period' })
  }
  return Math.min(now, month.to - 1)
}
