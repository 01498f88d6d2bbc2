import type { PicoAud } from '../../core/money/money.ts'
import type { Month } from '../../core/money/sydney-time.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { Membership, RedisLink } from '../../redis/link.ts'
import type { SpendFigures } from '../limit.ts'
import { remoteAccount, type JournalOwners, type Told } from './account-scripts.ts'
import { ownCounts } from './own-counts.ts'
import { refuse, type Want } from './want.ts'

/** How long a replica tries to get back to Redis before it refuses. Most interruptions are shorter. */
const BACK_WITHIN_MS = 1000
/** A request may use the share until this part of the lease is left: it still has to reach its engine. */
const LEASE_MARGIN = 0.1
/** For so long after it was last used, an account is looked at every second, to see what others spend. */
const WATCHED_MS = 5000
/** Beyond this, what others spend is asked for at once. */
const FRESH_MS = 1000
/** As long as Redis keeps a silent replica. What was heard of others before that means nothing. */
const KEPT_MS = 3_600_000

/** The last answer, and what it was about. */
interface LastTold extends Told {
  readonly atMs: number
  readonly month: number
  readonly ownSpent: PicoAud
}

export interface DeskParts {
  readonly link: RedisLink
  readonly clock: AlarmClock
  readonly journal: JournalOwners
  /** The month that it is now. */
  month(): Month
  /** What the database has for this month. */
  readSpent(month: number): Promise<PicoAud>
  /** The limit in force, hard or soft. */
  limit(): PicoAud | undefined
  limitReached(spent: PicoAud): void
}

/**
 * What one replica holds and settles for one workspace, and what it knows of the others. It has one call to Redis under way
 * at a time, which says everything; what happens meanwhile goes into the next one.
 */
export interface Desk {
  /** Holds this much, if the hard limit has room. Resolves with the figures if it has none. */
  take(amount: PicoAud, limit: PicoAud): Promise<SpendFigures | undefined>
  /** Holds this much, whatever is spent. */
  takeFreely(amount: PicoAud): void
  /** Replaces a hold with what the request cost, in the month that begins then. */
  settle(held: PicoAud, amount: PicoAud, month: number): void
  /** What all replicas have spent in the month, as it was a second ago; undefined if Redis was not asked yet. */
  spent(): PicoAud | undefined
  /** What was settled here in the month. */
  ownSpent(): PicoAud
  /** Tells Redis what it has not heard. Resolves when it has, or cannot be told now. */
  tell(): Promise<void>
  /** Whether others have to hear of it every second. */
  isInUse(): boolean
  /** Call the returned function when the database has all that was settled until now; undefined if it has it already. */
  deliver(): (() => void) | undefined
  joined(): void
  lost(): void
}

export function openDesk(workspaceId: string, parts: DeskParts): Desk {
  const { link, clock } = parts
  const account = remoteAccount(link, workspaceId)
  const counts = ownCounts()
  let held = 0n
  /** What Redis counts in this replica's name, at the least: held, and settled in all months. */
  let reserved = 0n
  let wants: Want[] = []
  let turn = 0
  let told: LastTold | undefined
  let toldEpoch: string | undefined
  let isUntold = false
  let running: Promise<void> | undefined
  let isRefreshing = false
  let quietUntilMs = -Infinity
  let usedAtMs = -Infinity
  let apartSinceMs = clock.monotonic()

  function isYoung(ms: number): boolean {
    return told !== undefined && clock.monotonic() < told.atMs + ms
  }

  function run(): Promise<void> {
    const member = memberToTell()
    if (!running && member) running = exchangeAll(member)
    return running ?? Promise.resolve()
  }

  /** undefined if there is nothing to say, or no Redis to say it to. */
  function memberToTell(): Membership | undefined {
    return isUntold || (wants.length > 0 && clock.monotonic() >= quietUntilMs) ? link.membership() : undefined
  }

  /** Ends in the turn in which it finds that all is said: what comes after that starts it again. */
  async function exchangeAll(first: Membership): Promise<void> {
    let member: Membership | undefined = first
    try {
      while (member && (await exchange(member))) member = memberToTell()
    } finally {
      running = undefined
    }
  }

  /** Says everything. Returns whether to go on. */
  async function exchange(member: Membership): Promise<boolean> {
    const asked = wants
    wants = []
    isUntold = false
    const { from: month, to: nextMonth } = parts.month()
    const ownSpent = counts.settledIn(month)
    const sentAtMs = clock.monotonic()
    // From here on Redis may have this, or still what it had before, which was no less.
    reserved = held + counts.ever()
    let answer: Told | undefined
    try {
      answer = await account.reserve(member, {
        replica: link.replica,
        ...parts.journal,
        turn: ++turn,
        month,
        nextMonth,
        held,
        counts: counts.toTell(month),
        wants: asked,
        limit: parts.limit(),
        known: toldEpoch === member.epoch || !isYoung(KEPT_MS) ? {} : (told?.known ?? {}),
      })
    } catch {
      isUntold = true
      if (link.membership() === member) refuse(asked)
      else putBack(asked)
      return false
    }
    // Whoever slept for longer than a lease does not know what has become of the epoch.
    if (!answer || link.membership() !== member || clock.monotonic() - sentAtMs > link.leaseMs) {
      isUntold = true
      putBack(asked)
      return false
    }
    toldEpoch = member.epoch
    told = { ...answer, atMs: sentAtMs, month, ownSpent }
    if (answer.isReached) parts.limitReached(answer.spent ?? 0n)
    if (answer.decisions) decide(asked, answer.decisions, answer)
    else putBack(asked)
    if (answer.quietMs > 0) return waitForQuiet(answer.quietMs)
    if (answer.unread.size === 0) return true
    if (!answer.decisions) return readSums(member, answer)
    void refreshSums(member, answer)
    return true
  }

  function decide(asked: readonly Want[], decisions: readonly boolean[], { spent, held: heldBefore }: Told): void {
    let heldByAll = heldBefore
    for (const [index, want] of asked.entries()) {
      if (decisions[index]) {
        held += want.amount
        reserved += want.amount
        heldByAll += want.amount
        want.resolve(undefined)
      } else want.resolve({ spent: spent ?? 0n, held: heldByAll })
    }
  }

  function waitForQuiet(quietMs: number): boolean {
    quietUntilMs = clock.monotonic() + quietMs
    clock.after(quietMs, () => void run())
    return isUntold
  }

  async function readSums(member: Membership, answer: Told): Promise<boolean> {
    try {
      await foldOne(member, answer)
      return true
    } catch {
      if (link.membership() === member) refuse(wants.splice(0))
      return false
    }
  }

  /** Nothing waits for these sums, so if the database is slow or fails, they are asked for again with the next answer. */
  async function refreshSums(member: Membership, answer: Told): Promise<void> {
    if (isRefreshing) return
    isRefreshing = true
    await foldOne(member, answer).catch(() => {})
    isRefreshing = false
  }

  /** One at a time: it changes the generation, so another month is asked for again. */
  async function foldOne(member: Membership, answer: Told): Promise<void> {
    const [month = parts.month().from] = answer.unread.keys()
    await account.fold(member, answer, month, await parts.readSpent(month))
  }

  function putBack(asked: readonly Want[]): void {
    wants = [...asked, ...wants]
    if (!link.membership()) serveShare()
  }

  /** Without Redis: what is settled below its hold makes room for others. All of it still counts in Redis. */
  function fitsShare(amount: PicoAud): boolean {
    const isProven = clock.monotonic() < link.proven().untilMs - link.leaseMs * LEASE_MARGIN
    return isProven && held + counts.ever() + amount <= reserved
  }

  function serveShare(): void {
    wants = wants.filter((want) => {
      if (!fitsShare(want.amount)) return true
      held += want.amount
      want.resolve(undefined)
      return false
    })
    if (wants.length === 0) return
    const leftMs = apartSinceMs + BACK_WITHIN_MS - clock.monotonic()
    if (leftMs <= 0) refuse(wants.splice(0))
    else clock.after(leftMs, serveShareIfApart)
  }

  function serveShareIfApart(): void {
    if (!link.membership()) serveShare()
  }

  return {
    take(amount, limit) {
      usedAtMs = clock.monotonic()
      return new Promise((resolve, reject) => {
        wants.push({ amount, limit, resolve, reject })
        if (link.membership()) void run()
        else serveShare()
      })
    },
    takeFreely(amount) {
      usedAtMs = clock.monotonic()
      held += amount
      isUntold = true
    },
    settle(amountHeld, amount, month) {
      usedAtMs = clock.monotonic()
      held -= amountHeld
      counts.settle(month, amount)
      isUntold = true
      if (!link.membership()) serveShare()
    },
    spent() {
      const month = parts.month().from
      usedAtMs = clock.monotonic()
      if (!isYoung(FRESH_MS)) {
        isUntold = true
        void run()
      }
      if (told?.month !== month || told.spent === undefined) return undefined
      return told.spent - told.ownSpent + counts.settledIn(month)
    },
    ownSpent: () => counts.settledIn(parts.month().from),
    tell() {
      isUntold = true
      return run()
    },
    isInUse: () => held > 0n || isUntold || clock.monotonic() < usedAtMs + WATCHED_MS || (told?.unread.size ?? 0) > 0,
    deliver() {
      const mark = counts.deliver()
      return (
        mark &&
        (() => {
          mark()
          isUntold = true
        })
      )
    },
    joined() {
      quietUntilMs = -Infinity
      // Redis hears again what is held and not delivered, and what was last known of others.
      if (turn > 0) isUntold = true
      void run()
    },
    lost() {
      apartSinceMs = clock.monotonic()
      serveShare()
    },
  }
}
