import type { AlarmClock } from '../../../src/shared/clock.ts'

interface Alarm {
  readonly atMs: number
  readonly owner: string
  readonly callback: () => void
}

/** Time that is moved by hand, for all parts of a schedule. */
export class FakeTime {
  nowMs = 1000
  readonly #alarms: Alarm[] = []

  clockOf(owner: string): AlarmClock {
    return {
      now: () => 1_800_000_000_000 + this.nowMs,
      monotonic: () => this.nowMs,
      after: (ms, callback) => {
        const alarm: Alarm = { atMs: this.nowMs + ms, owner, callback }
        this.#alarms.push(alarm)
        return () => this.#remove(alarm)
      },
    }
  }

  pendingAlarms(owner: string): number {
    return this.#alarms.filter((alarm) => alarm.owner === owner).length
  }

  pass(ms: number): void {
    const untilMs = this.nowMs + ms
    for (;;) {
      let next: Alarm | undefined
      for (const alarm of this.#alarms) if (next === undefined || alarm.atMs < next.atMs) next = alarm
      if (next === undefined || next.atMs > untilMs) break
      this.nowMs = Math.max(this.nowMs, next.atMs)
      this.#remove(next)
      next.callback()
    }
    this.nowMs = untilMs
  }

  #remove(alarm: Alarm): void {
    const at = this.#alarms.indexOf(alarm)
    if (at >= 0) this.#alarms.splice(at, 1)
  }
}
