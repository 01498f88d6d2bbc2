import type { MockTimers } from 'node:test'
import type { Clock } from '../../src/ports/clock.ts'

export interface HandClock extends Clock {
  /** Lets time pass; timers that become due fire, as late as the step is long. */
  advance(ms: number): void
}

/** A clock that moves by hand, and the timers with it. */
export function handClock(timers: MockTimers): HandClock {
  timers.enable({ apis: ['setTimeout'] })
  let nowMs = 1000
  return {
    now: () => Date.UTC(2026, 0),
    monotonic: () => nowMs,
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
