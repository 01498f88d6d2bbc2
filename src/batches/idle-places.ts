import type { Admission } from '../queue/admission.ts'
import type { AlarmClock } from '../shared/clock.ts'

/** Lets lines of batches into a lane while no other request waits there, and only into half of its places. */
export interface IdlePlaces {
  /** Resolves with a function that gives the place back. Rejects if the signal is aborted first. */
  enter(lane: string, signal: AbortSignal): Promise<() => void>
}

const POLL_MS = 50

interface Lane {
  readonly waiting: { begin(): void }[]
  running: number
  isPolling: boolean
}

export function idlePlaces(admission: Pick<Admission, 'ownStatus'>, clock: AlarmClock): IdlePlaces {
  const lanes = new Map<string, Lane>()

  function hasRoom(name: string, { running }: Lane): boolean {
    const status = admission.ownStatus().get(name)
    // A lane that is not open refuses the line, with the reason.
    if (!status) return true
    const { inFlightRequests, queueDepth, limits } = status
    const most = limits.maxConcurrentRequests
    return queueDepth === 0 && inFlightRequests < most && running < Math.max(1, Math.floor(most / 2))
  }

  function letIn(name: string, lane: Lane): void {
    while (lane.waiting.length > 0 && hasRoom(name, lane)) {
      lane.running++
      lane.waiting.shift()?.begin()
    }
    if (lane.waiting.length === 0 || lane.isPolling) return
    lane.isPolling = true
    clock.after(POLL_MS, () => {
      lane.isPolling = false
      letIn(name, lane)
    })
  }

  return {
    enter(name, signal) {
      const lane = lanes.get(name) ?? { waiting: [], running: 0, isPolling: false }
      lanes.set(name, lane)
      const leave = (): void => {
        lane.running--
        letIn(name, lane)
      }
      return new Promise((resolve, reject) => {
        signal.throwIfAborted()
        const abort = (): void => {
          lane.waiting.splice(lane.waiting.indexOf(waiter), 1)
          reject(signal.reason as Error)
        }
        const waiter = {
          begin() {
            signal.removeEventListener('abort', abort)
            resolve(leave)
          },
        }
        signal.addEventListener('abort', abort, { once: true })
        lane.waiting.push(waiter)
        letIn(name, lane)
      })
    },
  }
}
