import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** How long earlier starts of each engine took, or how long it took to wake up. Kept over restarts of the service. */
export interface StartTimes {
  add(lane: string, ms: number): void
  /** In the order in which they happened. */
  of(lane: string): readonly number[]
  /** The median; undefined: it has never started. */
  expectedMs(lane: string): number | undefined
}

const KEPT = 5
/** Lanes that a catalog no longer has go first. */
const MAX_LANES = 1000

export function startTimes(path: string): StartTimes {
  const times = new Map(Object.entries(read(path)))
  return {
    add(lane, ms) {
      const latest = [...(times.get(lane) ?? []), Math.round(ms)].slice(-KEPT)
      times.delete(lane)
      times.set(lane, latest)
      const [oldest] = times.keys()
      if (times.size > MAX_LANES) times.delete(oldest ?? '')
      try {
        mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
        writeFileSync(path, JSON.stringify(Object.fromEntries(times)), { mode: 0o600 })
      } catch {
        // A full disk: the times are kept until the service ends.
      }
    },
    of: (lane) => times.get(lane) ?? [],
    expectedMs(lane) {
      const sorted = (times.get(lane) ?? []).toSorted((one, other) => one - other)
      return sorted[Math.floor(sorted.length / 2)]
    },
  }
}

function read(path: string): Readonly<Record<string, readonly number[]>> {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Readonly<Record<string, readonly number[]>>
  } catch {
    return {}
  }
}
