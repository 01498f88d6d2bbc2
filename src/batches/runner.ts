import type { RequestRow } from '../ledger/rows.ts'
import type { AlarmClock } from '../shared/clock.ts'
import type { Caller } from '../workspaces/workspace.ts'
import type { Batch, BatchError, BatchPause, BatchStore, ClaimedRange, LineResult } from './batch-store.ts'
import type { BatchFiles } from './files.ts'
import { inFlightLines } from './in-flight-lines.ts'
import { readRange, withoutContent } from './input-file.ts'
import { POLL_IDLE_MS, openPoll } from './poll.ts'
import { runLine, type LineEnd, type LineParts, type RunningLine } from './run-line.ts'

export interface RunnerParts extends LineParts {
  readonly store: BatchStore
  readonly files: BatchFiles
  readonly clock: AlarmClock
  /** The lines of a workspace that all processes together run at a time. */
  readonly maxInFlight: number
  /** The caller that created the batch; undefined if its key does not work any more. */
  callerOf(batch: Batch): Promise<Caller | undefined>
  /** Which of these requests have rows. Waits for the rows of this process. */
  rowsOf(requestIds: readonly string[]): Promise<readonly Pick<RequestRow, 'requestId' | 'outcome'>[]>
  /** Whether all rows of this owner are in the ledger. */
  isDelivered(owner: string): boolean
  isDraining(): boolean
  /** How long lines that an engine has may go on when the service stops. */
  leftMs(): number
}

/** Runs lines of batches. Several processes may do so: each claims ranges of lines for a limited time, and renews that. */
export interface Runner {
  /** Looks for lines to run now. */
  wake(): void
  /** Begins no more lines of batches that are not in progress any more. */
  refresh(): Promise<void>
  /** Claims nothing new, waits for the lines that engines have, and gives the ranges back. */
  close(): Promise<void>
}

export const withoutCaller: BatchError = {
  code: 'invalid_api_key',
  message: 'The API key that created the batch has been revoked or has expired.',
  param: null,
}

const RENEW_MS = 1000
const LEASE_MS = 10_000
/** While lines wait for others to end: those of another replica end without a notification. */
const REFUSED_MS = 1000
/** How long a batch is paused before one line is tried again. */
const PAUSE_MS = 5000
const MAX_RANGES = 64
/** Lines are in memory while their range runs, and a range with one long line has 20 MiB. */
const MAX_RANGE_BYTES = 64 * 2 ** 20
const MAX_BATCHES = 1000

interface HeldRange {
  readonly batch: Batch
  readonly range: ClaimedRange
  readonly stop: AbortController
  readonly replies: RunningLine['replies']
  readonly ended: Promise<void>
  /** Lines of it are still to begin. */
  isStarting: boolean
}

/** `left` is called when this process runs no line of a batch any more. */
export function openRunner(parts: RunnerParts, left: () => void): Runner {
  const { store, clock, maxInFlight, failed } = parts
  const held = new Set<HeldRange>()
  const inFlight = inFlightLines()
  let isClosed = false
  let isStoreUp = true
  const claims = openPoll(clock, claimAll)
  let stopTimer = clock.after(RENEW_MS, renewAgain)

  function renewAgain(): void {
    void renew().finally(() => {
      if (!isClosed) stopTimer = clock.after(RENEW_MS, renewAgain)
    })
  }

  /** Renews what this process has claimed, and stops what is not to be run any more. */
  async function renew(): Promise<void> {
    // More may be claimed meanwhile.
    const renewed = [...held]
    if (renewed.length === 0) return
    try {
      await store.renewRanges(
        renewed.map(({ range }) => range),
        clock.now() + LEASE_MS,
      )
      const going = new Set(await store.batchesInProgress(renewed.map(({ batch }) => batch.id)))
      for (const { batch, stop } of renewed) if (!going.has(batch.id)) stop.abort(new Error('the batch has ended'))
      for (const batch of new Map(renewed.map((it) => [it.batch.id, it.batch])).values()) {
        if (await parts.callerOf(batch)) continue
        for (const { batch: other, stop } of renewed)
          if (other.id === batch.id) stop.abort(new Error('its key was revoked'))
        await fail(batch, withoutCaller)
      }
      isStoreUp = true
    } catch (error) {
      isStoreUp = false
      failed(error as Error)
    }
    inFlight.wake()
  }

  function mayClaim(): boolean {
    const bytes = [...held].reduce((sum, { range }) => sum + range.byteEnd - range.byteStart, 0)
    return !isClosed && !parts.isDraining() && held.size < MAX_RANGES && bytes < MAX_RANGE_BYTES
  }

  async function claimAll(): Promise<number> {
    try {
      while (mayClaim()) {
        const outcome = await claimOne()
        if (outcome !== 'claimed') return outcome === 'refused' ? REFUSED_MS : POLL_IDLE_MS
      }
    } catch (error) {
      failed(error as Error)
    }
    // The next range that ends makes room.
    return POLL_IDLE_MS
  }

  /** `refused`: there are lines, but none may be run here now. */
  async function claimOne(): Promise<'claimed' | 'refused' | 'none'> {
    const starting = new Set([...held].filter(({ isStarting }) => isStarting).map(({ batch }) => batch.id))
    const runnable = await store.runnableBatches(parts.files.place, clock.now(), MAX_BATCHES)
    const free = runnable.filter(({ id, workspaceId }) => !starting.has(id) && inFlight.of(workspaceId) < maxInFlight)
    // The workspace that has the fewest lines here comes first; then the oldest batch.
    const inOrder = free.toSorted((one, two) => inFlight.of(one.workspaceId) - inFlight.of(two.workspaceId))
    for (const [next] of Map.groupBy(inOrder, ({ workspaceId }) => workspaceId).values()) {
      const range = next && (await store.claimRange(next, maxInFlight, clock.now(), clock.now() + LEASE_MS))
      if (!range) continue
      hold(next, range)
      return 'claimed'
    }
    return runnable.length === 0 ? 'none' : 'refused'
  }

  function hold(batch: Batch, range: ClaimedRange): void {
    const ended = Promise.withResolvers<void>()
    const one: HeldRange = {
      batch,
      range,
      stop: new AbortController(),
      replies: new Set(),
      ended: ended.promise,
      isStarting: true,
    }
    held.add(one)
    void runHeld(one).then(ended.resolve)
  }

  async function runHeld(one: HeldRange): Promise<void> {
    const isOver = await runRange(one).then(
      () => true,
      (error: Error) => failed(error),
    )
    held.delete(one)
    // After a failure, the next poll claims the range again.
    if (isOver) claims.wake()
    if (![...held].some(({ batch }) => batch.id === one.batch.id)) left()
  }

  async function runRange(one: HeldRange): Promise<void> {
    const { batch, range, stop } = one
    let isDone = false
    try {
      const caller = await parts.callerOf(batch)
      if (!caller) return await fail(batch, withoutCaller)
      const final = await finalLines(range)
      const lines = await readRange(parts.files, batch, range).catch(async (error: unknown) => {
        await pause(batch, { code: 'service_unavailable', message: 'The input file cannot be read now.' })
        throw error
      })
      if (!lines) return await fail(batch, withoutContent)
      const left = lines.filter(({ number }) => !final.has(number))
      const ends: Promise<LineEnd>[] = []
      for (const { number, bytes } of left) {
        if (!(await mayBegin(one))) break
        ends.push(begin({ ...one, caller, number, bytes }))
      }
      one.isStarting = false
      claims.wake()
      const all = await Promise.all(ends)
      isDone = !stop.signal.aborted && all.length === left.length && all.every((end) => end === 'final')
    } finally {
      await (isDone ? store.endRange(range) : store.releaseRange(range)).catch(failed)
    }
  }

  const mustWait = (workspaceId: string): boolean => !isStoreUp || inFlight.of(workspaceId) >= maxInFlight

  /** Waits until another line of the workspace may run. False: the range has been stopped. */
  async function mayBegin({ batch, stop }: HeldRange): Promise<boolean> {
    while (!stop.signal.aborted && mustWait(batch.workspaceId)) await inFlight.changed()
    return !stop.signal.aborted && !parts.isDraining()
  }

  async function begin(line: RunningLine): Promise<LineEnd> {
    const { batch, stop } = line
    inFlight.begin(batch.workspaceId)
    try {
      const end = await runLine(parts, line)
      if (end === 'final' && batch.pause) await store.resumeBatch(batch.id).catch(failed)
      if (typeof end === 'string' || stop.signal.aborted) return end
      stop.abort(end)
      await pause(batch, { code: end.code, message: end.message })
      return end
    } finally {
      inFlight.end(batch.workspaceId)
    }
  }

  async function pause({ id }: Batch, reason: Omit<BatchPause, 'since'>): Promise<void> {
    const now = clock.now()
    await store.pauseBatch(id, { ...reason, since: now }, now + PAUSE_MS).catch(failed)
    clock.after(PAUSE_MS, claims.wake)
  }

  async function fail({ id }: Batch, error: BatchError): Promise<void> {
    await store.finalizeBatch(id, 'failed', { count: 1, data: [error] }, clock.now())
  }

  /** The lines that have a final result. An answer that an earlier process kept is final if it was billed, or may be. */
  async function finalLines(range: ClaimedRange): Promise<ReadonlySet<number>> {
    const results = await store.results(range.batchId, range)
    const kept = results.filter(({ state }) => state === 'stored')
    const billed = await billedResults(parts, kept)
    if (billed.length > 0) {
      const stored = billed.map((it) => ({ ...it, range }))
      await store.writeResults([], stored, clock.now())
    }
    return new Set([...results.filter(({ state }) => state !== 'stored'), ...billed].map(({ line }) => line))
  }

  return {
    wake: claims.wake,
    refresh: renew,
    async close() {
      isClosed = true
      stopTimer()
      await claims.close()
      const ending = [...held]
      for (const { stop } of ending) stop.abort(new Error('the service stops'))
      inFlight.wake()
      const timeUp = Promise.withResolvers<void>()
      const stopAlarm = clock.after(parts.leftMs(), timeUp.resolve)
      const allEnded = Promise.all(ending.map(({ ended }) => ended))
      await Promise.race([allEnded, timeUp.promise])
      stopAlarm()
      for (const { replies } of ending) for (const reply of replies) reply.cut()
      await allEnded
    },
  }
}

/**
 * Of kept answers: those that were billed, or that may be billed later, because the journal of the process that ran them
 * is not in the ledger yet. All others were not billed and never will be, so their lines are run again.
 */
export async function billedResults<Result extends LineResult>(
  { rowsOf, isDelivered, running }: Pick<RunnerParts, 'rowsOf' | 'isDelivered' | 'running'>,
  kept: readonly Result[],
): Promise<readonly Result[]> {
  if (kept.length === 0) return []
  const outcomes = new Map((await rowsOf(kept.map((it) => it.requestId))).map((it) => [it.requestId, it.outcome]))
  return kept.filter(({ requestId, owner }) => {
    const outcome = outcomes.get(requestId)
    return outcome === undefined ? !isDelivered(owner) || running.has(requestId) : outcome === 'completed'
  })
}
