import type { Lane, Place } from './lane.ts'
import type { AlarmClock } from '../shared/clock.ts'

/** Node fires a timer with a longer delay at once. After this delay the timer is set again. */
const timerMsMax = 2 ** 31 - 1

/** One timer for a lane, set for the earliest deadline. */
export function expiryTimer<P extends Place>(lane: Lane<P>, clock: AlarmClock, settled: () => void) {
  let cancel: (() => void) | undefined
  let setForMs = Infinity

  function set(): void {
    const deadlineMs = lane.nextDeadlineMs()
    // If the deadline has moved back, one early wake-up costs less than a new timer for every request.
    if (deadlineMs >= setForMs) return
    cancel?.()
    setForMs = deadlineMs
    cancel = clock.after(Math.min(Math.ceil(deadlineMs - clock.monotonic()), timerMsMax), fire)
  }

  function fire(): void {
    setForMs = Infinity
    lane.expire(clock.monotonic())
    settled()
  }

  function stop(): void {
    cancel?.()
    setForMs = Infinity
  }

  return { set, stop }
}
