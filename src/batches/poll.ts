import type { AlarmClock } from '../shared/clock.ts'

const POLL_MS = 1000
const MAX_POLL_MS = 10_000

/** Asks the store for work: at once when woken, and else again and again, less and less often while there is none. */
export interface Poll {
  wake(): void
  /** Begins nothing new. Resolves when what has begun is done. */
  close(): Promise<void>
}

/** `work` does what there is to do. False: there was nothing. */
export function openPoll(clock: AlarmClock, work: () => Promise<boolean>): Poll {
  let working: Promise<void> | undefined
  let isWoken = false
  let isClosed = false
  let pauseMs = POLL_MS
  let stopTimer = clock.after(0, wake)

  function wake(): void {
    if (isClosed) return
    isWoken = true
    working ??= workAll().finally(() => (working = undefined))
  }

  async function workAll(): Promise<void> {
    stopTimer()
    let isBusy = false
    while (isWoken) {
      isWoken = false
      isBusy = (await work()) || isBusy
    }
    pauseMs = isBusy ? POLL_MS : Math.min(2 * pauseMs, MAX_POLL_MS)
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
