import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { ApiError } from '../shared/errors.ts'
import type { ByteBudget } from '../shared/byte-budget.ts'
import type { Caller } from '../workspaces/workspace.ts'
import type { BatchError, BatchErrors, LineRange } from './batch-store.ts'
import type { LineEndpoints } from './line-endpoints.ts'
import { lineReply } from './line-reply.ts'
import { readLine, type FileLine } from './lines.ts'

const MAX_LISTED = 1000
/** A range is run by one process, and is in memory while it runs. */
const MAX_RANGE_LINES = 32
const RANGE_BYTES = 2 ** 20
/** Lines that are checked in a row, before other work of the process. */
const CHECKED_AT_ONCE = 8
const FULL_MS = 100

export interface ValidationParts {
  readonly endpoints: LineEndpoints
  readonly caller: Caller
  readonly memory: ByteBudget
  readonly maxLines: number
  readonly maxLineBytes: number
  readonly maxInFlight: number
  sleep(ms: number): Promise<void>
  /** Called with ranges of checked lines, as long as no mistake was found. */
  found(range: LineRange): Promise<void>
}

/** Checks every line. Returns the number of lines, or the mistakes in them. */
export async function validateLines(
  lines: AsyncIterable<FileLine>,
  endpoint: string,
  parts: ValidationParts,
): Promise<{ readonly lines: number } | { readonly errors: BatchErrors }> {
  const { endpoints, caller, memory, maxLines, maxLineBytes, found } = parts
  const ids = new Set<string>()
  const listed: BatchError[] = []
  let count = 0
  let total = 0
  // Ranges are claimed as a whole: smaller ones use more of what may be in flight.
  const rangeLines = Math.min(MAX_RANGE_LINES, Math.ceil(parts.maxInFlight / 4))
  let range: { firstLine: number; lines: number; byteStart: number; byteEnd: number } | undefined

  const mistake = ({ code, message, param }: ApiError, line: number, prefix = ''): void => {
    count++
    if (listed.length >= MAX_LISTED) return
    listed.push({ code, message, param: param === null ? null : prefix + param, line })
  }

  function addId(customId: string): void {
    // The hash, so that long ids take no more memory than short ones.
    const id = createHash('sha256').update(customId).digest('base64').slice(0, 22)
    if (ids.has(id)) {
      throw new ApiError('invalid_value', "The file has another line with the same 'custom_id'.", {
        param: 'custom_id',
      })
    }
    ids.add(id)
  }

  async function check({ number, bytes }: FileLine): Promise<void> {
    if (!bytes) {
      const tooLong = `The line is too long: at most ${maxLineBytes} bytes are allowed.`
      return mistake(new ApiError('request_too_large', tooLong), number)
    }
    let isBody = false
    try {
      const request = readLine(bytes, endpoint)
      addId(request.customId)
      isBody = true
      await checkBody(request)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      mistake(error, number, isBody ? 'body.' : '')
    }
  }

  async function checkBody(request: ReturnType<typeof readLine>): Promise<void> {
    for (;;) {
      const client = lineReply('', caller.workspace.id, memory)
      try {
        return await endpoints.check({ ...request, body: Buffer.from(request.body) }, caller, client)
      } catch (error) {
        // Other requests have the memory now.
        if (!(error instanceof ApiError) || error.code !== 'service_unavailable') throw error
      } finally {
        client.release()
      }
      await parts.sleep(FULL_MS)
    }
  }

  for await (const line of lines) {
    total++
    if (total > maxLines) {
      mistake(
        new ApiError('request_too_large', `The file has too many lines: at most ${maxLines} are allowed.`),
        line.number,
      )
      break
    }
    await check(line)
    if (total % CHECKED_AT_ONCE === 0) await setImmediate()
    if (count > 0) continue
    range ??= { firstLine: line.number, lines: 0, byteStart: line.start, byteEnd: line.end }
    range.lines = line.number - range.firstLine + 1
    range.byteEnd = line.end
    if (range.lines >= rangeLines || range.byteEnd - range.byteStart >= RANGE_BYTES) {
      await found(range)
      range = undefined
    }
  }
  if (total === 0) mistake(new ApiError('invalid_value', 'The file has no lines.'), 1)
  if (count > 0) return { errors: { count, data: listed } }
  if (range) await found(range)
  return { lines: total }
}
