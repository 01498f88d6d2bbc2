import type { Job } from '../../engines/job.ts'
import type { ContradictedCounts } from '../../engines/contradicted-counts.ts'

/** Lanes are defined by the catalog, but a service may see many catalogs. */
const MAX_LANES = 10_000

interface DoubtfulCounts {
  /** Whether it is the first one for its deployment. */
  add(job: Job, counted: number): boolean
  list(): readonly ContradictedCounts[]
}

/** Remembers which deployments have engines whose counts contradict the text, for the log and for `weir doctor`. */
export function doubtfulCounts(): DoubtfulCounts {
  const byLane = new Map<string, ContradictedCounts>()
  return {
    add({ deployment: { lane, engine }, expectedInput: { least, most } = { least: 0, most: 0 } }, counted) {
      const earlier = byLane.get(lane)
      if (!earlier && byLane.size >= MAX_LANES) return false
      const answers = (earlier?.answers ?? 0) + 1
      byLane.set(lane, { lane, kind: engine?.kind ?? '', answers, counted, least, most })
      return earlier === undefined
    },
    list: () => [...byLane.values()],
  }
}
