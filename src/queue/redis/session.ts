import type { AlarmClock } from '../../shared/clock.ts'
import type { Membership } from '../../cluster/redis/link.ts'
import type { EnterAnswer, RemoteLane } from './lane-scripts.ts'
import type { LocalQueue } from './local-queue.ts'
import type { RemoteEntry } from './remote-entry.ts'
import type { Allotment } from './allotment.ts'

export interface LaneSessionParts {
  readonly member: Membership
  readonly remote: RemoteLane
  readonly local: LocalQueue
  readonly allotment: Allotment
  readonly clock: AlarmClock
  /** Call it after a decision. */
  settled(): void
  /** Call it when the state in Redis can no longer be trusted. Ends the session. */
  rejoin(): void
}

/** While it lasts, Redis decides about a replica's requests in one lane. Answers that arrive after its end are ignored. */
export function openLaneSession({ member, remote, local, allotment, clock, settled, rejoin }: LaneSessionParts) {
  let isOver = false
  let toAcknowledge: RemoteEntry[] = []

  function leave(id: string): void {
    remote.leave(member, id).catch(ignore)
  }

  function enter(entry: RemoteEntry): void {
    const { id, cost } = entry
    const answer =
      entry.tier === 'batch' ? remote.enterBatch(member, id, cost, entry.redisWaitMs) : remote.enter(member, id, cost)
    answer.then((answer) => {
      if (!isOver) answered(entry, answer)
    }, ignore)
  }

  function keep(id: string): void {
    remote.keep(member, id).catch(ignore)
  }

  function answered(entry: RemoteEntry, [kind, number]: EnterAnswer): void {
    if (kind === 'unknown') return rejoin()
    // The caller left or its wait expired: a `leave` is already on its way to Redis.
    if (!entry.isWaiting) return
    if (kind === 'queued') entry.number = number
    else if (kind !== 'admitted') {
      local.remove(entry)
      local.notify(entry, { kind })
    } else if (hasLease()) admit(entry, 0)
    settled()
  }

  /** Under load many grants arrive in one turn of the event loop. They are acknowledged together. */
  function granted(id: string): void {
    const entry = local.find(id)
    if (!entry) return leave(id)
    if (!entry.isWaiting || entry.isAcknowledging) return
    entry.isAcknowledging = true
    if (toAcknowledge.push(entry) === 1) queueMicrotask(acknowledge)
  }

  /** Redis must confirm that a grant still stands, because this process may have been suspended in the meantime. */
  function acknowledge(): void {
    // A caller that left in the same turn has already sent its `leave`.
    const entries = toAcknowledge.filter(({ isWaiting }) => isWaiting)
    toAcknowledge = []
    if (isOver || entries.length === 0) return
    const ids = entries.map(({ id }) => id)
    remote.acknowledge(member, ids).then((areOurs) => {
      if (isOver) return
      for (const entry of entries) entry.isAcknowledging = false
      if (!areOurs) return rejoin()
      if (!hasLease()) return
      for (const entry of entries) if (entry.isWaiting) admit(entry, clock.monotonic() - entry.arrivedAtMs)
      settled()
    }, ignore)
  }

  function admit(entry: RemoteEntry, waitMs: number): void {
    local.countAtRedis(entry)
    allotment.spend(entry.cost)
    local.notify(entry, { kind: 'admitted', waitMs })
    if (entry.fate === 'preempted') entry.preempt()
  }

  /** A place may be preempted before its grant is acknowledged. One whose answer has begun does not give way: Redis is about to know. */
  function preempted(id: string): void {
    const entry = local.find(id)
    if (!entry || entry.fate !== 'in_flight') return
    entry.fate = 'preempted'
    if (!entry.isWaiting) entry.preempt()
  }

  function hasLease(): boolean {
    if (allotment.isLeased()) return true
    rejoin()
    return false
  }

  function heartbeat(): void {
    if (!hasLease()) return
    const sentAtMs = clock.monotonic()
    remote.heartbeat(member, allotment.promised()).then((answer) => {
      if (isOver) return
      if (!answer) return rejoin()
      allotment.renew(sentAtMs)
      allotment.promise(answer.promised)
      for (const id of answer.unacknowledged) granted(id)
      for (const id of answer.preempted) preempted(id)
    }, ignore)
  }

  return {
    enter,
    keep,
    leave,
    heartbeat,
    /** Handles a message from Redis: a recall of the promise, a grant, a preemption, or a refusal. */
    receive(id: string, event: string): void {
      const entry = local.find(id)
      if (event === 'recall') {
        allotment.recall()
        heartbeat()
      } else if (event.startsWith('granted')) granted(id)
      else if (event === 'preempted') preempted(id)
      else if (entry?.isWaiting) answered(entry, [event as EnterAnswer[0]])
    },
    end: () => void (isOver = true),
  }
}

export type LaneSession = ReturnType<typeof openLaneSession>

/** When a command fails, the link is lost or about to be. The next join sends the complete state, so nothing is retried. */
function ignore(): undefined {}
