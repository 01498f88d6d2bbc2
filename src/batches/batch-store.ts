import type { PicoAud } from '../shared/money/money.ts'
import type { StoredFile } from './file-store.ts'

/** `validating`, `in_progress`, `cancelling` and `finalizing` are followed by others; the rest are final. */
export type BatchState =
  | 'validating'
  | 'in_progress'
  | 'cancelling'
  | 'finalizing'
  | 'completed'
  | 'failed'
  | 'expired'
  | 'cancelled'

export type BatchEnding = 'completed' | 'failed' | 'expired' | 'cancelled'

export interface Batch {
  readonly id: string
  readonly workspaceId: string
  /** The key that created it, whose limits apply. */
  readonly keyId: string
  /** As the lines name it: below /v1. */
  readonly endpoint: string
  readonly inputFileId: string
  /** The name of the input file; null if it has been deleted. */
  readonly filename: string | null
  readonly inputBytes: number
  readonly place: string
  readonly completionWindow: string
  readonly metadata: Readonly<Record<string, string>> | null
  readonly state: BatchState
  /** The state that follows `finalizing`. */
  readonly ending: BatchEnding | null
  readonly counts: LineCounts
  readonly errors: BatchErrors | null
  /** null until it has ended: then they are counted. */
  readonly failures: readonly FailureKind[] | null
  readonly pause: BatchPause | null
  readonly outputFileId: string | null
  readonly errorFileId: string | null
  readonly createdAt: number
  readonly expiresAt: number
  readonly inProgressAt: number | null
  readonly finalizingAt: number | null
  readonly cancellingAt: number | null
  readonly endedAt: number | null
}

export interface LineCounts {
  readonly total: number
  readonly completed: number
  readonly failed: number
}

/** The lines that failed for the same reason. */
export interface FailureKind {
  readonly code: string
  readonly count: number
  /** The first of them. */
  readonly line: number
  readonly customId: string
  readonly message: string
}

/** What the lines of a batch have come to so far. */
export interface BatchProgress {
  /** The lines that have ended since the time in question. */
  readonly endedLines: number
  /** What they cost. */
  readonly amount: PicoAud
  readonly failures: readonly FailureKind[]
}

/** What is wrong with a batch or its input file. */
export interface BatchErrors {
  /** How many there are. Not all of them are listed. */
  readonly count: number
  readonly data: readonly BatchError[]
}

export interface BatchError {
  readonly code: string
  readonly message: string
  readonly param: string | null
  /** undefined: it concerns the whole batch. */
  readonly line?: number
}

/** Why no line is run now. */
export interface BatchPause {
  readonly code: string
  readonly message: string
  readonly since: number
}

/** A batch that this process has claimed, to check its input file or to write its results. */
export interface ClaimedBatch extends Batch {
  readonly claims: number
}

/** Consecutive lines of an input file. */
export interface LineRange {
  readonly firstLine: number
  readonly lines: number
  readonly byteStart: number
  readonly byteEnd: number
}

/** A range that this process has claimed. A later claim has another number, and results of the earlier one are refused. */
export interface ClaimedRange extends LineRange {
  readonly batchId: string
  readonly claims: number
}

/** How a line ended, or may end. `stored`: its answer is kept, and its ledger row may not be settled yet. */
export interface LineResult {
  readonly line: number
  readonly state: 'stored' | 'completed' | 'failed'
  readonly requestId: string
  /** Whose journal has the row of the request. */
  readonly owner: string
  /** Why it failed. */
  readonly errorCode: string | null
}

export interface WrittenResult extends LineResult {
  readonly range: ClaimedRange
  readonly body: string
}

export type NewBatch = Pick<
  Batch,
  | 'id'
  | 'workspaceId'
  | 'keyId'
  | 'endpoint'
  | 'inputFileId'
  | 'inputBytes'
  | 'place'
  | 'completionWindow'
  | 'metadata'
  | 'createdAt'
  | 'expiresAt'
>

export interface BatchQuery {
  /** undefined: of all workspaces. */
  readonly workspaceId: string | undefined
  /** The last batch of the page before. */
  readonly after?: Pick<Batch, 'createdAt' | 'id'> | undefined
  readonly limit: number
}

/** What a batch came to, with the files that have its results. */
export interface BatchEnd {
  readonly state: BatchEnding
  readonly counts: Pick<LineCounts, 'completed' | 'failed'>
  /** Why it has not all results. null if it has, or if it is known already. */
  readonly errors: BatchErrors | null
  readonly failures: readonly FailureKind[]
  readonly output: StoredFile | undefined
  readonly error: StoredFile | undefined
  readonly at: number
}

/** Ranges of lines, which processes claim for a limited time, and the results of lines. */
export interface LineStore {
  /** Removes the ranges that an interrupted check has left. */
  clearRanges(batch: ClaimedBatch): Promise<void>
  addRanges(batch: ClaimedBatch, ranges: readonly LineRange[]): Promise<void>
  /** Refuses results of ranges that are not done. */
  closeRanges(batch: ClaimedBatch): Promise<void>
  /** A page of ranges, in order. */
  ranges(batchId: string, after: number, limit: number): Promise<readonly LineRange[]>
  /**
   * Takes the first range that is free. None if the workspace would have more than `maxInFlight` lines without a result in
   * claimed ranges, of all processes together, unless it has none there.
   */
  claimRange(
    batch: Pick<Batch, 'id' | 'workspaceId'>,
    maxInFlight: number,
    now: number,
    leaseUntil: number,
  ): Promise<ClaimedRange | undefined>
  renewRanges(ranges: readonly ClaimedRange[], leaseUntil: number): Promise<void>
  /** Others can claim the range at once. */
  releaseRange(range: ClaimedRange): Promise<void>
  endRange(range: ClaimedRange): Promise<void>
  /** Removes some of the ranges and results of a batch that has ended. False: nothing is left. */
  clearLines(batch: ClaimedBatch): Promise<boolean>
  /** The results of these lines, in order. */
  results(batchId: string, range: LineRange): Promise<readonly (LineResult & { readonly body: string })[]>
  /**
   * Writes results, and makes stored ones final if they are of the same request. For each written result, whether it was: not if
   * the range has been claimed again.
   */
  writeResults(
    results: readonly WrittenResult[],
    stored: readonly Pick<WrittenResult, 'range' | 'line' | 'requestId'>[],
    at: number,
  ): Promise<readonly boolean[]>
}

/**
 * Batches and their lines. Several processes may run a batch: they claim ranges of lines for a limited time, and write
 * with the number of their claim, which is refused once the range has been claimed again.
 */
export interface BatchStore extends LineStore {
  createBatch(batch: NewBatch): Promise<void>
  /** undefined as the workspace: of any. */
  batch(workspaceId: string | undefined, id: string): Promise<Batch | undefined>
  /** A page of batches, the newest first. */
  batches(query: BatchQuery): Promise<readonly Batch[]>
  /** Reads no more than the rows and results of this batch. */
  batchProgress(id: string, since: number): Promise<BatchProgress>
  /** How many lines the unfinished batches of a workspace have. */
  queuedLines(workspaceId: string): Promise<number>
  /** Has no effect on a batch that is being finalized or has ended. */
  cancelBatch(workspaceId: string | undefined, id: string, now: number): Promise<void>
  isFileInUse(fileId: string): Promise<boolean>
  /** Ends all claims. Only for a process that is alone. */
  freeClaims(): Promise<void>
  /**
   * Takes a batch that needs a step: to be checked, to be finalized, or to be cleaned up after its end. One at another place only
   * if it expired an hour ago: no process has that storage any more.
   */
  claimBatch(place: string, now: number, leaseUntil: number): Promise<ClaimedBatch | undefined>
  /** False if another process has claimed the batch. */
  renewBatch(batch: ClaimedBatch, leaseUntil: number): Promise<boolean>
  releaseBatch(batch: ClaimedBatch): Promise<void>
  /** Lets the lines run, unless the workspace would have more than `maxQueuedLines`. Returns false then, with no effect. */
  beginBatch(batch: ClaimedBatch, lines: number, maxQueuedLines: number, now: number): Promise<boolean>
  /** The input file has mistakes. Nothing was run. */
  failBatch(batch: ClaimedBatch, errors: BatchErrors, now: number): Promise<void>
  /** From now on no range can be claimed. */
  finalizeBatch(id: string, ending: BatchEnding, errors: BatchErrors | null, now: number): Promise<void>
  endBatch(batch: ClaimedBatch, end: BatchEnd): Promise<void>
  /** Removes batches that ended before this time. */
  forgetBatches(before: number): Promise<void>
  /** Batches with lines that can be run now, the oldest first. */
  runnableBatches(place: string, now: number, limit: number): Promise<readonly Batch[]>
  /** Which of these batches are still in progress. */
  batchesInProgress(ids: readonly string[]): Promise<readonly string[]>
  pauseBatch(id: string, pause: BatchPause, resumeAt: number): Promise<void>
  resumeBatch(id: string): Promise<void>
}
