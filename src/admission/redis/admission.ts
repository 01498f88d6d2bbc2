import type { LaneLimits } from '../../core/admission/lane.ts'
import type { Admission, LaneLoad, Ticket } from '../../ports/admission.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { CoordinationState } from '../../ports/coordination.ts'
import type { RedisLink } from '../../redis/link.ts'
import { openDesk, type Desk } from './desk.ts'
import { scripts } from './lane-scripts.ts'

const nowhere: Ticket = Object.freeze({ leave() {} })

export interface RedisAdmission extends Admission {
  /** Gives up every lane, so that others need not wait for the lease. */
  part(): Promise<void>
  /** Of the lane that is worst off. */
  state(): CoordinationState
}

/** Admission over all replicas: one queue for each lane, in Redis. */
export function redisAdmission(link: RedisLink, clock: AlarmClock): RedisAdmission {
  const desks = new Map<string, Desk>()
  const byName = new Map<string, Desk>()
  let isClosed = false
  let entered = 0

  function openLaneDesk(lane: string, limits: LaneLimits): void {
    const desk = openDesk(lane, limits, {
      link,
      clock,
      nextId: () => `${link.replica}.${++entered}`,
      onVacant() {
        if (desks.get(lane) !== desk) return
        desks.delete(lane)
        byName.delete(desk.name)
      },
    })
    desks.set(lane, desk)
    byName.set(desk.name, desk)
    desk.join()
  }

  link.follow({
    scripts: Object.values(scripts),
    channels: [`weir:told:${link.replica}`],
    joined: () => desks.forEach((desk) => desk.join()),
    lost: () => desks.forEach((desk) => desk.goApart()),
    beat: () => desks.forEach((desk) => desk.beat()),
    hear(_channel, message) {
      const [name = '', id = '', what = ''] = message.split('\n')
      byName.get(name)?.hear(id, what)
    },
  })

  return {
    setLanes(lanes) {
      for (const [lane, desk] of desks) if (!lanes.has(lane)) desk.retire()
      for (const [lane, limits] of lanes) {
        const desk = desks.get(lane)
        if (desk !== undefined) desk.setLimits(limits)
        else if (!isClosed) openLaneDesk(lane, limits)
      }
    },
    enter(lane, cost, decided) {
      const desk = desks.get(lane)
      if (desk !== undefined) return desk.enter(cost, decided)
      decided({ kind: 'closed' }, nowhere)
      return nowhere
    },
    async status() {
      const found = await Promise.all([...desks].map(async ([lane, desk]) => [lane, await desk.status()] as const))
      return new Map<string, LaneLoad>(found)
    },
    ownStatus: () => new Map([...desks].map(([lane, desk]) => [lane, desk.own()])),
    close() {
      isClosed = true
      for (const desk of desks.values()) desk.close()
    },
    state() {
      const states = new Set([...desks.values()].map((desk) => desk.state()))
      return states.has('stopped') ? 'stopped' : states.has('apart') ? 'apart' : 'joined'
    },
    part: async () => void (await Promise.all([...desks.values()].map((desk) => desk.part()))),
  }
}
