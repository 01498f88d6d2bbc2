import type { AlarmClock } from '../../shared/clock.ts'
import type { BatchArrival, LaneArrival, LaneLoad, Ticket } from '../admission.ts'
import type { Decided } from '../lane-adapter.ts'
import { batchLimitsOf } from '../batch-places.ts'
import type { ReplicaLane } from './replica-lane.ts'

/**
 * Lets batch places of this replica into a lane that replicas share. The scripts in Redis do not know batch places yet, so
 * they enter as online requests: only while no request waits in the lane, and only while half of its places and of its
 * tokens are free. They are not preempted.
 */
export interface BatchGate {
  enter(arrival: LaneArrival, batch: BatchArrival, decided: Decided): Ticket
  /** Refuses the places that wait here. It is not entered again. */
  close(): void
}

const POLL_MS = 50

interface WaitingPlace {
  readonly cost: number
  begin(): void
  refuse(kind: 'overloaded' | 'closed'): void
}

export function openBatchGate(lane: Pick<ReplicaLane, 'enter' | 'status' | 'ownStatus'>, clock: AlarmClock): BatchGate {
  /** In the order of arrival. */
  const waiting = new Set<WaitingPlace>()
  let isPolling = false

  function poll(): void {
    if (isPolling || waiting.size === 0) return
    isPolling = true
    clock.after(POLL_MS, () => {
      lane
        .status()
        .then(letIn)
        // Redis cannot be reached: the places go on waiting.
        .catch(() => {})
        .finally(() => {
          isPolling = false
          poll()
        })
    })
  }

  /** Only a quarter of the room at a time, because the other replicas see the same room. */
  function letIn({ limits, inFlightRequests, committedTokens, queueDepth }: LaneLoad): void {
    if (queueDepth > 0) return
    const room = Math.max(1, Math.floor(limits.maxConcurrentRequests / 2)) - inFlightRequests
    let tokens = Math.floor(limits.tokenBudget / 2) - committedTokens
    let places = Math.ceil(room / 4)
    for (const place of waiting) {
      const isAlone = inFlightRequests === 0 && places === Math.ceil(room / 4)
      if (places <= 0 || (place.cost > tokens && !isAlone)) return
      places -= 1
      tokens -= place.cost
      waiting.delete(place)
      place.begin()
    }
  }

  return {
    enter(arrival, { maxWaitMs }, decided) {
      let inside: Ticket | undefined
      let stopTimer = (): void => {}
      const place: WaitingPlace = {
        cost: arrival.cost,
        begin() {
          stopTimer()
          inside = lane.enter({ ...arrival, batch: undefined }, (decision) => decided(decision, ticket))
        },
        refuse(kind) {
          stopTimer()
          waiting.delete(place)
          decided({ kind }, ticket)
        },
      }
      const ticket: Ticket = {
        leave() {
          stopTimer()
          waiting.delete(place)
          inside?.leave()
        },
        keep: () => true,
      }
      const { limits } = lane.ownStatus()
      if (arrival.cost > limits.tokenBudget) decided({ kind: 'too_large' }, ticket)
      else if (waiting.size >= batchLimitsOf(limits).maxQueueDepth) decided({ kind: 'queue_full' }, ticket)
      else {
        waiting.add(place)
        if (maxWaitMs < Infinity) stopTimer = clock.after(maxWaitMs, () => place.refuse('overloaded'))
        poll()
      }
      return ticket
    },
    close() {
      for (const place of waiting) place.refuse('closed')
    },
  }
}
