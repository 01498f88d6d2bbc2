import type { MockTimers } from 'node:test'
import type { AlarmClock } from '../../src/ports/clock.ts'
import { systemClock } from '../../src/system-clock.ts'

export interface HandClock extends AlarmClock {
  /** Lets time pass. Timers that become due fire, as late as the step is long. */
  advance(ms: number): void
}

/** A clock that is moved by hand, and the timers with it. */
export function handClock(timers: MockTimers): HandClock {
  timers.enable({ apis: ['setTimeout'] })
  let nowMs = 1000
  return {
    now: () => Date.UTC(2026, 0),
    monotonic: () => nowMs,
    after: systemClock.after,
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
