import type { LaneLimits } from '../lane.ts'
import { noTicket, type Admission, type LaneLoad } from '../admission.ts'
import type { AlarmClock } from '../../shared/clock.ts'
import type { CoordinationState } from '../../cluster/coordination.ts'
import type { RedisLink } from '../../cluster/redis/link.ts'
import { openReplicaLane, type ReplicaLane } from './replica-lane.ts'
import { scripts } from './lane-scripts.ts'

export interface RedisAdmission extends Admission {
  /** Leaves every lane at shutdown, so that other replicas need not wait for the lease to end. */
  leaveLanes(): Promise<void>
  /** The worst state among the lanes. */
  state(): CoordinationState
}

/** Admission across all replicas: each lane has one queue, kept in Redis. */
export function redisAdmission(link: RedisLink, clock: AlarmClock): RedisAdmission {
  const openLanes = new Map<string, ReplicaLane>()
  const byKey = new Map<string, ReplicaLane>()
  let isClosed = false
  let entered = 0

  function addLane(name: string, limits: LaneLimits): void {
    const lane = openReplicaLane(name, limits, {
      link,
      clock,
      // The scripts know a batch place by its id.
      nextId: ({ workspace, batch }) => `${batch ? 'batch ' : ''}${link.replica}.${++entered} ${workspace}`,
      onVacant() {
        if (openLanes.get(name) !== lane) return
        openLanes.delete(name)
        byKey.delete(lane.key)
      },
    })
    openLanes.set(name, lane)
    byKey.set(lane.key, lane)
    lane.join()
  }

  link.follow({
    scripts: Object.values(scripts),
    channels: [`weir:told:${link.replica}`],
    joined: () => openLanes.forEach((lane) => lane.join()),
    lost: () => openLanes.forEach((lane) => lane.connectionLost()),
    heartbeat: () => openLanes.forEach((lane) => lane.heartbeat()),
    receive(_channel, message) {
      const [key = '', id = '', event = ''] = message.split('\n')
      byKey.get(key)?.receive(id, event)
    },
  })

  return {
    setLanes(lanes) {
      for (const [name, lane] of openLanes) if (!lanes.has(name)) lane.retire()
      for (const [name, limits] of lanes) {
        const lane = openLanes.get(name)
        if (lane !== undefined) lane.setLimits(limits)
        else if (!isClosed) addLane(name, limits)
      }
    },
    enter(arrival, decided) {
      const lane = openLanes.get(arrival.lane)
      if (lane !== undefined) return lane.enter(arrival, decided)
      decided({ kind: 'closed' }, noTicket)
      return noTicket
    },
    async status() {
      const loads = await Promise.all([...openLanes].map(async ([name, lane]) => [name, await lane.status()] as const))
      return new Map<string, LaneLoad>(loads)
    },
    ownStatus: () => new Map([...openLanes].map(([name, lane]) => [name, lane.ownStatus()])),
    close() {
      isClosed = true
      for (const lane of openLanes.values()) lane.close()
    },
    state() {
      const states = new Set([...openLanes.values()].map((lane) => lane.state()))
      return states.has('stopped') ? 'stopped' : states.has('apart') ? 'apart' : 'joined'
    },
    leaveLanes: async () => void (await Promise.all([...openLanes.values()].map((lane) => lane.leaveLane()))),
  }
}
