import type { MockTimers } from 'node:test'
import type { AlarmClock } from '../../src/shared/clock.ts'
import { systemClock } from '../../src/shared/system-clock.ts'

export interface HandClock extends AlarmClock {
  /** Lets time pass. Timers that become due fire, as late as the step is long. */
  advance(ms: number): void
  /** How many timers are set that have not fired. */
  pending(): number
}

/** Far more than any test needs. A timer that sets itself again at once would otherwise never let time pass. */
const ALARMS_MAX = 10_000

/** A clock that is moved by hand, and the timers with it. */
export function handClock(timers: MockTimers): HandClock {
  timers.enable({ apis: ['setTimeout'] })
  let nowMs = 1000
  let alarms = 0
  const set = new Set<object>()
  return {
    now: () => Date.UTC(2026, 0),
    monotonic: () => nowMs,
    after(ms, ring) {
      if (++alarms > ALARMS_MAX) throw new Error(`more than ${ALARMS_MAX} timers were set`)
      const alarm = {}
      set.add(alarm)
      const cancel = systemClock.after(ms, () => {
        set.delete(alarm)
        ring()
      })
      return () => {
        set.delete(alarm)
        cancel()
      }
    },
    pending: () => set.size,
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
