import { randomBytes } from 'node:crypto'
import type { ChangeFeed } from '../cluster/changes/change-feed.ts'
import { ApiError, isNotFound } from '../shared/errors.ts'
import type { Caller } from '../workspaces/workspace.ts'
import { assemble, type AssemblyParts } from './assemble.ts'
import type {
  Batch,
  BatchError,
  BatchErrors,
  BatchProgress,
  BatchStore,
  ClaimedBatch,
  LineRange,
} from './batch-store.ts'
import { readInput, withoutContent, withoutStorage } from './input-file.ts'
import { pathBelowV1, fileLines } from './lines.ts'
import { POLL_IDLE_MS, openPoll } from './poll.ts'
import { linePaceOf, RECENT_MS, type LinePace } from './line-pace.ts'
import { openRunner, withoutCaller, type RunnerParts } from './runner.ts'
import { validateLines } from './validate.ts'

export interface BatchesParts extends RunnerParts, AssemblyParts {
  readonly maxLineBytes: number
  readonly maxLines: number
  readonly maxQueuedLines: number
  readonly retentionDays: number
  /** With a connection of its own, so that no progress that is shown delays the ledger. */
  readonly reader: Pick<BatchStore, 'batchProgress'>
  /** Notifies other replicas of lines to run, and of batches that are cancelled. */
  readonly changes: ChangeFeed
  /** No other process uses the store. */
  readonly isAlone: boolean
}

export interface NewBatchRequest {
  readonly inputFileId: string
  readonly endpoint: string
  readonly metadata: Readonly<Record<string, string>> | null
}

/** The batches of workspaces: from the check of the input file to the files with the results. */
export interface Batches {
  /** Throws if the file cannot be the input of a batch, or the workspace has too many lines waiting. */
  create(caller: Caller, request: NewBatchRequest): Promise<Batch>
  /** Throws `not_found`. undefined as the workspace, here and below: of any. */
  batch(workspaceId: string | undefined, id: string): Promise<Batch>
  /** What its lines have come to so far, and how fast they go. */
  progress(batch: Batch): Promise<Pick<BatchProgress, 'amount' | 'failures'> & LinePace>
  /** `after` is the id of the last batch of the page before. */
  list(query: {
    readonly workspaceId: string | undefined
    readonly after?: string | undefined
    readonly limit: number
  }): Promise<{ readonly batches: readonly Batch[]; readonly hasMore: boolean }>
  /** Throws `conflict` if the batch has ended. */
  cancel(workspaceId: string | undefined, id: string): Promise<Batch>
  close(): Promise<void>
}

export const COMPLETION_WINDOW = '24h'
const WINDOW_MS = 86_400_000
const LEASE_MS = 20_000
const RENEW_MS = 5000
const RANGES_AT_ONCE = 100
const FORGET_MS = 3_600_000

export function openBatches(parts: BatchesParts): Batches {
  const { store, files, clock, endpoints, changes, failed } = parts
  const stopping = new AbortController()
  let forgetAt = 0
  // What an earlier process had claimed is free at once, if there can be no other.
  if (parts.isAlone) store.freeClaims().catch(failed)
  const steps = openPoll(clock, workAll)
  const runner = openRunner(parts, steps.wake)
  const unsubscribe = changes.subscribe('batches', async () => {
    runner.wake()
    steps.wake()
    await runner.refresh()
  })

  async function workAll(): Promise<number> {
    try {
      while (!stopping.signal.aborted && !parts.isDraining() && (await workOnce()));
      if (clock.now() >= forgetAt) {
        forgetAt = clock.now() + FORGET_MS
        await store.forgetBatches(clock.now() - parts.retentionDays * WINDOW_MS)
      }
    } catch (error) {
      failed(error as Error)
    }
    return POLL_IDLE_MS
  }

  /** False: no batch needs a step. */
  async function workOnce(): Promise<boolean> {
    const batch = await store.claimBatch(files.place, clock.now(), clock.now() + LEASE_MS)
    if (!batch) return false
    let stopRenewing = clock.after(RENEW_MS, renew)
    function renew(): void {
      stopRenewing = clock.after(RENEW_MS, renew)
      if (batch) void store.renewBatch(batch, clock.now() + LEASE_MS).catch(failed)
    }
    try {
      await step(batch)
    } catch (error) {
      // Another attempt follows when the lease has ended, unless the service stops.
      if (stopping.signal.aborted) await store.releaseBatch(batch).catch(failed)
      else failed(error as Error)
    } finally {
      stopRenewing()
    }
    return true
  }

  async function step(batch: ClaimedBatch): Promise<void> {
    const isExpired = batch.expiresAt <= clock.now()
    if (batch.endedAt !== null) {
      while (await store.clearLines(batch)) stopping.signal.throwIfAborted()
    } else if (batch.state === 'validating' && !isExpired) {
      await validate(batch)
      await changes.announce('batches')
    } else if (batch.state === 'validating' || batch.state === 'in_progress') {
      const errors = batch.place === files.place ? null : { count: 1, data: [withoutStorage] }
      await store.finalizeBatch(batch.id, isExpired ? 'expired' : 'completed', errors, clock.now())
    } else {
      // It was cancelled or expired before its lines were known.
      if (batch.inProgressAt === null) await store.clearRanges(batch)
      await store.endBatch(batch, await assemble(parts, batch, stopping.signal))
    }
  }

  async function validate(batch: ClaimedBatch): Promise<void> {
    await store.clearRanges(batch)
    const caller = await parts.callerOf(batch)
    if (!caller) return fail(batch, withoutCaller)
    const content = await readInput(files, batch, 0, batch.inputBytes)
    if (!content) return fail(batch, withoutContent)
    const lines = fileLines(content, { number: 1, start: 0 }, parts.maxLineBytes)
    let found: LineRange[] = []
    const add = async (): Promise<void> => {
      await store.addRanges(batch, found)
      found = []
    }
    const checked = await validateLines(lines, batch.endpoint, {
      ...parts,
      caller,
      sleep: (ms) => parts.sleep(ms, stopping.signal),
      async found(range) {
        stopping.signal.throwIfAborted()
        found.push(range)
        if (found.length === RANGES_AT_ONCE) await add()
      },
    })
    if ('errors' in checked) return failWith(batch, checked.errors)
    await add()
    if (await store.beginBatch(batch, checked.lines, parts.maxQueuedLines, clock.now())) return
    // Or it has been cancelled.
    if (!(await store.renewBatch(batch, clock.now() + LEASE_MS))) return
    await fail(batch, { code: 'quota_exceeded', message: tooManyLines(parts.maxQueuedLines), param: null })
  }

  const fail = (batch: ClaimedBatch, error: BatchError): Promise<void> => failWith(batch, { count: 1, data: [error] })

  /** Nothing was run, so there are no files. */
  async function failWith(batch: ClaimedBatch, errors: BatchErrors): Promise<void> {
    await store.clearRanges(batch)
    await store.failBatch(batch, errors, clock.now())
  }

  async function batchOf(workspaceId: string | undefined, id: string): Promise<Batch> {
    const found = await store.batch(workspaceId, id)
    if (found) return found
    throw new ApiError('not_found', 'There is no such batch. It may have been deleted after its retention.', {
      param: 'batch_id',
    })
  }

  return {
    async create({ workspace, keyId }, { inputFileId, endpoint: given, metadata }) {
      const endpoint = pathBelowV1(given)
      if (!endpoints.urls.includes(endpoint)) {
        throw new ApiError('invalid_value', `'endpoint' must be one of ${endpoints.urls.join(', ')}.`, {
          param: 'endpoint',
        })
      }
      const file = await files.file(workspace.id, inputFileId).catch((error: unknown) => {
        if (!isNotFound(error)) throw error
        throw new ApiError('invalid_value', 'There is no such file.', { param: 'input_file_id' })
      })
      if (file.purpose !== 'batch') {
        throw new ApiError('invalid_value', "The file must have been uploaded with the purpose 'batch'.", {
          param: 'input_file_id',
        })
      }
      if ((await store.queuedLines(workspace.id)) >= parts.maxQueuedLines) {
        throw new ApiError('quota_exceeded', tooManyLines(parts.maxQueuedLines))
      }
      const createdAt = clock.now()
      const id = `batch_${randomBytes(12).toString('hex')}`
      await store.createBatch({
        id,
        workspaceId: workspace.id,
        keyId,
        endpoint,
        inputFileId,
        inputBytes: file.bytes,
        place: file.place,
        completionWindow: COMPLETION_WINDOW,
        metadata,
        createdAt,
        expiresAt: createdAt + WINDOW_MS,
      })
      steps.wake()
      return batchOf(workspace.id, id)
    },
    batch: batchOf,
    async progress(batch) {
      const now = clock.now()
      const since = Math.max(now - RECENT_MS, batch.inProgressAt ?? 0)
      const { endedLines, amount, failures } = await parts.reader.batchProgress(batch.id, since)
      return { amount, failures: batch.failures ?? failures, ...linePaceOf(batch, endedLines, since, now) }
    },
    async list({ workspaceId, after, limit }) {
      const last = after === undefined ? undefined : await batchOf(workspaceId, after)
      const found = await store.batches({ workspaceId, after: last, limit: limit + 1 })
      return { batches: found.slice(0, limit), hasMore: found.length > limit }
    },
    async cancel(workspaceId, id) {
      await store.cancelBatch(workspaceId, id, clock.now())
      const batch = await batchOf(workspaceId, id)
      if (batch.state !== 'cancelling' && batch.state !== 'cancelled') {
        throw new ApiError('conflict', `The batch cannot be cancelled: it is ${batch.state}.`, { param: 'batch_id' })
      }
      await changes.announce('batches')
      return batch
    },
    async close() {
      stopping.abort(new Error('the service stops'))
      unsubscribe()
      await runner.close()
      await steps.close()
    },
  }
}

function tooManyLines(most: number): string {
  return `The unfinished batches of a workspace may have ${most} lines in total. Try again when some of them have ended.`
}
