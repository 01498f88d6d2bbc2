import type { LaneLoad } from './admission.ts'

/** What the service was doing at one moment. */
export interface Sample {
  /** Names the sample, also after a restart: `<start>-<number>`. */
  readonly id: string
  readonly at: number
  readonly lanes: ReadonlyMap<string, LaneLoad>
  /** Of each lane that has admitted a request in the last five minutes. */
  readonly waits: ReadonlyMap<string, WaitFigures>
  /** How many requests this replica has admitted to each lane since it started. */
  readonly admitted: ReadonlyMap<string, number>
}

/** How long the requests waited that one lane admitted in the last minutes. */
export interface WaitFigures {
  /** Over all replicas, taking them to admit as many as this one. */
  readonly perMinute: number
  readonly p50: number
  readonly p95: number
}

/** Samples every few seconds, for people who watch. The last ones are kept, so that nobody misses any. */
export interface LiveFeed {
  /** The kept samples after this id, or all of them if it is not known any more. */
  since(id: string | undefined): readonly Sample[]
  /** `closed` is called once if the feed ends first. Returns the function that ends the subscription. */
  subscribe(take: (sample: Sample) => void, closed: () => void): () => void
  /** A request was admitted. */
  admitted(lane: string, waitMs: number): void
  close(): void
}
