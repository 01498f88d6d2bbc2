import { learnedFile } from './learned-file.ts'

/** How long earlier starts of each engine took, or how long it took to wake up. */
export interface StartTimes {
  add(lane: string, ms: number): void
  /** In the order in which they happened. */
  of(lane: string): readonly number[]
  /** The median; undefined: it has never started. */
  expectedMs(lane: string): number | undefined
}

const KEPT = 5

export function startTimes(path: string): StartTimes {
  const times = learnedFile<readonly number[]>(path)
  const of = (lane: string): readonly number[] => times.get(lane) ?? []
  return {
    add: (lane, ms) => times.set(lane, [...of(lane), Math.round(ms)].slice(-KEPT)),
    of,
    expectedMs(lane) {
      const sorted = of(lane).toSorted((one, other) => one - other)
      return sorted[Math.floor(sorted.length / 2)]
    },
  }
}
