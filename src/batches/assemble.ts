import { createHash } from 'node:crypto'
import type { Spool, SpooledFile } from '../server/uploads/uploads.ts'
import type { BatchEnd, BatchEnding, ClaimedBatch, FailureKind, LineRange, LineResult } from './batch-store.ts'
import type { StoredFile } from './file-store.ts'
import { readRange, withoutContent } from './input-file.ts'
import { readLine } from './lines.ts'
import { failureKind, unansweredLine } from './result-lines.ts'
import { billedResults, type RunnerParts } from './runner.ts'

export interface AssemblyParts extends Pick<
  RunnerParts,
  'store' | 'files' | 'rowsOf' | 'isDelivered' | 'running' | 'clock'
> {
  readonly spool: Spool
}

const RANGES_AT_ONCE = 50

/** Why a line without a result was not run. */
const unanswered: Readonly<Record<BatchEnding, { readonly code: string; readonly message: string }>> = {
  completed: { code: 'internal_error', message: 'This request has no result.' },
  failed: { code: 'batch_failed', message: 'This request was not executed, because the batch failed.' },
  expired: {
    code: 'batch_expired',
    message: 'This request could not be executed before the completion window expired.',
  },
  cancelled: { code: 'batch_cancelled', message: 'This request was not executed, because the batch was cancelled.' },
}

/** Writes the output file and the error file of a batch, which no process runs any more. Throws when it is to stop. */
export async function assemble(parts: AssemblyParts, batch: ClaimedBatch, stop: AbortSignal): Promise<BatchEnd> {
  const { store, spool, clock } = parts
  const ending = batch.ending ?? 'failed'
  // What a process writes that lost its claim without noticing is refused from now on.
  await store.closeRanges(batch)
  const output = await spool.open(batch.workspaceId)
  const error = await spool.open(batch.workspaceId)
  const counts = { completed: 0, failed: 0 }
  const failures = new Map<string, FailureKind>()
  try {
    for await (const range of rangesOf(parts, batch.id)) {
      stop.throwIfAborted()
      for (const line of await resultLines(parts, batch, range, ending)) {
        const { code, body } = line
        counts[code === null ? 'completed' : 'failed']++
        if (code !== null) {
          const kind = failures.get(code)
          failures.set(code, kind ? { ...kind, count: kind.count + 1 } : failureKind({ ...line, code }, 1))
        }
        await (code === null ? output : error).append([Buffer.from(`${body}\n`)])
      }
    }
    return {
      state: ending,
      counts,
      errors: counts.completed + counts.failed < batch.counts.total ? { count: 1, data: [withoutContent] } : null,
      failures: [...failures.values()].toSorted((one, other) => other.count - one.count),
      output: await stored(parts, batch, 'output', output),
      error: await stored(parts, batch, 'error', error),
      at: clock.now(),
    }
  } finally {
    await output.close()
    await error.close()
  }
}

async function* rangesOf({ store }: AssemblyParts, batchId: string): AsyncGenerator<LineRange> {
  for (let last = 0; ;) {
    const ranges = await store.ranges(batchId, last, RANGES_AT_ONCE)
    yield* ranges
    const next = ranges.at(-1)
    if (!next) return
    last = next.firstLine
  }
}

interface ResultLine {
  readonly line: number
  /** Why it failed; null if it has its answer. */
  readonly code: string | null
  readonly body: string
}

/** One for each line of the range, in order. Only those that have ended if the input file is gone. */
async function resultLines(
  parts: AssemblyParts,
  batch: ClaimedBatch,
  range: LineRange,
  ending: BatchEnding,
): Promise<readonly ResultLine[]> {
  const results = await parts.store.results(batch.id, range)
  const kept = await billedResults(
    parts,
    results.filter(({ state }) => state === 'stored'),
  )
  const final = new Map([...results.filter(({ state }) => state !== 'stored'), ...kept].map((it) => [it.line, it]))
  // Without blank lines, every line of a complete range has its result, and the input need not be read. If the input is gone,
  // so are the ids of the other lines.
  const lines = final.size === range.lines ? undefined : await readRange(parts.files, batch, range)
  if (!lines) return [...final.values()].toSorted((one, two) => one.line - two.line).map(toLine)
  return lines.map(({ number, bytes }) => {
    const found = final.get(number)
    if (found) return toLine(found)
    const { customId } = readLine(bytes, batch.endpoint)
    const error = unanswered[ending]
    const body = unansweredLine({ batchId: batch.id, line: number, customId }, error)
    return { line: number, code: error.code, body }
  })
}

const toLine = ({ line, state, errorCode, body }: LineResult & { readonly body: string }): ResultLine => ({
  line,
  code: state === 'failed' ? (errorCode ?? 'unknown') : null,
  body,
})

/** Its id depends on the batch only, so that another attempt replaces the file. undefined if it would be empty. */
async function stored(
  { files }: AssemblyParts,
  batch: ClaimedBatch,
  kind: 'output' | 'error',
  content: SpooledFile,
): Promise<StoredFile | undefined> {
  if (content.length === 0) return undefined
  const id = `file-${createHash('sha256').update(`${batch.id} ${kind}`).digest('hex').slice(0, 24)}`
  return files.store({ id, workspaceId: batch.workspaceId, filename: `${batch.id}_${kind}.jsonl` }, content)
}
