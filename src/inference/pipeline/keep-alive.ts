import type { AlarmClock } from '../../shared/clock.ts'

/** Well below the idle timeouts of clients and proxies. */
export const IDLE_MS = 15_000

/** Sends pings on a stream while its engine works and nothing else is sent. */
export interface KeepAlive {
  /** The engine has answered. Starts the timer unless it is running. */
  start(): void
  /** Something was sent. */
  sent(): void
  stop(): void
}

/**
 * Calls `ping` whenever nothing was sent for a while. Starts once the engine has answered, so nothing is sent to a
 * request that is still queued, and a refusal keeps its status. There is one timer, however many tokens are sent.
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
