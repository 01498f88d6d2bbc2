import type { AlarmClock } from '../../ports/clock.ts'
import type { Membership } from '../../redis/link.ts'
import type { EnterAnswer, RemoteLane } from './lane-scripts.ts'
import type { RemoteEntry } from './remote-entry.ts'
import type { Share } from './share.ts'
import type { WaitingRoom } from './waiting-room.ts'

export interface SessionParts {
  readonly member: Membership
  readonly remote: RemoteLane
  readonly room: WaitingRoom
  readonly share: Share
  readonly clock: AlarmClock
  /** Something was decided. */
  settled(): void
  /** What Redis knows cannot be trusted any more. Ends the session. */
  joinAgain(): void
}

/** Redis decides about a replica's callers in one lane, until the session ends. Answers that come later change nothing. */
export function openSession({ member, remote, room, share, clock, settled, joinAgain }: SessionParts) {
  let isOver = false
  let heard: RemoteEntry[] = []

  function leave(id: string): void {
    remote.leave(member, id).catch(ignore)
  }

  function enter(entry: RemoteEntry): void {
    remote.enter(member, entry.id, entry.cost).then((answer) => {
      if (!isOver) answered(entry, answer)
    }, ignore)
  }

  function answered(entry: RemoteEntry, [kind, number]: EnterAnswer): void {
    if (kind === 'unknown') return joinAgain()
    // It left, or waited too long: Redis hears of it next.
    if (!entry.isWaiting) return
    if (kind === 'queued') entry.number = number
    else if (kind !== 'admitted') {
      room.remove(entry)
      room.tell(entry, { kind })
    } else if (hasLease()) admit(entry, 0)
    settled()
  }

  /** Grants that are heard in one turn are acknowledged together: under load there are many. */
  function granted(id: string): void {
    const entry = room.find(id)
    if (!entry) return leave(id)
    if (!entry.isWaiting || entry.isAcknowledging) return
    entry.isAcknowledging = true
    if (heard.push(entry) === 1) queueMicrotask(acknowledge)
  }

  /** A grant is taken only if Redis agrees that it still stands: this replica may have been asleep. */
  function acknowledge(): void {
    // Whoever left in the same turn has told Redis so.
    const entries = heard.filter(({ isWaiting }) => isWaiting)
    heard = []
    if (isOver || entries.length === 0) return
    const ids = entries.map(({ id }) => id)
    remote.acknowledge(member, ids).then((areOurs) => {
      if (isOver) return
      for (const entry of entries) entry.isAcknowledging = false
      if (!areOurs) return joinAgain()
      if (!hasLease()) return
      for (const entry of entries) if (entry.isWaiting) admit(entry, clock.monotonic() - entry.arrivedAtMs)
      settled()
    }, ignore)
  }

  function admit(entry: RemoteEntry, waitMs: number): void {
    room.hold(entry)
    share.spend(entry.cost)
    room.tell(entry, { kind: 'admitted', waitMs })
  }

  function hasLease(): boolean {
    if (share.isLeased()) return true
    joinAgain()
    return false
  }

  function beat(): void {
    if (!hasLease()) return
    const sentAtMs = clock.monotonic()
    remote.beat(member, share.promised()).then((answer) => {
      if (isOver) return
      if (!answer) return joinAgain()
      share.renew(sentAtMs)
      share.promise(answer.promised)
      for (const id of answer.unheard) granted(id)
    }, ignore)
  }

  return {
    enter,
    leave,
    beat,
    hear(id: string, what: string): void {
      const entry = room.find(id)
      if (what === 'recall') {
        share.recall()
        beat()
      } else if (what.startsWith('granted')) granted(id)
      else if (entry?.isWaiting) answered(entry, [what as EnterAnswer[0]])
    },
    end: () => void (isOver = true),
  }
}

export type Session = ReturnType<typeof openSession>

/** Whatever went wrong, the link is lost or will be, and joining again says what still matters. */
function ignore(): undefined {}
