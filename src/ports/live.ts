import type { LaneStatus } from '../core/admission/lane.ts'

/** What the service was doing at one moment. */
export interface Sample {
  /** Names the sample, also after a restart: `<start>-<number>`. */
  readonly id: string
  readonly at: number
  readonly lanes: ReadonlyMap<string, LaneStatus>
  readonly waits: ReadonlyMap<string, WaitFigures>
}

/** How long the requests of the last minutes waited in one lane. */
export interface WaitFigures {
  readonly requests: number
  readonly p50: number
  readonly p95: number
}

/** Samples every few seconds, for people who watch. The last ones are kept, so that nobody misses any. */
export interface LiveFeed {
  /** The kept samples after this id, or all of them if it is not known any more. */
  since(id: string | undefined): readonly Sample[]
  /** `closed` is called once if the feed ends first. Returns the function that ends the subscription. */
  subscribe(take: (sample: Sample) => void, closed: () => void): () => void
  /** A request that was settled. */
  settled(row: { readonly lane: string; readonly queueWaitMs: number }): void
  close(): void
}
