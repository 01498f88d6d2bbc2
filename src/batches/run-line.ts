import type { Job, ParsedAnswer, WholeAnswer } from '../engines/job.ts'
import type { Usage } from '../billing/rating/rating.ts'
import type { ByteBudget } from '../shared/byte-budget.ts'
import { ApiError, CallerLeft } from '../shared/errors.ts'
import type { Reply } from '../server/reply.ts'
import type { Caller } from '../workspaces/workspace.ts'
import type { Batch, ClaimedRange, WrittenResult } from './batch-store.ts'
import type { LineEndpoints } from './line-endpoints.ts'
import { lineReply, textOf, type LineReply } from './line-reply.ts'
import { readLine } from './lines.ts'
import { answeredLine } from './result-lines.ts'
import type { ResultWriter } from './result-writer.ts'

export interface LineParts {
  readonly endpoints: LineEndpoints
  readonly writer: ResultWriter
  readonly memory: ByteBudget
  /** Whose journal has the rows of this process. */
  readonly owner: string
  pipeline(job: Job, caller: Caller, reply: Reply): Promise<unknown>
  /** What is billed for an answer, if the spend limit has room for it. */
  usageOf(job: Job, answer: ParsedAnswer): Usage
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** The requests of lines that this process runs now. */
  readonly running: Set<string>
  /** The store failed. */
  failed(error: Error): void
}

/** A line that is to be run. */
export interface RunningLine {
  readonly batch: Batch
  readonly range: ClaimedRange
  readonly caller: Caller
  readonly number: number
  readonly bytes: Buffer
  /** Aborted when nothing new may begin for the range: lines that an engine has go on. */
  readonly stop: AbortController
  /** Requests that an engine has, or that wait for one. */
  readonly replies: Set<LineReply>
}

/** `final`: its result is written. `left`: it has to be run again, by the next process that claims its range. */
export type LineEnd = 'final' | 'left' | ApiError

/** The pauses before an engine is tried again. */
const ENGINE_PAUSES_MS = [1000, 5000, 20_000, 60_000]
/** The pauses while there is no capacity. The last one is repeated, until the batch expires. */
const CAPACITY_PAUSES_MS = [500, 2000, 5000, 10_000]
const STORE_PAUSE_MS = 1000

/** Failures of an engine. Anything else that passes by waiting is a lack of capacity. */
const engineFailures: ReadonlySet<string> = new Set(['internal_error', 'upstream_error', 'upstream_timeout'])

/** The range has been claimed by another process. */
class RangeLost extends Error {}

/** Runs a line until it has a result. Returns the error if the spend limit is reached. */
export async function runLine(parts: LineParts, line: RunningLine): Promise<LineEnd> {
  const { stop, batch, range, number } = line
  let engineAttempts = 0
  let capacityAttempts = 0
  try {
    for (let attempt = 1; ; attempt++) {
      stop.signal.throwIfAborted()
      const requestId = `${batch.id}-${number}-${range.claims}-${attempt}`
      const error = await attemptLine(parts, line, requestId)
      if (error === undefined) return 'final'
      if (error.code === 'spend_limit_exceeded') return error
      const isEngine = engineFailures.has(error.code)
      const pauses = isEngine ? ENGINE_PAUSES_MS : CAPACITY_PAUSES_MS
      const pause = isEngine ? pauses[engineAttempts++] : (pauses[capacityAttempts++] ?? CAPACITY_PAUSES_MS.at(-1))
      if (pause === undefined || !(isEngine || error.waitingHelps)) {
        await writeFailure(parts, line, requestId, error)
        return 'final'
      }
      await parts.sleep(pause, stop.signal)
    }
  } catch (error) {
    if (error instanceof RangeLost) stop.abort(error)
    // What is left of the range is released, and claimed again.
    else if (!stop.signal.aborted && !(error instanceof CallerLeft)) parts.failed(error as Error)
    return 'left'
  }
}

/** Returns the error that the line ended with; undefined if it has its answer. */
async function attemptLine(parts: LineParts, line: RunningLine, requestId: string): Promise<ApiError | undefined> {
  const { batch, caller, bytes, stop, replies } = line
  const reply = lineReply(requestId, batch.workspaceId, parts.memory, stop.signal)
  let result: WrittenResult | undefined
  replies.add(reply)
  parts.running.add(requestId)
  try {
    const request = readLine(bytes, batch.endpoint)
    const job = await parts.endpoints.jobOf(request, caller, reply)
    const keep = async (answer: ParsedAnswer): Promise<void> => {
      result = resultOf(
        line,
        requestId,
        parts.owner,
        request.customId,
        textOf(answer.render(parts.usageOf(job, answer))),
      )
      await written(parts, line, result)
    }
    await parts.pipeline(keeping(job, keep), caller, reply)
    if (result) await completed(parts, line, result, reply.answer() ?? '', request.customId)
    return undefined
  } catch (error) {
    if (error instanceof RangeLost || error instanceof CallerLeft || stop.signal.aborted) throw error
    return error instanceof ApiError
      ? error
      : new ApiError('internal_error', 'The line could not be run.', { cause: error })
  } finally {
    replies.delete(reply)
    parts.running.delete(requestId)
    reply.release()
  }
}

/**
 * The job, which keeps its answer before its row is settled. If the process dies in between, the row says whether the
 * answer was billed. An answer that cannot be kept is not billed.
 */
function keeping(job: Job, keep: (answer: ParsedAnswer) => Promise<void>): Job {
  if (job.answer.kind !== 'whole') throw new Error('the answer to a line of a batch is not streamed')
  const { read } = job.answer
  const answer: WholeAnswer = {
    kind: 'whole',
    async read(bodies, head, headers) {
      const parsed = await read(bodies, head, headers)
      if (parsed) await keep(parsed)
      return parsed
    },
  }
  return { ...job, answer }
}

function resultOf(
  { batch, range, number }: RunningLine,
  requestId: string,
  owner: string,
  customId: string,
  body: string,
): WrittenResult {
  const line = { batchId: batch.id, line: number, customId }
  return {
    range,
    line: number,
    state: 'stored',
    requestId,
    owner,
    errorCode: null,
    body: answeredLine(line, { status: 200, requestId, body }),
  }
}

/** The row is settled. The answer differs from the kept one only if the spend limit had no room for all of it. */
async function completed(
  parts: LineParts,
  line: RunningLine,
  kept: WrittenResult,
  answer: string,
  customId: string,
): Promise<void> {
  const final = { ...resultOf(line, kept.requestId, kept.owner, customId, answer), state: 'completed' as const }
  if (final.body !== kept.body) return written(parts, line, final)
  return whileStoreFails(parts, line, () => parts.writer.complete(kept))
}

async function writeFailure(parts: LineParts, line: RunningLine, requestId: string, error: ApiError): Promise<void> {
  const { batch, range, number } = line
  const { customId, url } = readLine(line.bytes, batch.endpoint)
  const body = JSON.stringify(parts.endpoints.errorBody(url, error, requestId))
  const text = answeredLine({ batchId: batch.id, line: number, customId }, { status: error.status, requestId, body })
  await written(parts, line, {
    range,
    line: number,
    state: 'failed',
    requestId,
    owner: parts.owner,
    errorCode: error.code,
    body: text,
  })
}

async function written(parts: LineParts, line: RunningLine, result: WrittenResult): Promise<void> {
  if (!(await whileStoreFails(parts, line, () => parts.writer.write(result))))
    throw new RangeLost('the range was claimed again')
}

/** Tries again while the database is away, until the service stops. */
async function whileStoreFails<Done>(
  { sleep, failed }: LineParts,
  { stop }: RunningLine,
  write: () => Promise<Done>,
): Promise<Done> {
  for (;;) {
    try {
      return await write()
    } catch (error) {
      failed(error as Error)
      await sleep(STORE_PAUSE_MS, stop.signal)
    }
  }
}
