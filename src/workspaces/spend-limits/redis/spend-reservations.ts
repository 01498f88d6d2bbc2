import type { PicoAud } from '../../../shared/money/money.ts'
import type { Month } from '../../../shared/money/sydney-time.ts'
import type { AlarmClock } from '../../../shared/clock.ts'
import type { Membership, RedisLink } from '../../../cluster/redis/link.ts'
import { limitUnknown, type SpendFigures } from '../limit.ts'
import { remoteAccount, type JournalOwners, type ReserveAnswer } from './account-scripts.ts'
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

/** The last answer, with the state that it was based on. */
interface LastAnswer extends ReserveAnswer {
  readonly atMs: number
  readonly month: number
  readonly ownSpent: PicoAud
}

export interface SpendReservationsParts {
  readonly link: RedisLink
  readonly clock: AlarmClock
  readonly journal: JournalOwners
  /** The current month. */
  month(): Month
  /** Reads the month's sum from the database. */
  readSpent(month: number): Promise<PicoAud>
  /** The limit in force, hard or soft. */
  limit(): PicoAud | undefined
  limitReached(spent: PicoAud): void
}

/**
 * What one replica reserves and settles for one workspace, and what it knows of the other replicas. It has one call to
 * Redis in flight at a time, which sends the complete state; changes in the meantime go into the next call.
 */
export interface SpendReservations {
  /** Reserves an amount if the hard limit has room for it. Otherwise resolves with the figures. */
  reserve(amount: PicoAud, limit: PicoAud): Promise<SpendFigures | undefined>
  /** Reserves an amount without checking a limit. */
  reserveUnchecked(amount: PicoAud): void
  /** Replaces a reservation with the request's cost, in the month that starts at `month`. */
  settle(held: PicoAud, amount: PicoAud, month: number): void
  /** What all replicas have spent in this month, at most a second old; undefined before the first answer of Redis. */
  spent(): PicoAud | undefined
  /** What this replica has settled in this month. */
  ownSpent(): PicoAud
  /** Sends the state to Redis. Resolves when Redis has it, or cannot be reached. */
  sync(): Promise<void>
  /** Whether the state must be sent every second. */
  isInUse(): boolean
  /** Call the returned function when the database has everything settled so far; undefined if it already has. */
  deliver(): (() => void) | undefined
  joined(): void
  lost(): void
}

/** The parts, what this replica knows, and what it has not sent yet. */
interface ReservationState extends SpendReservationsParts {
  readonly account: ReturnType<typeof remoteAccount>
  readonly counts: ReturnType<typeof ownCounts>
  held: PicoAud
  /** A lower bound of what Redis counts for this replica: held, and settled in all months. */
  reserved: PicoAud
  pending: PendingReservation[]
  turn: number
  last: LastAnswer | undefined
  lastEpoch: string | undefined
  hasUnsent: boolean
  running: Promise<void> | undefined
  isRefreshing: boolean
  quietUntilMs: number
  usedAtMs: number
  disconnectedAtMs: number
}

export function openSpendReservations(workspaceId: string, parts: SpendReservationsParts): SpendReservations {
  const { link, clock } = parts
  const counts = ownCounts()
  const state: ReservationState = {
    ...parts,
    account: remoteAccount(link, workspaceId),
    counts,
    held: 0n,
    reserved: 0n,
    pending: [],
    turn: 0,
    last: undefined,
    lastEpoch: undefined,
    hasUnsent: false,
    running: undefined,
    isRefreshing: false,
    quietUntilMs: -Infinity,
    usedAtMs: -Infinity,
    disconnectedAtMs: clock.monotonic(),
  }
  return {
    reserve(amount, limit) {
      state.usedAtMs = clock.monotonic()
      return new Promise((resolve, reject) => {
        state.pending.push({ amount, limit, resolve, reject })
        if (link.membership()) void run(state)
        else serveAllotment(state)
      })
    },
    reserveUnchecked(amount) {
      state.usedAtMs = clock.monotonic()
      state.held += amount
      state.hasUnsent = true
    },
    settle(amountHeld, amount, month) {
      state.usedAtMs = clock.monotonic()
      state.held -= amountHeld
      counts.settle(month, amount)
      state.hasUnsent = true
      if (!link.membership()) serveAllotment(state)
    },
    spent() {
      const month = parts.month().from
      state.usedAtMs = clock.monotonic()
      if (!isNewerThan(state, FRESH_MS)) {
        state.hasUnsent = true
        void run(state)
      }
      const { last } = state
      if (last?.month !== month || last.spent === undefined) return undefined
      return last.spent - last.ownSpent + counts.settledIn(month)
    },
    ownSpent: () => counts.settledIn(parts.month().from),
    sync() {
      state.hasUnsent = true
      return run(state)
    },
    isInUse: () => isInUse(state),
    deliver() {
      const mark = counts.deliver()
      return (
        mark &&
        (() => {
          mark()
          state.hasUnsent = true
        })
      )
    },
    joined() {
      state.quietUntilMs = -Infinity
      // Send again what is held and not delivered, and the last known state of the other replicas.
      if (state.turn > 0) state.hasUnsent = true
      void run(state)
    },
    lost() {
      state.disconnectedAtMs = clock.monotonic()
      serveAllotment(state)
    },
  }
}

function isNewerThan({ last, clock }: ReservationState, ms: number): boolean {
  return last !== undefined && clock.monotonic() < last.atMs + ms
}

function isInUse({ held, hasUnsent, usedAtMs, last, clock }: ReservationState): boolean {
  return held > 0n || hasUnsent || clock.monotonic() < usedAtMs + POLLED_MS || (last?.unread.size ?? 0) > 0
}

function run(state: ReservationState): Promise<void> {
  const member = memberToSync(state)
  if (!state.running && member) state.running = syncAll(state, member)
  return state.running ?? Promise.resolve()
}

/** undefined if there is nothing to send, or no connection. */
function memberToSync({ hasUnsent, pending, quietUntilMs, clock, link }: ReservationState): Membership | undefined {
  return hasUnsent || (pending.length > 0 && clock.monotonic() >= quietUntilMs) ? link.membership() : undefined
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

/** Sends the complete state once. Returns whether to continue. */
async function syncOnce(state: ReservationState, member: Membership): Promise<boolean> {
  const { link, clock } = state
  const batch = state.pending
  state.pending = []
  state.hasUnsent = false
  const { from: month, to: nextMonth } = state.month()
  const ownSpent = state.counts.settledIn(month)
  const sentAtMs = clock.monotonic()
  // From now on Redis has this state or the previous one, which reserved at least as much.
  state.reserved = state.held + state.counts.ever()
  let answer: ReserveAnswer | undefined
  try {
    answer = await state.account.reserve(member, {
      replica: link.replica,
      ...state.journal,
      turn: ++state.turn,
      month,
      nextMonth,
      held: state.held,
      counts: state.counts.toReport(month),
      pending: batch,
      limit: state.limit(),
      known: state.lastEpoch === member.epoch || !isNewerThan(state, KEPT_MS) ? {} : (state.last?.known ?? {}),
    })
  } catch {
    state.hasUnsent = true
    if (link.membership() === member) rejectUnchecked(batch)
    else putBack(state, batch)
    return false
  }
  // If the process was suspended for longer than a lease, the epoch may have changed in the meantime.
  if (!answer || link.membership() !== member || clock.monotonic() - sentAtMs > link.leaseMs) {
    state.hasUnsent = true
    putBack(state, batch)
    return false
  }
  state.lastEpoch = member.epoch
  state.last = { ...answer, atMs: sentAtMs, month, ownSpent }
  if (answer.isReached) state.limitReached(answer.spent ?? 0n)
  if (answer.decisions) decide(state, batch, answer.decisions, answer)
  else putBack(state, batch)
  if (answer.quietMs > 0) return waitForQuiet(state, answer.quietMs)
  if (answer.unread.size === 0) return true
  if (!answer.decisions) return readSums(state, member, answer)
  void refreshSums(state, member, answer)
  return true
}

function decide(
  state: ReservationState,
  batch: readonly PendingReservation[],
  decisions: readonly boolean[],
  { spent, held: heldBefore }: ReserveAnswer,
): void {
  let heldByAll = heldBefore
  for (const [index, reservation] of batch.entries()) {
    if (decisions[index]) {
      state.held += reservation.amount
      state.reserved += reservation.amount
      heldByAll += reservation.amount
      reservation.resolve(undefined)
    } else reservation.resolve({ spent: spent ?? 0n, held: heldByAll })
  }
}

function waitForQuiet(state: ReservationState, quietMs: number): boolean {
  const { clock } = state
  state.quietUntilMs = clock.monotonic() + quietMs
  clock.after(quietMs, () => void run(state))
  return state.hasUnsent
}

async function readSums(state: ReservationState, member: Membership, answer: ReserveAnswer): Promise<boolean> {
  try {
    await checkpointOne(state, member, answer)
    return true
  } catch {
    if (state.link.membership() === member) rejectUnchecked(state.pending.splice(0))
    return false
  }
}

/** No request waits for these sums. If the database is slow or fails, the next answer asks for them again. */
async function refreshSums(state: ReservationState, member: Membership, answer: ReserveAnswer): Promise<void> {
  if (state.isRefreshing) return
  state.isRefreshing = true
  await checkpointOne(state, member, answer).catch(() => {})
  state.isRefreshing = false
}

/** One month at a time: a checkpoint changes the generation, so the next answer asks for the other months again. */
async function checkpointOne(state: ReservationState, member: Membership, answer: ReserveAnswer): Promise<void> {
  const [month = state.month().from] = answer.unread.keys()
  await state.account.checkpoint(member, answer, month, await state.readSpent(month))
}

function putBack(state: ReservationState, batch: readonly PendingReservation[]): void {
  state.pending = [...batch, ...state.pending]
  if (!state.link.membership()) serveAllotment(state)
}

/** Without Redis: a request that cost less than its reservation leaves room for others, because Redis still counts the full amount. */
function fitsAllotment({ link, clock, held, counts, reserved }: ReservationState, amount: PicoAud): boolean {
  const isProven = clock.monotonic() < link.proven().untilMs - link.leaseMs * LEASE_MARGIN
  return isProven && held + counts.ever() + amount <= reserved
}

function serveAllotment(state: ReservationState): void {
  const { link, clock } = state
  state.pending = state.pending.filter((reservation) => {
    if (!fitsAllotment(state, reservation.amount)) return true
    state.held += reservation.amount
    reservation.resolve(undefined)
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
  readonly limit: PicoAud
  /** Resolves with undefined when the amount is reserved, or with the figures that leave no room for it. */
  resolve(refused: SpendFigures | undefined): void
  reject(error: ApiError): void
}

/** For when the limit cannot be checked. */
function rejectUnchecked(reservations: readonly PendingReservation[]): void {
  for (const reservation of reservations) reservation.reject(limitUnknown())
}
