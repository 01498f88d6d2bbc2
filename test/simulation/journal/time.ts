/** Time that the simulation advances. `setTimeout` follows it while it is taken. */
export interface SimulatedTime {
  readonly clock: { now(): number; monotonic(): number }
  advance(ms: number): void
  giveBack(): void
}

export function takeTime(): SimulatedTime {
  const { setTimeout: realSet, clearTimeout: realClear } = globalThis
  let now = 1000
  let timers: { readonly at: number; run(): void }[] = []
  globalThis.setTimeout = ((run: () => void, ms: number) => {
    const timer = { at: now + ms, run }
    timers.push(timer)
    return timer
  }) as never
  globalThis.clearTimeout = (timer: unknown): void => {
    timers = timers.filter((it) => it !== timer)
  }
  return {
    clock: { now: () => 1_700_000_000_000 + now, monotonic: () => now },
    advance(ms) {
      now += ms
      const due = timers.filter(({ at }) => at <= now)
      timers = timers.filter(({ at }) => at > now)
      for (const { run } of due) run()
    },
    giveBack() {
      globalThis.setTimeout = realSet
      globalThis.clearTimeout = realClear
    },
  }
}

/** Long enough for every chain of promises to end. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
