import type { PullProgress } from './model-files.ts'

/** Tells the fetching program what to fetch. */
export interface PullOrder {
  readonly directory: string
  readonly slug: string
  readonly environment: NodeJS.ProcessEnv
}

/** What the fetching program reports. The last message has an `end`. */
export type PullMessage =
  | { readonly progress: PullProgress }
  | { readonly end: 'ready' }
  | { readonly end: 'failed'; readonly reason: string }
