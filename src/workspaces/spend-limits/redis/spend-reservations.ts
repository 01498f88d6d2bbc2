import type { PicoAud } from '../../../shared/money/money.ts'
import type { CalendarPeriod } from '../../../shared/money/sydney-time.ts'
import type { AlarmClock } from '../../../shared/clock.ts'
import type { Membership, RedisLink } from '../../../cluster/redis/link.ts'
import { limitUnknown, type SpendFigures } from '../limit.ts'
import { remoteAccounts, type AccountAnswer, type AccountReport, type JournalOwners } from './account-scripts.ts'
import type { ReserveAnswer } from './account-scripts.ts'
import { ownCounts } from './own-counts.ts'
import type { ApiError } from '../../../shared/errors.ts'

/** How long requests wait for a lost connection to Redis before they are refused. Most interruptions are shorter. */
const RECONNECT_WITHIN_MS = 1000
/** Requests stop using the local allotment when this fraction of the lease is left, because they still have to reach an engine. */
const LEASE_MARGIN = 0.1
/** An account is polled every second for this long after its last use, to learn what other replicas spend. */
const POLLED_MS = 5000
/** An older answer is refreshed at once. */
const FRESH_MS = 1000
/** As long as Redis keeps a silent replica. Older knowledge of other replicas is discarded. */
const KEPT_MS = 3_600_000
/** In one call, so that a script never takes long. A reservation needs at most three. */
const ACCOUNTS_MAX = 50

export interface SpendReservationsParts {
  readonly link: RedisLink
  readonly clock: AlarmClock
  readonly journal: JournalOwners
}

/**
 * What one replica reserves and settles in the accounts of one workspace and its keys, and what it knows of the other
 * replicas. It has one call to Redis in flight at a time, which sends the complete state of the accounts that changed;
 * changes in the meantime go into the next call.
 */
export interface SpendReservations {
  /** Opens an account. Its name is unique in Redis. */
  open(name: string, parts: SpendAccountParts): SpendAccount
  /**
   * Closes an account that has not been used or reported for this long, if nothing of it is on its way to Redis or to the
   * database. Returns whether it did. A closed account is not used again; its name may be opened anew.
   */
  close(account: SpendAccount, idleMs: number): boolean
  /** Reserves an amount in all of these accounts if each hard limit has room for it. Otherwise resolves with the first that has not. */
  reserve(amount: PicoAud, limits: readonly HardLimit[]): Promise<Refused | undefined>
  joined(): void
  lost(): void
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
interface AccountState extends SpendAccountParts {
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
interface ReservationState extends SpendReservationsParts {
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

export function openSpendReservations(parts: SpendReservationsParts): SpendReservations {
  const { link, clock } = parts
  const state: ReservationState = {
    ...parts,
    remote: remoteAccounts(link),
    accounts: new Map(),
    unsent: new Set(),
    pending: [],
    openings: 0,
    turn: 0,
    running: undefined,
    quietUntilMs: -Infinity,
    disconnectedAtMs: clock.monotonic(),
  }
  return {
    open(name, accountParts) {
      const account: AccountState = {
        ...accountParts,
        name,
        opening: ++state.openings,
        counts: ownCounts(),
        held: 0n,
        reserved: 0n,
        last: undefined,
        lastEpoch: undefined,
        isReported: false,
        isSending: false,
        isReading: false,
        usedAtMs: -Infinity,
      }
      const opened = spendAccount(state, account)
      state.accounts.set(opened, account)
      return opened
    },
    close(opened, idleMs) {
      const account = state.accounts.get(opened) as AccountState
      return isIdle(state, account, idleMs) && state.accounts.delete(opened)
    },
    reserve(amount, limits) {
      const wanted = limits.map(({ account, limit }) => ({
        account: state.accounts.get(account) as AccountState,
        limit,
      }))
      for (const { account } of wanted) account.usedAtMs = clock.monotonic()
      return new Promise((resolve, reject) => {
        state.pending.push({ amount, limits: wanted, resolve, reject })
        if (link.membership()) void run(state)
        else serveAllotment(state)
      })
    },
    joined() {
      state.quietUntilMs = -Infinity
      // Send again what is held and not delivered, and the last known state of the other replicas.
      for (const account of state.accounts.values()) if (account.isReported) state.unsent.add(account)
      void run(state)
    },
    lost() {
      state.disconnectedAtMs = clock.monotonic()
      serveAllotment(state)
    },
  }
}

function spendAccount(state: ReservationState, account: AccountState): SpendAccount {
  const { link, clock, unsent } = state
  const { counts } = account
  const period = (): number => account.periodAt(clock.now()).from
  return {
    reserveUnchecked(amount) {
      account.usedAtMs = clock.monotonic()
      account.held += amount
      unsent.add(account)
    },
    settle(amountHeld, amount, settledAt) {
      account.usedAtMs = clock.monotonic()
      account.held -= amountHeld
      counts.settle(account.periodAt(settledAt).from, amount)
      unsent.add(account)
      if (!link.membership()) serveAllotment(state)
    },
    spent() {
      account.usedAtMs = clock.monotonic()
      if (!isNewerThan(account, clock, FRESH_MS)) {
        unsent.add(account)
        void run(state)
      }
      const { last } = account
      if (last?.month !== period() || last.spent === undefined) return undefined
      return last.spent - last.ownSpent + counts.settledIn(period())
    },
    ownSpent: () => counts.settledIn(period()),
    sync() {
      unsent.add(account)
      return run(state)
    },
    isInUse: () =>
      account.held > 0n ||
      unsent.has(account) ||
      clock.monotonic() < account.usedAtMs + POLLED_MS ||
      (account.last?.unread.size ?? 0) > 0,
    deliver() {
      const mark = counts.deliver()
      return (
        mark &&
        (() => {
          mark()
          unsent.add(account)
        })
      )
    },
  }
}

function isNewerThan({ last }: AccountState, clock: AlarmClock, ms: number): boolean {
  return last !== undefined && clock.monotonic() < last.atMs + ms
}

function isIdle({ clock, unsent, pending }: ReservationState, account: AccountState, idleMs: number): boolean {
  if (clock.monotonic() < account.usedAtMs + idleMs || isNewerThan(account, clock, idleMs)) return false
  const isChanging = account.held > 0n || unsent.has(account) || account.isSending || account.isReading
  const isAwaited = pending.some(({ limits }) => limits.some((it) => it.account === account))
  return !isChanging && !isAwaited && account.counts.deliver() === undefined
}

function run(state: ReservationState): Promise<void> {
  const member = memberToSync(state)
  if (!state.running && member) state.running = syncAll(state, member)
  return state.running ?? Promise.resolve()
}

/** undefined if there is nothing to send, or no connection. */
function memberToSync(state: ReservationState): Membership | undefined {
  const hasPending = state.clock.monotonic() >= state.quietUntilMs && state.pending.some(isSendable)
  const hasUnsent = hasPending || state.unsent.values().some((account) => account.isLimited())
  return hasUnsent ? state.link.membership() : undefined
}

/** Redis has no sum yet for one of its limits, and would decide nothing. */
function isSendable({ limits }: PendingReservation): boolean {
  return !limits.some(({ account }) => account.isReading && account.last?.spent === undefined)
}

/** Clears `running` in the same turn in which it finds nothing left to send, so that no later change is missed. */
async function syncAll(state: ReservationState, first: Membership): Promise<void> {
  let member: Membership | undefined = first
  try {
    while (member && (await syncOnce(state, member))) member = memberToSync(state)
  } finally {
    state.running = undefined
  }
}

/** Takes what the next call sends: reservations, their accounts, and other accounts that changed. */
function nextCall(state: ReservationState): { accounts: AccountState[]; batch: PendingReservation[] } {
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

/** Sends the complete state of some accounts once. Returns whether to continue. */
async function syncOnce(state: ReservationState, member: Membership): Promise<boolean> {
  const { link, clock } = state
  const { accounts, batch } = nextCall(state)
  const reports = accounts.map((account) => reportOf(state, account, member))
  const sentAtMs = clock.monotonic()
  const ownSpent = accounts.map(({ counts }, index) => counts.settledIn((reports[index] as AccountReport).month))
  for (const account of accounts) {
    account.isReported = true
    account.isSending = true
    // From now on Redis has this state or the previous one, which reserved at least as much.
    account.reserved = account.held + account.counts.ever()
  }
  let answer: ReserveAnswer | undefined
  try {
    answer = await state.remote.reserve(member, {
      replica: link.replica,
      ...state.journal,
      turn: ++state.turn,
      accounts: reports,
      pending: batch.map(({ amount, limits }) => ({
        amount,
        limits: limits.map(({ account, limit }) => ({ account: accounts.indexOf(account), limit })),
      })),
    })
  } catch {
    for (const account of accounts) state.unsent.add(account)
    if (link.membership() === member) rejectUnchecked(batch)
    else putBack(state, batch)
    return false
  } finally {
    for (const account of accounts) account.isSending = false
  }
  // If the process was suspended for longer than a lease, the epoch may have changed in the meantime.
  if (!answer || link.membership() !== member || clock.monotonic() - sentAtMs > link.leaseMs) {
    for (const account of accounts) state.unsent.add(account)
    putBack(state, batch)
    return false
  }
  for (const [index, account] of accounts.entries()) {
    const about = answer.accounts[index] as AccountAnswer
    const { month } = reports[index] as AccountReport
    account.lastEpoch = member.epoch
    account.last = { ...about, atMs: sentAtMs, month, ownSpent: ownSpent[index] ?? 0n }
    if (about.isReached) account.limitReached(about.spent ?? 0n)
  }
  decide(state, batch, answer.decisions)
  if (answer.quietMs > 0) return waitForQuiet(state, answer.quietMs)
  for (const account of accounts) if ((account.last?.unread.size ?? 0) > 0) void readSum(state, member, account)
  return true
}

function reportOf({ clock }: ReservationState, account: AccountState, member: Membership): AccountReport {
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

function decide(
  state: ReservationState,
  batch: readonly PendingReservation[],
  decisions: ReserveAnswer['decisions'],
): void {
  /** Made by this call, before the one that is decided. */
  const made = new Map<AccountState, PicoAud>()
  const undecided: PendingReservation[] = []
  for (const [place, reservation] of batch.entries()) {
    const { amount, limits, resolve } = reservation
    const index = decisions[place]
    if (index === undefined) undecided.push(reservation)
    else if (index === limits.length) {
      for (const { account } of limits) {
        account.held += amount
        account.reserved += amount
        made.set(account, (made.get(account) ?? 0n) + amount)
      }
      resolve(undefined)
    } else {
      const { account } = limits[index] as PendingReservation['limits'][number]
      resolve({ index, spent: account.last?.spent ?? 0n, held: (account.last?.held ?? 0n) + (made.get(account) ?? 0n) })
    }
  }
  putBack(state, undecided)
}

function waitForQuiet(state: ReservationState, quietMs: number): boolean {
  const { clock } = state
  state.quietUntilMs = clock.monotonic() + quietMs
  clock.after(quietMs, () => void run(state))
  return state.unsent.size > 0
}

/**
 * Reads a sum that Redis asked for. Reservations wait for it only if Redis has no sum at all: if the database is slow or
 * fails, the next answer asks again. One month at a time, because a checkpoint changes the generation.
 */
async function readSum(state: ReservationState, member: Membership, account: AccountState): Promise<void> {
  const answer = account.last
  if (account.isReading || !answer) return
  account.isReading = true
  try {
    const [month = answer.month] = answer.unread.keys()
    await state.remote.checkpoint(member, account.name, answer, month, await account.readSpent(month))
  } catch {
    if (state.link.membership() === member) rejectWaitingFor(state, account)
  }
  account.isReading = false
  void run(state)
}

function rejectWaitingFor(state: ReservationState, account: AccountState): void {
  const isWaiting = (reservation: PendingReservation): boolean =>
    !isSendable(reservation) && reservation.limits.some((it) => it.account === account)
  rejectUnchecked(state.pending.filter(isWaiting))
  state.pending = state.pending.filter((reservation) => !isWaiting(reservation))
}

function putBack(state: ReservationState, batch: readonly PendingReservation[]): void {
  state.pending = [...batch, ...state.pending]
  if (!state.link.membership()) serveAllotment(state)
}

/** Without Redis: a request that cost less than its reservation leaves room for others, because Redis still counts the full amount. */
function fitsAllotment({ link, clock }: ReservationState, account: AccountState, amount: PicoAud): boolean {
  const { held, counts, reserved } = account
  const isProven = clock.monotonic() < link.proven().untilMs - link.leaseMs * LEASE_MARGIN
  return isProven && held + counts.ever() + amount <= reserved
}

function serveAllotment(state: ReservationState): void {
  const { link, clock } = state
  state.pending = state.pending.filter(({ amount, limits, resolve }) => {
    if (!limits.every(({ account }) => fitsAllotment(state, account, amount))) return true
    for (const { account } of limits) account.held += amount
    resolve(undefined)
    return false
  })
  if (state.pending.length === 0) return
  const leftMs = state.disconnectedAtMs + RECONNECT_WITHIN_MS - clock.monotonic()
  if (leftMs <= 0) return rejectUnchecked(state.pending.splice(0))
  clock.after(leftMs, () => {
    if (!link.membership()) serveAllotment(state)
  })
}

/** A request that waits until its cost is reserved. */
interface PendingReservation {
  readonly amount: PicoAud
  readonly limits: readonly { readonly account: AccountState; readonly limit: PicoAud }[]
  /** Resolves with undefined when the amount is reserved, or with the limit that has no room for it. */
  resolve(refused: Refused | undefined): void
  reject(error: ApiError): void
}

/** For when the limit cannot be checked. */
function rejectUnchecked(reservations: readonly PendingReservation[]): void {
  for (const reservation of reservations) reservation.reject(limitUnknown())
}
