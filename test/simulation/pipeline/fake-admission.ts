import { memoryAdmission } from '../../../src/queue/memory.ts'
import type { ErrorCode } from '../../../src/shared/errors.ts'
import type { Admission, BatchArrival, Decision, Ticket } from '../../../src/queue/admission.ts'
import type { AlarmClock } from '../../../src/shared/clock.ts'
import type { RequestSeen } from './request-seen.ts'
import type { Stage } from './stage.ts'

const requestsMax = 8
/** The cost identifies the request, because a lane is given nothing else about it. */
export const costOf = (tokens: number, index: number): number => tokens * requestsMax + index

/** The real in-memory admission. Now and then it says that it cannot be reached. */
export function fakeAdmission(stage: Stage, clock: AlarmClock): { lanes: Admission; admission: Admission } {
  const lanes = memoryAdmission(clock)

  function refuseAsUnavailable(seen: RequestSeen, decided: (decision: Decision) => void): void {
    if (stage.chance(0.5)) return decided({ kind: 'unavailable' })
    stage.later(() => {
      if (seen.place === 'waiting') decided({ kind: 'unavailable' })
      return false
    })
  }

  return {
    lanes,
    admission: {
      ...lanes,
      enter(arrival, decided) {
        const { cost } = arrival
        const seen = stage.requests[cost % requestsMax]!
        stage.demand(
          seen.place === 'outside' && seen.hold === 'granted',
          'outcome',
          seen,
          'it enters twice, or without a hold',
        )
        stage.demand(!seen.isGone, 'end', seen, 'a caller that has left enters the queue')
        seen.place = 'waiting'
        let inLane: Ticket | undefined
        const ticket: Ticket = {
          leave() {
            leaveLane(stage, seen)
            inLane?.leave()
          },
          keep: () => inLane?.keep() ?? true,
        }
        const watched = ({ maxWaitMs, preempted }: BatchArrival): BatchArrival => ({
          maxWaitMs,
          preempted() {
            stage.log(seen, 'preempted')
            stage.count('preempted')
            stage.demand(!seen.isOpen, 'outcome', seen, 'it is preempted although its answer has begun')
            seen.isPreempted = true
            preempted()
          },
        })
        const receive = (decision: Decision): void => {
          stage.log(seen, decision.kind)
          stage.count(decision.kind)
          seen.place = decision.kind === 'admitted' ? 'admitted' : 'refused'
          if (decision.kind === 'admitted') seen.waitMs = seen.waitedMs + Math.round(decision.waitMs)
          else seen.refusal = (arrival.batch && batchRefusals[decision.kind]) ?? refusals[decision.kind]
          decided(decision, ticket)
        }
        if (stage.chance(0.03)) refuseAsUnavailable(seen, receive)
        else
          inLane = lanes.enter(
            { ...arrival, workspace: 'acme', batch: arrival.batch && watched(arrival.batch) },
            (decision, realTicket) => {
              inLane = realTicket
              receive(decision)
            },
          )
        return ticket
      },
    },
  }
}

const refusals: Readonly<Record<Exclude<Decision['kind'], 'admitted'>, ErrorCode>> = {
  queue_full: 'queue_full',
  workspace_queue_full: 'workspace_queue_full',
  overloaded: 'model_overloaded',
  too_large: 'token_budget_exceeded',
  closed: 'service_unavailable',
  unavailable: 'service_unavailable',
}

/** Of requests that want idle capacity. */
const batchRefusals: Partial<typeof refusals> = { queue_full: 'no_idle_capacity', overloaded: 'no_idle_capacity' }

function leaveLane(stage: Stage, seen: RequestSeen): void {
  stage.log(seen, `gives its place back (${seen.place})`)
  if (seen.place === 'waiting') {
    stage.demand(seen.isGone, 'capacity', seen, 'a caller that is there leaves the queue')
    seen.place = 'left the queue'
    return
  }
  stage.demand(seen.place === 'admitted', 'capacity', seen, `it gives its place back when it is ${seen.place}`)
  stage.demand(!seen.isEngineBusy, 'capacity', seen, 'capacity is given back while the engine is busy')
  seen.place = 'released'
}
