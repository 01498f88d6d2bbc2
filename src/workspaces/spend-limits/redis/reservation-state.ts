import type { AlarmClock } from '../../../shared/clock.ts'
import type { ApiError } from '../../../shared/errors.ts'
import type { PicoAud } from '../../../shared/money/money.ts'
import type { CalendarPeriod } from '../../../shared/money/sydney-time.ts'
import type { Membership, RedisLink } from '../../../cluster/redis/link.ts'
import type { SpendFigures } from '../limit.ts'
import type { AccountAnswer, AccountReport, JournalOwners, remoteAccounts } from './account-scripts.ts'
import type { ownCounts } from './own-counts.ts'

/** Requests stop using the local allotment when this fraction of the lease is left, because they still have to reach an engine. */
const LEASE_MARGIN = 0.1
/** As long as Redis keeps a silent replica. Older knowledge of other replicas is discarded. */
const KEPT_MS = 3_600_000
/** In one call, so that a script never takes long. A reservation needs at most three. */
const ACCOUNTS_MAX = 50

export interface SpendReservationsParts {
  readonly link: RedisLink
  readonly clock: AlarmClock
  readonly journal: JournalOwners
}

export interface SpendAccountParts {
  /** The month or day that contains a time. */
  periodAt(at: number): CalendarPeriod
  /** Reads the period's sum from the database. */
  readSpent(from: number): Promise<PicoAud>
  /** Accounts without a limit are not reported. */
  isLimited(): boolean
  /** The limit whose end is reported, hard or soft. */
  limit(): PicoAud | undefined
  limitReached(spent: PicoAud): void
}

export interface SpendAccount {
  /** Reserves an amount without checking a limit. */
  reserveUnchecked(amount: PicoAud): void
  /** Replaces a reservation with the request's cost, in the period of this time. */
  settle(held: PicoAud, amount: PicoAud, settledAt: number): void
  /** What all replicas have spent in this period, at most a second old; undefined before the first answer of Redis. */
  spent(): PicoAud | undefined
  /** What this replica has settled in this period. */
  ownSpent(): PicoAud
  /** Sends the state to Redis. Resolves when Redis has it, or cannot be reached. */
  sync(): Promise<void>
  /** Whether the state must be sent every second. */
  isInUse(): boolean
  /** Call the returned function when the database has everything settled so far; undefined if it already has. */
  deliver(): (() => void) | undefined
}

export interface HardLimit {
  readonly account: SpendAccount
  readonly limit: PicoAud
}

/** A limit without room. */
export interface Refused extends SpendFigures {
  /** Its place in the list. */
  readonly index: number
}

/** The last answer, with the state that it was based on. */
interface LastAnswer extends AccountAnswer {
  readonly atMs: number
  readonly month: number
  readonly ownSpent: PicoAud
}

/** What this replica knows of one account. */
export interface AccountState extends SpendAccountParts {
  readonly name: string
  readonly opening: number
  readonly counts: ReturnType<typeof ownCounts>
  held: PicoAud
  /** A lower bound of what Redis counts for this replica: held, and settled in all periods. */
  reserved: PicoAud
  last: LastAnswer | undefined
  lastEpoch: string | undefined
  isReported: boolean
  /** It is in the call in flight. */
  isSending: boolean
  /** A sum is being read from the database. */
  isReading: boolean
  usedAtMs: number
}

/** The parts, the accounts, and what was not sent yet. */
export interface ReservationState extends SpendReservationsParts {
  readonly remote: ReturnType<typeof remoteAccounts>
  readonly accounts: Map<SpendAccount, AccountState>
  /** Accounts with changes that Redis does not have. */
  readonly unsent: Set<AccountState>
  pending: PendingReservation[]
  openings: number
  turn: number
  running: Promise<void> | undefined
  quietUntilMs: number
  disconnectedAtMs: number
}

/** A request that waits until its cost is reserved. */
export interface PendingReservation {
  readonly amount: PicoAud
  readonly limits: readonly { readonly account: AccountState; readonly limit: PicoAud }[]
  /** Resolves with undefined when the amount is reserved, or with the limit that has no room for it. */
  resolve(refused: Refused | undefined): void
  reject(error: ApiError): void
}

export function isNewerThan({ last }: AccountState, clock: AlarmClock, ms: number): boolean {
  return last !== undefined && clock.monotonic() < last.atMs + ms
}

export function isIdle({ clock, unsent, pending }: ReservationState, account: AccountState, idleMs: number): boolean {
  if (clock.monotonic() < account.usedAtMs + idleMs || isNewerThan(account, clock, idleMs)) return false
  const isChanging = account.held > 0n || unsent.has(account) || account.isSending || account.isReading
  const isAwaited = pending.some(({ limits }) => limits.some((it) => it.account === account))
  return !isChanging && !isAwaited && account.counts.deliver() === undefined
}

/** Redis has no sum yet for one of its limits, and would decide nothing. */
export function isSendable({ limits }: PendingReservation): boolean {
  return !limits.some(({ account }) => account.isReading && account.last?.spent === undefined)
}

/** Takes what the next call sends: reservations, their accounts, and other accounts that changed. */
export function nextCall(state: ReservationState): { accounts: AccountState[]; batch: PendingReservation[] } {
  const accounts = new Set<AccountState>()
  const batch: PendingReservation[] = []
  const later: PendingReservation[] = []
  for (const reservation of state.pending) {
    const fits = accounts.size + reservation.limits.length <= ACCOUNTS_MAX && isSendable(reservation)
    ;(fits ? batch : later).push(reservation)
    if (fits) for (const { account } of reservation.limits) accounts.add(account)
  }
  for (const account of state.unsent) if (accounts.size < ACCOUNTS_MAX && account.isLimited()) accounts.add(account)
  for (const account of accounts) state.unsent.delete(account)
  state.pending = later
  return { accounts: [...accounts], batch }
}

export function reportOf({ clock }: ReservationState, account: AccountState, member: Membership): AccountReport {
  const { from: month, to: nextMonth } = account.periodAt(clock.now())
  const isKnown = account.lastEpoch === member.epoch || !isNewerThan(account, clock, KEPT_MS)
  return {
    name: account.name,
    opening: account.opening,
    month,
    nextMonth,
    held: account.held,
    counts: account.counts.toReport(month),
    limit: account.limit(),
    known: isKnown ? {} : (account.last?.known ?? {}),
  }
}

/** Without Redis: a request that cost less than its reservation leaves room for others, because Redis still counts the full amount. */
export function fitsAllotment({ link, clock }: ReservationState, account: AccountState, amount: PicoAud): boolean {
  const { held, counts, reserved } = account
  const isProven = clock.monotonic() < link.proven().untilMs - link.leaseMs * LEASE_MARGIN
  return isProven && held + counts.ever() + amount <= reserved
}
