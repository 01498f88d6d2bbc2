import type { PicoAud } from '../../../shared/money/money.ts'
import type { Membership } from '../../../cluster/redis/link.ts'
import { limitUnknown } from '../limit.ts'
import { remoteAccounts, type AccountAnswer, type AccountReport, type ReserveAnswer } from './account-scripts.ts'
import { ownCounts } from './own-counts.ts'
import {
  fitsAllotment,
  isIdle,
  isNewerThan,
  isSendable,
  nextCall,
  reportOf,
  type AccountState,
  type HardLimit,
  type PendingReservation,
  type Refused,
  type ReservationState,
  type SpendAccount,
  type SpendAccountParts,
  type SpendReservationsParts,
} from './reservation-state.ts'

/** How long requests wait for a lost connection to Redis before they are refused. Most interruptions are shorter. */
const RECONNECT_WITHIN_MS = 1000
/** An account is polled every second for this long after its last use, to learn what other replicas spend. */
const POLLED_MS = 5000
/** An older answer is refreshed at once. */
const FRESH_MS = 1000

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

/** Clears `running` in the same turn in which it finds nothing left to send, so that no later change is missed. */
async function syncAll(state: ReservationState, first: Membership): Promise<void> {
  let member: Membership | undefined = first
  try {
    while (member && (await syncOnce(state, member))) member = memberToSync(state)
  } finally {
    state.running = undefined
  }
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

/** For when the limit cannot be checked. */
function rejectUnchecked(reservations: readonly PendingReservation[]): void {
  for (const reservation of reservations) reservation.reject(limitUnknown())
}
