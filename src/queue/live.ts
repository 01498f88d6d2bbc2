import type { LaneLoad } from './admission.ts'

/** The load of the service at one moment. */
export interface Sample {
  /** Unique across restarts: `<start>-<number>`. */
  readonly id: string
  readonly at: number
  readonly lanes: ReadonlyMap<string, LaneLoad>
  /** Only lanes that have admitted a request in the last five minutes. */
  readonly waits: ReadonlyMap<string, WaitFigures>
  /** How many requests this replica has admitted to each lane since it started. */
  readonly admitted: ReadonlyMap<string, number>
}

/** How long requests waited that one lane has admitted in the last five minutes. */
export interface WaitFigures {
  /** Estimated for all replicas, assuming that each admits as many as this one. */
  readonly perMinute: number
  readonly p50: number
  readonly p95: number
}

/** A sample every few seconds, for live pages. Recent samples are kept, so that a page that reconnects misses none. */
export interface LiveFeed {
  /** The kept samples after this id, or all of them if the id is no longer known. */
  since(id: string | undefined): readonly Sample[]
  /** Calls `closed` once if the feed ends first. Returns a function that ends the subscription. */
  subscribe(take: (sample: Sample) => void, closed: () => void): () => void
  /** Records that a request was admitted. */
  admitted(lane: string, waitMs: number): void
  close(): void
}
