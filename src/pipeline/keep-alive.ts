import type { AlarmClock } from '../ports/clock.ts'

/** Well below the idle timeouts of clients and proxies. */
export const IDLE_MS = 15_000

/** Watches a stream for silence while its engine works. */
export interface KeepAlive {
  /** The engine has answered. Starts the watch, unless it runs. */
  start(): void
  /** Something was sent. */
  sent(): void
  stop(): void
}

/**
 * Calls `ping` whenever nothing was sent for a while. It starts when the engine has answered, so a request that waits in
 * the queue stays silent, and a refusal keeps its status. One alarm runs at a time, however many tokens are sent.
 */
export function keepAlive(clock: AlarmClock, ping: (() => void) | undefined): KeepAlive {
  let cancel: (() => void) | undefined
  let lastAt = 0

  function watch(ms: number): void {
    cancel = clock.after(ms, () => {
      const left = lastAt + IDLE_MS - clock.monotonic()
      if (left > 0) return watch(left)
      lastAt = clock.monotonic()
      ping?.()
      watch(IDLE_MS)
    })
  }

  return {
    start() {
      if (!ping || cancel) return
      lastAt = clock.monotonic()
      watch(IDLE_MS)
    },
    sent() {
      if (ping) lastAt = clock.monotonic()
    },
    stop() {
      cancel?.()
      cancel = undefined
    },
  }
}
