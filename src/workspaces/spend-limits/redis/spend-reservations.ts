import type { PicoAud } from '../../../shared/money/money.ts'
import type { Month } from '../../../shared/money/sydney-time.ts'
import type { AlarmClock } from '../../../shared/clock.ts'
import type { Membership, RedisLink } from '../../../cluster/redis/link.ts'
import type { SpendFigures } from '../limit.ts'
import { remoteAccount, type JournalOwners, type ReserveAnswer } from './account-scripts.ts'
import { ownCounts } from './own-counts.ts'
import { rejectUnchecked, type PendingReservation } from './pending-reservation.ts'

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

export function openSpendReservations(workspaceId: string, parts: SpendReservationsParts): SpendReservations {
  const { link, clock } = parts
  const account = remoteAccount(link, workspaceId)
  const counts = ownCounts()
  let held = 0n
  /** A lower bound of what Redis counts for this replica: held, and settled in all months. */
  let reserved = 0n
  let pending: PendingReservation[] = []
  let turn = 0
  let last: LastAnswer | undefined
  let lastEpoch: string | undefined
  let hasUnsent = false
  let running: Promise<void> | undefined
  let isRefreshing = false
  let quietUntilMs = -Infinity
  let usedAtMs = -Infinity
  let disconnectedAtMs = clock.monotonic()

  function isNewerThan(ms: number): boolean {
    return last !== undefined && clock.monotonic() < last.atMs + ms
  }

  function run(): Promise<void> {
    const member = memberToSync()
    if (!running && member) running = syncAll(member)
    return running ?? Promise.resolve()
  }

  /** undefined if there is nothing to send, or no connection. */
  function memberToSync(): Membership | undefined {
    return hasUnsent || (pending.length > 0 && clock.monotonic() >= quietUntilMs) ? link.membership() : undefined
  }

  /** Clears `running` in the same turn in which it finds nothing left to send, so that no later change is missed. */
  async function syncAll(first: Membership): Promise<void> {
    let member: Membership | undefined = first
    try {
      while (member && (await syncOnce(member))) member = memberToSync()
    } finally {
      running = undefined
    }
  }

  /** Sends the complete state once. Returns whether to continue. */
  async function syncOnce(member: Membership): Promise<boolean> {
    const batch = pending
    pending = []
    hasUnsent = false
    const { from: month, to: nextMonth } = parts.month()
    const ownSpent = counts.settledIn(month)
    const sentAtMs = clock.monotonic()
    // From now on Redis has this state or the previous one, which reserved at least as much.
    reserved = held + counts.ever()
    let answer: ReserveAnswer | undefined
    try {
      answer = await account.reserve(member, {
        replica: link.replica,
        ...parts.journal,
        turn: ++turn,
        month,
        nextMonth,
        held,
        counts: counts.toReport(month),
        pending: batch,
        limit: parts.limit(),
        known: lastEpoch === member.epoch || !isNewerThan(KEPT_MS) ? {} : (last?.known ?? {}),
      })
    } catch {
      hasUnsent = true
      if (link.membership() === member) rejectUnchecked(batch)
      else putBack(batch)
      return false
    }
    // If the process was suspended for longer than a lease, the epoch may have changed in the meantime.
    if (!answer || link.membership() !== member || clock.monotonic() - sentAtMs > link.leaseMs) {
      hasUnsent = true
      putBack(batch)
      return false
    }
    lastEpoch = member.epoch
    last = { ...answer, atMs: sentAtMs, month, ownSpent }
    if (answer.isReached) parts.limitReached(answer.spent ?? 0n)
    if (answer.decisions) decide(batch, answer.decisions, answer)
    else putBack(batch)
    if (answer.quietMs > 0) return waitForQuiet(answer.quietMs)
    if (answer.unread.size === 0) return true
    if (!answer.decisions) return readSums(member, answer)
    void refreshSums(member, answer)
    return true
  }

  function decide(
    batch: readonly PendingReservation[],
    decisions: readonly boolean[],
    { spent, held: heldBefore }: ReserveAnswer,
  ): void {
    let heldByAll = heldBefore
    for (const [index, reservation] of batch.entries()) {
      if (decisions[index]) {
        held += reservation.amount
        reserved += reservation.amount
        heldByAll += reservation.amount
        reservation.resolve(undefined)
      } else reservation.resolve({ spent: spent ?? 0n, held: heldByAll })
    }
  }

  function waitForQuiet(quietMs: number): boolean {
    quietUntilMs = clock.monotonic() + quietMs
    clock.after(quietMs, () => void run())
    return hasUnsent
  }

  async function readSums(member: Membership, answer: ReserveAnswer): Promise<boolean> {
    try {
      await checkpointOne(member, answer)
      return true
    } catch {
      if (link.membership() === member) rejectUnchecked(pending.splice(0))
      return false
    }
  }

  /** No request waits for these sums. If the database is slow or fails, the next answer asks for them again. */
  async function refreshSums(member: Membership, answer: ReserveAnswer): Promise<void> {
    if (isRefreshing) return
    isRefreshing = true
    await checkpointOne(member, answer).catch(() => {})
    isRefreshing = false
  }

  /** One month at a time: a checkpoint changes the generation, so the next answer asks for the other months again. */
  async function checkpointOne(member: Membership, answer: ReserveAnswer): Promise<void> {
    const [month = parts.month().from] = answer.unread.keys()
    await account.checkpoint(member, answer, month, await parts.readSpent(month))
  }

  function putBack(batch: readonly PendingReservation[]): void {
    pending = [...batch, ...pending]
    if (!link.membership()) serveAllotment()
  }

  /** Without Redis: a request that cost less than its reservation leaves room for others, because Redis still counts the full amount. */
  function fitsAllotment(amount: PicoAud): boolean {
    const isProven = clock.monotonic() < link.proven().untilMs - link.leaseMs * LEASE_MARGIN
    return isProven && held + counts.ever() + amount <= reserved
  }

  function serveAllotment(): void {
    pending = pending.filter((reservation) => {
      if (!fitsAllotment(reservation.amount)) return true
      held += reservation.amount
      reservation.resolve(undefined)
      return false
    })
    if (pending.length === 0) return
    const leftMs = disconnectedAtMs + RECONNECT_WITHIN_MS - clock.monotonic()
    if (leftMs <= 0) rejectUnchecked(pending.splice(0))
    else clock.after(leftMs, serveAllotmentIfDisconnected)
  }

  function serveAllotmentIfDisconnected(): void {
    if (!link.membership()) serveAllotment()
  }

  return {
    reserve(amount, limit) {
      usedAtMs = clock.monotonic()
      return new Promise((resolve, reject) => {
        pending.push({ amount, limit, resolve, reject })
        if (link.membership()) void run()
        else serveAllotment()
      })
    },
    reserveUnchecked(amount) {
      usedAtMs = clock.monotonic()
      held += amount
      hasUnsent = true
    },
    settle(amountHeld, amount, month) {
      usedAtMs = clock.monotonic()
      held -= amountHeld
      counts.settle(month, amount)
      hasUnsent = true
      if (!link.membership()) serveAllotment()
    },
    spent() {
      const month = parts.month().from
      usedAtMs = clock.monotonic()
      if (!isNewerThan(FRESH_MS)) {
        hasUnsent = true
        void run()
      }
      if (last?.month !== month || last.spent === undefined) return undefined
      return last.spent - last.ownSpent + counts.settledIn(month)
    },
    ownSpent: () => counts.settledIn(parts.month().from),
    sync() {
      hasUnsent = true
      return run()
    },
    isInUse: () => held > 0n || hasUnsent || clock.monotonic() < usedAtMs + POLLED_MS || (last?.unread.size ?? 0) > 0,
    deliver() {
      const mark = counts.deliver()
      return (
        mark &&
        (() => {
          mark()
          hasUnsent = true
        })
      )
    },
    joined() {
      quietUntilMs = -Infinity
      // Send again what is held and not delivered, and the last known state of the other replicas.
      if (turn > 0) hasUnsent = true
      void run()
    },
    lost() {
      disconnectedAtMs = clock.monotonic()
      serveAllotment()
    },
  }
}
