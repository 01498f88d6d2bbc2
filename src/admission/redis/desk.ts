import { openLane } from '../../core/admission/lane.ts'
import type { Lane, LaneDecision, LaneLimits, LaneStatus } from '../../core/admission/lane.ts'
import type { Decision, Ticket } from '../../ports/admission.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { CoordinationState } from '../../ports/coordination.ts'
import type { Membership, RedisLink } from '../../redis/link.ts'
import { expiryTimer } from '../expiry-timer.ts'
import { Entry, openOutbox, type Decided } from '../outbox.ts'
import { remoteLane, type EnterAnswer, type KnownPlace, type Promised } from './lane-scripts.ts'

/** How long a replica tries to get back to Redis before it serves on its own. Most interruptions are shorter. */
const BACK_WITHIN_MS = 1000
/** A request may use the share until this part of the lease is left: it still has to reach its engine. */
const LEASE_MARGIN = 0.1
const NOTHING: Promised = { requests: 0, tokens: 0 }
const MANY = Number.MAX_SAFE_INTEGER

/** One entry, and how Redis knows it. */
class RemoteEntry extends Entry {
  readonly id: string
  /** Its place in the order of all replicas, once Redis has given it one. */
  number: string | undefined = undefined
  /** Redis has been told of it in this session. */
  isTold = false
  isAcknowledging = false
  /** Admitted by Redis. Whoever was admitted here is in flight in the waiting room. */
  isHeld = false

  constructor(id: string, cost: number, decided: Decided, leave: (entry: Entry) => void) {
    super(cost, decided, leave)
    this.id = id
  }

  get isWaiting(): boolean {
    return this.state === 'queued'
  }
}

/**
 * A lane as one replica sees it. Its callers wait in a room with the rules of `lane.ts`. While Redis answers, nobody is
 * admitted from the room: Redis decides for all replicas. Without Redis the room admits within this replica's
 * share. design.md has the whole story.
 */
export function openDesk(
  laneName: string,
  initialLimits: LaneLimits,
  { link, clock, nextId, onVacant }: DeskParts,
): Desk {
  const remote = remoteLane(link, laneName)
  const outbox = openOutbox()
  const entries = new Map<string, RemoteEntry>()
  let limits = initialLimits
  let areLimitsNew = true
  let isRetired = false
  let isClosed = false

  /** Set while Redis decides. Every session is another object, so that late answers are known by it. */
  let session: Membership | undefined
  let isJoining = false
  let leaseEndsAtMs = -Infinity
  let promised = NOTHING
  /** What this replica may have in flight on its own. */
  let share = NOTHING
  let apartSinceMs = clock.monotonic()
  let isServingShare = false
  const room: Lane<RemoteEntry> = openLane(roomLimits(), decidedHere)
  const expiry = expiryTimer(room, clock, settled)

  /** Runs after every event. The timer is set before any caller hears a decision, because a caller may enter again. */
  function settled(): void {
    expiry.set()
    outbox.deliver()
    if (!isRetired || entries.size > 0) return
    expiry.stop()
    if (session) ignoring(remote.part(session))
    onVacant()
  }

  function roomLimits(): LaneLimits {
    const { maxQueueDepth, maxWaitMs } = limits
    // Where nobody may wait, a caller still has to wait for Redis' answer.
    const maxWait = maxWaitMs === 0 ? link.leaseMs : maxWaitMs
    if (session || isJoining || !isServingShare) {
      const depth = session || isJoining ? MANY : Math.ceil(maxQueueDepth / link.replicas())
      return { tokenBudget: MANY, maxConcurrentRequests: 0, maxQueueDepth: depth, maxWaitMs: maxWait }
    }
    return {
      tokenBudget: share.tokens,
      maxConcurrentRequests: share.requests,
      maxQueueDepth: Math.ceil(maxQueueDepth / link.replicas()),
      maxWaitMs: maxWait,
    }
  }

  /** A decision of the room: somebody waited too long, or is admitted within the share. */
  function decidedHere(entry: RemoteEntry, decision: LaneDecision): void {
    if (decision.kind !== 'admitted') forget(entry)
    outbox.add(entry, decision.kind === 'admitted' ? decision : told(entry, decision))
  }

  function told(entry: RemoteEntry, decision: LaneDecision): Decision {
    const isForLackOfShare = decision.kind === 'too_large' || (decision.kind === 'overloaded' && share.requests === 0)
    const isServed = session !== undefined || entry.cost > limits.tokenBudget
    return isForLackOfShare && !isServed ? { kind: 'unavailable' } : decision
  }

  function forget(entry: RemoteEntry): void {
    entries.delete(entry.id)
    if (session) ignoring(remote.leave(session, entry.id))
  }

  function leave(entry: RemoteEntry): void {
    entry.decided = undefined
    if (!entries.has(entry.id)) return
    followShare()
    forget(entry)
    room.leave(entry, clock.monotonic())
    settled()
  }

  function ask(entry: RemoteEntry, member: Membership): void {
    entry.isTold = true
    remote.enter(member, entry.id, entry.cost).then((answer) => {
      if (session === member) answered(entry, answer)
    }, ignore)
  }

  function answered(entry: RemoteEntry, [kind, number]: EnterAnswer): void {
    if (kind === 'unknown') return joinAgain()
    // It left, or waited too long: Redis hears of it next.
    if (!entry.isWaiting) return
    if (kind === 'queued') entry.number = number
    else if (kind !== 'admitted') {
      entries.delete(entry.id)
      room.leave(entry, clock.monotonic())
      outbox.add(entry, { kind })
    } else if (hasLease()) admit(entry, 0)
    settled()
  }

  /** A grant is taken only if Redis agrees that it still stands: this replica may have been asleep. */
  function granted(id: string, member: Membership): void {
    const entry = entries.get(id)
    if (!entry?.isWaiting) {
      if (!entry) ignoring(remote.leave(member, id))
      return
    }
    if (entry.isAcknowledging) return
    entry.isAcknowledging = true
    remote.acknowledge(member, id).then((isOurs) => {
      if (session !== member) return
      entry.isAcknowledging = false
      if (!isOurs) return joinAgain()
      if (entry.isWaiting && hasLease()) admit(entry, clock.monotonic() - entry.arrivedAtMs)
      settled()
    }, ignore)
  }

  function admit(entry: RemoteEntry, waitMs: number): void {
    room.leave(entry, clock.monotonic())
    entry.isHeld = true
    promised = { requests: Math.max(0, promised.requests - 1), tokens: Math.max(0, promised.tokens - entry.cost) }
    outbox.add(entry, { kind: 'admitted', waitMs })
  }

  /** False once Redis may have given everything to others. A process that was stopped finds out here. */
  function hasLease(): boolean {
    if (clock.monotonic() < leaseEndsAtMs) return true
    joinAgain()
    return false
  }

  function inFlight(): readonly RemoteEntry[] {
    return [...entries.values()].filter((entry) => !entry.isWaiting)
  }

  function shareNow(): Promised {
    const running = inFlight()
    return {
      requests: running.length + promised.requests,
      tokens: running.reduce((sum, { cost }) => sum + cost, 0) + promised.tokens,
    }
  }

  /** From now on this replica is on its own: with what it has in flight, and what it was promised. */
  function goApart(): void {
    if (!session && !isJoining) return
    if (session) {
      share = shareNow()
      apartSinceMs = clock.monotonic()
    }
    session = undefined
    isJoining = false
    moveIntoRoom()
    followShare()
    settled()
  }

  /** The room counts everything in flight from now on, and keeps the order of those who wait. */
  function moveIntoRoom(): void {
    const held = [...entries.values()].filter(({ isHeld }) => isHeld)
    if (held.length === 0 || isClosed) return
    const waiting = [...entries.values()].filter(({ isWaiting }) => isWaiting)
    const nowMs = clock.monotonic()
    for (const entry of waiting) room.leave(entry, nowMs)
    room.setLimits({ ...roomLimits(), tokenBudget: MANY, maxConcurrentRequests: MANY }, nowMs)
    for (const entry of held) {
      entry.isHeld = false
      room.arrive(entry, nowMs)
    }
    room.setLimits({ ...roomLimits(), tokenBudget: MANY, maxConcurrentRequests: 0, maxQueueDepth: MANY }, nowMs)
    for (const entry of waiting) room.arrive(entry, entry.arrivedAtMs)
  }

  function isProven(): boolean {
    const provenUntilMs = Math.max(leaseEndsAtMs, link.provenUntilMs())
    return clock.monotonic() < provenUntilMs - link.leaseMs * LEASE_MARGIN
  }

  /** Serves the share, or stops: when nothing proves any more that it was not given to others. */
  function followShare(): void {
    const isApart = session === undefined && !isJoining
    const serves = isApart && share.requests > 0 && isProven() && clock.monotonic() >= apartSinceMs + BACK_WITHIN_MS
    if (serves === isServingShare && isApart) return
    isServingShare = serves
    room.setLimits(roomLimits(), clock.monotonic())
  }

  function joinAgain(): void {
    goApart()
    join()
  }

  function join(): void {
    const member = link.membership()
    if (!member || isJoining || session || isClosed) return
    isJoining = true
    followShare()
    const sentAtMs = clock.monotonic()
    const running = inFlight()
    promised = {
      requests: Math.max(0, share.requests - running.length),
      tokens: Math.max(0, share.tokens - running.reduce((sum, { cost }) => sum + cost, 0)),
    }
    for (const entry of entries.values()) entry.isTold = true
    const said = {
      quietMs: member.quietUntilMs - sentAtMs,
      limits,
      isNewest: areLimitsNew,
      promised,
      places: [...entries.values()].map((entry) => known(entry, sentAtMs)),
    }
    remote.join(member, said).then(
      (quietMs) => {
        if (!isJoining || link.membership() !== member) return
        isJoining = false
        leaseEndsAtMs = sentAtMs + link.leaseMs
        areLimitsNew &&= limits !== said.limits
        if (quietMs > 0) followShare()
        else begin({ ...member }, new Set(said.places.map(({ id }) => id)))
        settled()
      },
      () => {
        if (link.membership() !== member) return
        isJoining = false
        followShare()
      },
    )
  }

  /** Redis decides from now on. It hears what happened while it answered. */
  function begin(member: Membership, asserted: ReadonlySet<string>): void {
    session = member
    isServingShare = false
    room.setLimits(roomLimits(), clock.monotonic())
    for (const id of asserted) if (!entries.has(id)) ignoring(remote.leave(member, id))
    for (const entry of entries.values()) {
      entry.isAcknowledging = false
      if (!asserted.has(entry.id)) ask(entry, member)
    }
    if (areLimitsNew) sendLimits(member)
    beat()
  }

  function sendLimits(member: Membership): void {
    const sent = limits
    remote.limits(member, sent).then(() => (areLimitsNew &&= limits !== sent), ignore)
  }

  function known(entry: RemoteEntry, nowMs: number): KnownPlace {
    const { id, cost, number } = entry
    if (!entry.isWaiting) return { id, cost, state: 'in_flight' }
    const ageMs = nowMs - entry.arrivedAtMs
    return { id, cost, state: 'queued', number, ageMs, leftMs: roomLimits().maxWaitMs - ageMs }
  }

  function beat(): void {
    const member = session
    followShare()
    settled()
    if (!member) return join()
    if (!hasLease()) return
    const sentAtMs = clock.monotonic()
    remote.beat(member, promised).then((answer) => {
      if (session !== member) return
      if (!answer) return joinAgain()
      leaseEndsAtMs = sentAtMs + link.leaseMs
      promised = answer.promised
      for (const id of answer.unheard) granted(id, member)
    }, ignore)
  }

  return {
    name: remote.name,
    enter(cost, decided) {
      const entry = new RemoteEntry(nextId(), cost, decided, leave as (entry: Entry) => void)
      followShare()
      const isStopped = !session && !isJoining && !isProven()
      if (isRetired || isClosed || isStopped) {
        entry.tell({ kind: isStopped && !isRetired && !isClosed ? 'unavailable' : 'closed' })
        return entry
      }
      const decision = room.arrive(entry, clock.monotonic())
      if (decision === undefined || decision.kind === 'admitted') entries.set(entry.id, entry)
      if (decision?.kind === 'admitted') outbox.add(entry, decision)
      else if (decision !== undefined) entry.tell(told(entry, decision))
      else if (session) ask(entry, session)
      settled()
      return entry
    },
    setLimits(next) {
      limits = next
      areLimitsNew = true
      isRetired = false
      room.setLimits(roomLimits(), clock.monotonic())
      if (session) sendLimits(session)
      settled()
    },
    retire() {
      isRetired = true
      settled()
    },
    close() {
      isClosed = true
      room.close()
      settled()
    },
    join,
    goApart,
    beat,
    hear(id, what) {
      if (!session) return
      if (what === 'recall') {
        promised = NOTHING
        beat()
      } else if (what.startsWith('granted')) granted(id, session)
      else if (entries.get(id)?.isWaiting) answered(entries.get(id)!, [what as EnterAnswer[0]])
    },
    async status() {
      return (session && (await remote.status().catch(ignore))) ?? this.own()
    },
    own() {
      const running = inFlight()
      return {
        limits,
        inFlightRequests: running.length,
        committedTokens: running.reduce((sum, { cost }) => sum + cost, 0),
        queueDepth: entries.size - running.length,
      }
    },
    state: () => (session ? 'joined' : isProven() ? 'apart' : 'stopped'),
    part: async () => void (session && (await remote.part(session).catch(ignore))),
  }
}

export interface DeskParts {
  readonly link: RedisLink
  readonly clock: AlarmClock
  readonly nextId: () => string
  readonly onVacant: () => void
}

export interface Desk {
  /** Messages name the lane by this. */
  readonly name: string
  enter(cost: number, decided: Decided): Ticket
  setLimits(limits: LaneLimits): void
  retire(): void
  close(): void
  /** Tells Redis everything that this replica has in the lane. From then on Redis decides. */
  join(): void
  goApart(): void
  beat(): void
  hear(id: string, what: string): void
  /** Of the whole service; of this replica while Redis does not answer. */
  status(): Promise<LaneStatus>
  own(): LaneStatus
  state(): CoordinationState
  part(): Promise<void>
}

function ignoring(promise: Promise<unknown>): void {
  promise.catch(ignore)
}

/** Whatever went wrong, the link is lost or will be, and joining again says what still matters. */
function ignore(): undefined {}
