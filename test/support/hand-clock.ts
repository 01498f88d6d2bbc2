import type { MockTimers } from 'node:test'
import type { AlarmClock } from '../../src/shared/clock.ts'
import { systemClock } from '../../src/shared/system-clock.ts'

export interface HandClock extends AlarmClock {
  /** Lets time pass. Timers that become due fire, as late as the step is long. */
  advance(ms: number): void
}

/** Far more than any test needs. A timer that sets itself again at once would otherwise never let time pass. */
const ALARMS_MAX = 10_000

/** A clock that is moved by hand, and the timers with it. */
export function handClock(timers: MockTimers): HandClock {
  timers.enable({ apis: ['setTimeout'] })
  let nowMs = 1000
  let alarms = 0
  return {
    now: () => Date.UTC(2026, 0),
    monotonic: () => nowMs,
    after(ms, ring) {
      if (++alarms > ALARMS_MAX) throw new Error(`more than ${ALARMS_MAX} timers were set`)
      return systemClock.after(ms, ring)
    },
    advance(ms) {
      nowMs += ms
      timers.tick(ms)
    },
  }
}

/** One turn of the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
