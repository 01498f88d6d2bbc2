import { setTimeout as sleep } from 'node:timers/promises'

/** Counts are kept by the minute of the wall clock: waits for the next one where this one is nearly over. */
export async function roomInThisMinute(ms = 5000): Promise<void> {
  const left = 60_000 - (Date.now() % 60_000)
  if (left < ms) await sleep(left + 20)
}
