import type { AlarmClock } from '../shared/clock.ts'

/** How long to wait while nothing is expected. Only claims of a replica that has died end without a notification. */
export const POLL_IDLE_MS = 10_000

/** Looks for work: at once when woken, and else again and again. */
export interface Poll {
  wake(): void
  /** Begins nothing new. Resolves when what has begun is done. */
  close(): Promise<void>
}

/** `work` does what there is to do, and resolves with the time until it looks again. */
export function openPoll(clock: AlarmClock, work: () => Promise<number>): Poll {
  let working: Promise<void> | undefined
  let isWoken = false
  let isClosed = false
  let stopTimer = clock.after(0, wake)

  function wake(): void {
    if (isClosed) return
    isWoken = true
    working ??= workAll().finally(() => (working = undefined))
  }

  async function workAll(): Promise<void> {
    stopTimer()
    let pauseMs = POLL_IDLE_MS
    while (isWoken) {
      isWoken = false
      pauseMs = await work()
    }
    if (!isClosed) stopTimer = clock.after(pauseMs, wake)
  }

  return {
    wake,
    async close() {
      isClosed = true
      isWoken = false
      stopTimer()
      await working
    },
  }
}
