import type { AlarmClock } from '../../src/shared/clock.ts'

/** A clock whose timers ring when the test lets time pass. Unlike a hand clock, it leaves the timers of the process alone. */
export function manualClock() {
  let nowMs = 10_000
  const alarms = new Set<{ readonly atMs: number; ring(): void }>()
  const clock: AlarmClock = {
    now: () => nowMs,
    monotonic: () => nowMs,
    after(ms, ring) {
      const alarm = { atMs: nowMs + ms, ring }
      alarms.add(alarm)
      return () => alarms.delete(alarm)
    },
  }
  return {
    clock,
    alarms,
    advance(ms: number): void {
      nowMs += ms
      for (const alarm of alarms) if (alarm.atMs <= nowMs && alarms.delete(alarm)) alarm.ring()
    },
  }
}
