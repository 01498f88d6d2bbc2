import type { PullProgress } from './model-files.ts'

/** Tells the download program what to download: a model, or the runtime that every model needs. */
export type PullOrder = { readonly environment: NodeJS.ProcessEnv } & (
  | { readonly directory: string; readonly slug: string }
  | { readonly installation: string }
)

/** What the download program reports. The last message has an `end`. */
export type PullMessage =
  | { readonly progress: PullProgress }
  | { readonly end: 'ready' }
  | { readonly end: 'failed'; readonly reason: string }
