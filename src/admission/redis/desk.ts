import type { LaneDecision, LaneLimits, LaneStatus } from '../../core/admission/lane.ts'
import type { Decision, Ticket, LaneLoad } from '../../ports/admission.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { CoordinationState } from '../../ports/coordination.ts'
import type { Membership, RedisLink } from '../../redis/link.ts'
import type { Decided } from '../outbox.ts'
import { remoteLane } from './lane-scripts.ts'
import { RemoteEntry } from './remote-entry.ts'
import { openSession, type Session } from './session.ts'
import { openShare, type Decider } from './share.ts'
import { openWaitingRoom } from './waiting-room.ts'

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
  status(): Promise<LaneLoad>
  own(): LaneStatus
  state(): CoordinationState
  part(): Promise<void>
}

/**
 * A lane as one replica sees it. Its callers wait in a room with the rules of `lane.ts`. While Redis answers there is a
 * session, and nobody is admitted from the room: Redis decides for all replicas. Without Redis the room admits within
 * this replica's share. design.md has the whole story.
 */
export function openDesk(
  laneName: string,
  initialLimits: LaneLimits,
  { link, clock, nextId, onVacant }: DeskParts,
): Desk {
  const remote = remoteLane(link, laneName)
  const share = openShare(link, clock)
  let limits = initialLimits
  let areLimitsNew = true
  let isRetired = false
  let isClosed = false

  let talk: { readonly member: Membership; readonly session: Session } | undefined
  let isJoining = false
  /** Whose limits the room has. */
  let decider: Decider = 'none'
  const room = openWaitingRoom(clock, roomLimits(), { decided: decidedHere, expired: settled })

  /** Runs after every event. */
  function settled(): void {
    room.deliver()
    if (!isRetired || room.size() > 0) return
    room.stop()
    if (talk) remote.part(talk.member).catch(ignore)
    onVacant()
  }

  function roomLimits(): LaneLimits {
    return share.roomLimits(limits, decider)
  }

  function decidedHere(entry: RemoteEntry, decision: LaneDecision): void {
    if (decision.kind === 'admitted') return room.tell(entry, decision)
    room.forget(entry)
    talk?.session.leave(entry.id)
    room.tell(entry, told(entry, decision))
  }

  function told(entry: RemoteEntry, decision: LaneDecision): Decision {
    const isForLackOfShare = decision.kind === 'too_large' || (decision.kind === 'overloaded' && share.isEmpty())
    const isServed = talk !== undefined || entry.cost > limits.tokenBudget
    return isForLackOfShare && !isServed ? { kind: 'unavailable' } : decision
  }

  function leave(entry: RemoteEntry): void {
    entry.decided = undefined
    if (!room.has(entry.id)) return
    followDecider()
    talk?.session.leave(entry.id)
    room.remove(entry)
    settled()
  }

  /** From now on this replica is on its own. */
  function goApart(): void {
    if (!talk && !isJoining) return
    if (talk) share.keep(room.running())
    talk?.session.end()
    talk = undefined
    isJoining = false
    if (!isClosed) room.countHeld(roomLimits())
    followDecider()
    settled()
  }

  /** Without Redis: serves the share, or stops when nothing proves any more that it was not given to others. */
  function followDecider(): void {
    const next = talk || isJoining ? 'redis' : share.mayServe() ? 'share' : 'none'
    if (next === decider) return
    decider = next
    room.setLimits(roomLimits())
  }

  function joinAgain(): void {
    goApart()
    join()
  }

  function join(): void {
    const member = link.membership()
    if (!member || isJoining || talk || isClosed) return
    isJoining = true
    followDecider()
    const sentAtMs = clock.monotonic()
    share.returnTo(room.running())
    const { maxWaitMs } = roomLimits()
    const said = {
      quietMs: member.quietUntilMs - sentAtMs,
      limits,
      isNewest: areLimitsNew,
      promised: share.promised(),
      places: room.all().map((entry) => entry.known(sentAtMs, maxWaitMs)),
    }
    remote.join(member, said).then(
      (quietMs) => {
        if (!isJoining || link.membership() !== member) return
        isJoining = false
        share.renew(sentAtMs)
        areLimitsNew &&= limits !== said.limits
        if (quietMs > 0) followDecider()
        else begin(member, new Set(said.places.map(({ id }) => id)))
        settled()
      },
      () => {
        if (link.membership() !== member) return
        isJoining = false
        followDecider()
      },
    )
  }

  /** Redis decides from now on. It hears what happened while it answered. */
  function begin(member: Membership, asserted: ReadonlySet<string>): void {
    const session = openSession({ member, remote, room, share, clock, settled, joinAgain })
    talk = { member, session }
    followDecider()
    for (const id of asserted) if (!room.has(id)) session.leave(id)
    for (const entry of room.all()) {
      entry.isAcknowledging = false
      if (!asserted.has(entry.id)) session.enter(entry)
    }
    if (areLimitsNew) sendLimits(member)
    beat()
  }

  function sendLimits(member: Membership): void {
    const sent = limits
    remote.limits(member, sent).then(() => (areLimitsNew &&= limits !== sent), ignore)
  }

  function beat(): void {
    followDecider()
    settled()
    if (talk) talk.session.beat()
    else join()
  }

  function own(): LaneStatus {
    const { requests, tokens } = room.running()
    return { limits, inFlightRequests: requests, committedTokens: tokens, queueDepth: room.size() - requests }
  }

  return {
    name: remote.name,
    enter(cost, decided) {
      const entry = new RemoteEntry(nextId(), cost, decided, leave)
      followDecider()
      const isStopped = !talk && !isJoining && !share.isProven()
      if (isRetired || isClosed || isStopped) {
        entry.tell({ kind: isStopped && !isRetired && !isClosed ? 'unavailable' : 'closed' })
        return entry
      }
      const decision = room.arrive(entry)
      if (decision?.kind === 'admitted') room.tell(entry, decision)
      else if (decision !== undefined) entry.tell(told(entry, decision))
      else talk?.session.enter(entry)
      settled()
      return entry
    },
    setLimits(next) {
      limits = next
      areLimitsNew = true
      isRetired = false
      room.setLimits(roomLimits())
      if (talk) sendLimits(talk.member)
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
    hear: (id, what) => talk?.session.hear(id, what),
    status: async () =>
      (talk && (await remote.status().catch(ignore))) ?? { ...own(), oldestWaitMs: room.oldestWaitMs() },
    own,
    state: () => (talk ? 'joined' : share.isProven() ? 'apart' : 'stopped'),
    part: async () => void (talk && (await remote.part(talk.member).catch(ignore))),
  }
}

/** Whatever went wrong, the link is lost or will be, and joining again says what still matters. */
function ignore(): undefined {}
