import type { LaneDecision, LaneLimits, LaneStatus } from '../lane.ts'
import type { LaneArrival, Decision, Ticket, LaneLoad } from '../admission.ts'
import type { AlarmClock } from '../../shared/clock.ts'
import type { CoordinationState } from '../../cluster/coordination.ts'
import type { Membership, RedisLink } from '../../cluster/redis/link.ts'
import type { Decided } from '../lane-adapter.ts'
import { remoteLane, type PlaceSnapshot } from './lane-scripts.ts'
import { openLocalQueue } from './local-queue.ts'
import { RemoteEntry } from './remote-entry.ts'
import { openLaneSession, type LaneSession } from './session.ts'
import { openAllotment, type Decider } from './allotment.ts'

export interface ReplicaLaneParts {
  readonly link: RedisLink
  readonly clock: AlarmClock
  readonly nextId: (arrival: LaneArrival) => string
  readonly onVacant: () => void
}

export interface ReplicaLane {
  /** Identifies the lane in messages from Redis. */
  readonly key: string
  enter(arrival: LaneArrival, decided: Decided): Ticket
  setLimits(limits: LaneLimits): void
  retire(): void
  close(): void
  /** Sends Redis everything that this replica has in the lane. From then on Redis decides. */
  join(): void
  connectionLost(): void
  heartbeat(): void
  receive(id: string, event: string): void
  /** The load of the whole service, or of this replica alone while Redis does not answer. */
  status(): Promise<LaneLoad>
  ownStatus(): LaneStatus
  state(): CoordinationState
  /** Gives up everything that this replica has in the lane. */
  leaveLane(): Promise<void>
}

/**
 * A lane as one replica sees it. Callers wait in a local queue that follows the rules of `lane.ts`. While Redis answers
 * there is a session: Redis decides for all replicas, and the local queue admits nothing by itself. Without Redis the
 * local queue admits within this replica's allotment. design.md explains the protocol.
 */
export function openReplicaLane(
  laneName: string,
  initialLimits: LaneLimits,
  { link, clock, nextId, onVacant }: ReplicaLaneParts,
): ReplicaLane {
  const remote = remoteLane(link, laneName)
  const allotment = openAllotment(link, clock)
  let limits = initialLimits
  let areLimitsNew = true
  let isRetired = false
  let isClosed = false

  let active: { readonly member: Membership; readonly session: LaneSession } | undefined
  let isJoining = false
  /** Determines the limits of the local queue. */
  let decider: Decider = 'none'
  const local = openLocalQueue(clock, localLimits(), { decided: decidedLocally, expired: settled })

  /** Runs after every event. */
  function settled(): void {
    local.deliver()
    if (!isRetired || local.size() > 0) return
    local.stop()
    if (active) remote.leaveLane(active.member).catch(ignore)
    onVacant()
  }

  function localLimits(): LaneLimits {
    return allotment.localLimits(limits, decider)
  }

  function decidedLocally(entry: RemoteEntry, decision: LaneDecision): void {
    if (decision.kind === 'admitted') return local.notify(entry, decision)
    local.forget(entry)
    active?.session.leave(entry.id)
    local.notify(entry, asReported(entry, decision))
  }

  /** Reports `unavailable` for a request that is refused only because this replica's allotment is too small. */
  function asReported(entry: RemoteEntry, decision: LaneDecision): Decision {
    const isForLackOfAllotment =
      decision.kind === 'too_large' || (decision.kind === 'overloaded' && allotment.isEmpty())
    const isServed = active !== undefined || entry.cost > limits.tokenBudget
    return isForLackOfAllotment && !isServed ? { kind: 'unavailable' } : decision
  }

  function leave(entry: RemoteEntry): void {
    entry.decided = undefined
    if (!local.has(entry.id)) return
    updateDecider()
    active?.session.leave(entry.id)
    local.remove(entry)
    settled()
  }

  /** Redis need not be asked: if it has preempted the place and this replica does not know it yet, it preempts others instead. */
  function keep(entry: RemoteEntry): boolean {
    if (entry.fate === 'in_flight') {
      local.keep(entry)
      active?.session.keep(entry.id)
    }
    return entry.fate === 'kept'
  }

  function connectionLost(): void {
    if (!active && !isJoining) return
    if (active) allotment.freeze(local.running())
    active?.session.end()
    active = undefined
    isJoining = false
    if (!isClosed) local.countLocally(localLimits())
    updateDecider()
    settled()
  }

  /** Without Redis: serves the allotment, or stops once other replicas may have been given it. */
  function updateDecider(): void {
    const next = active || isJoining ? 'redis' : allotment.mayServe() ? 'allotment' : 'none'
    if (next === decider) return
    decider = next
    local.setLimits(localLimits())
  }

  function rejoin(): void {
    connectionLost()
    join()
  }

  function join(): void {
    const member = link.membership()
    if (!member || isJoining || active || isClosed) return
    isJoining = true
    updateDecider()
    const sentAtMs = clock.monotonic()
    allotment.restorePromise(local.running())
    const { maxWaitMs } = localLimits()
    const snapshot = {
      quietMs: member.quietUntilMs - sentAtMs,
      limits,
      isNewest: areLimitsNew,
      promised: allotment.promised(),
      places: local.all().map((entry) => entry.snapshot(sentAtMs, maxWaitMs)),
    }
    remote.join(member, snapshot).then(
      (quietMs) => {
        if (!isJoining || link.membership() !== member) return
        isJoining = false
        allotment.renew(sentAtMs)
        areLimitsNew &&= limits !== snapshot.limits
        if (quietMs > 0) updateDecider()
        else begin(member, new Map(snapshot.places.map(({ id, state }) => [id, state])))
        settled()
      },
      () => {
        if (link.membership() !== member) return
        isJoining = false
        updateDecider()
      },
    )
  }

  /** Starts the session, and sends what has changed since the snapshot was taken. */
  function begin(member: Membership, sent: ReadonlyMap<string, PlaceSnapshot['state']>): void {
    const session = openLaneSession({ member, remote, local, allotment, clock, settled, rejoin })
    active = { member, session }
    updateDecider()
    for (const id of sent.keys()) if (!local.has(id)) session.leave(id)
    for (const entry of local.all()) {
      entry.isAcknowledging = false
      const state = sent.get(entry.id)
      if (state === undefined) session.enter(entry)
      if (entry.fate === 'kept' && state !== 'kept') session.keep(entry.id)
      if (state === 'queued') entry.fate = 'in_flight'
    }
    if (areLimitsNew) sendLimits(member)
    heartbeat()
  }

  function sendLimits(member: Membership): void {
    const sent = limits
    remote.limits(member, sent).then(() => (areLimitsNew &&= limits !== sent), ignore)
  }

  function heartbeat(): void {
    updateDecider()
    settled()
    if (active) active.session.heartbeat()
    else join()
  }

  function ownStatus(): LaneStatus {
    return { limits, ...local.load() }
  }

  return {
    key: remote.key,
    enter(arrival, decided) {
      const entry = new RemoteEntry(nextId(arrival), arrival, decided, { leave, keep, leaseMs: link.leaseMs })
      updateDecider()
      const isStopped = !active && !isJoining && !allotment.isProven()
      if (isRetired || isClosed || isStopped) {
        entry.notify({ kind: isStopped && !isRetired && !isClosed ? 'unavailable' : 'closed' })
        return entry
      }
      const decision = local.arrive(entry)
      if (decision?.kind === 'admitted') local.notify(entry, decision)
      else if (decision !== undefined) entry.notify(asReported(entry, decision))
      else active?.session.enter(entry)
      settled()
      return entry
    },
    setLimits(next) {
      limits = next
      areLimitsNew = true
      isRetired = false
      local.setLimits(localLimits())
      if (active) sendLimits(active.member)
      settled()
    },
    retire() {
      isRetired = true
      settled()
    },
    close() {
      isClosed = true
      local.close()
      settled()
    },
    join,
    connectionLost,
    heartbeat,
    receive: (id, event) => active?.session.receive(id, event),
    status: async () =>
      (active && (await remote.status().catch(ignore))) ?? { ...ownStatus(), oldestWaitMs: local.oldestWaitMs() },
    ownStatus,
    state: () => (active ? 'joined' : allotment.isProven() ? 'apart' : 'stopped'),
    leaveLane: async () => void (active && (await remote.leaveLane(active.member).catch(ignore))),
  }
}

/** When a command fails, the link is lost or about to be. The next join sends the complete state, so nothing is retried. */
function ignore(): undefined {}
