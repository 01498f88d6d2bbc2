import { randomFillSync } from 'node:crypto'

const RANDOM_BYTES = 12

/** Random bytes for many ids: fetching a few at a time takes longer than the rest of the id. */
const pool = Buffer.alloc(256 * RANDOM_BYTES)
let used = pool.length

let timeMs = 0
let timeText = ''

/** Ids sort by time, so that new ledger rows are added at the end of the index. 32 letters and digits. */
export function newRequestId(): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += RANDOM_BYTES
  return startOfId(Date.now()) + pool.toString('hex', used - RANDOM_BYTES, used).slice(1)
}

function startOfId(now: number): string {
  if (now !== timeMs) {
    timeMs = now
    timeText = now.toString(36).padStart(9, '0')
  }
  return timeText
}
