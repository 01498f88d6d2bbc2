import { byteCollector, type ByteCollector } from '../../shared/byte-collector.ts'
import { CallerLeft } from '../../shared/errors.ts'
import { wholeUsage } from '../metering/usage-bounds.ts'
import type { EngineHeaders, ParsedAnswer, WholeAnswer } from '../../engines/job.ts'
import type { CallEnd, EngineReceiver } from '../../engines/engine.ts'
import type { AdmittedRequest, AnswerPath } from './admitted-request.ts'
import type { PipelineParts } from './parts.ts'
import {
  completed,
  failureOf,
  settle,
  settleDeparture,
  settleFailure,
  usageWithoutAnswer,
  withinHold,
} from './settle.ts'

const MAX_ANSWER_BYTES = 256 * 1024 * 1024

/** An answer that is sent in one piece, or whose end is held back until the row is durable. */
export function wholeAnswer(parts: PipelineParts, request: AdmittedRequest, answer: WholeAnswer): AnswerPath {
  const { job, reply, calls, waitMs } = request
  const passThrough = answer.passThrough?.(request.head)
  const ownHeaders = { 'X-Queue-Wait-Ms': String(waitMs) }
  const bodies: ByteCollector[] = []
  const headers: EngineHeaders[] = []
  let end: CallEnd = { kind: 'ended' }
  let bytes = 0
  let firstByteAt: number | null = null
  let isOpen = false

  function receiverInto(body: ByteCollector): EngineReceiver {
    return {
      start(answerHeaders) {
        firstByteAt ??= parts.clock.monotonic()
        headers.push(answerHeaders)
        body.expect(Number(answerHeaders['content-length']))
      },
      data(chunk) {
        bytes += chunk.length
        if (bytes > MAX_ANSWER_BYTES) throw new RangeError('the engine answered with more than 256 MiB')
        const kept = Buffer.from(chunk)
        const piece = passThrough?.push(kept)
        if (piece) sendOn(piece)
        else {
          reply.holdAnswer(bytes)
          body.push(kept)
        }
      },
    }
  }

  function sendOn(piece: Buffer): void {
    if (!isOpen) {
      if (!calls.keep()) return
      reply.openAnswer('application/json', ownHeaders)
    }
    isOpen = true
    if (!reply.write(piece)) calls.pauseUntilDrained()
  }

  async function readAnswer(): Promise<ParsedAnswer | undefined> {
    if (end.kind !== 'ended') return undefined
    if (isOpen) return passThrough?.end(headers[0] ?? {})
    try {
      return await answer.read(bodies, request.head, headers)
    } catch (error) {
      await settleFailure(parts, request, error, { isOpen, firstTokenAt: firstByteAt })
      throw error
    }
  }

  return {
    async takeFromEngine() {
      for (const call of job.calls) {
        const body = byteCollector(MAX_ANSWER_BYTES)
        const receiver = receiverInto(body)
        end = await calls.run({ ...call, receiver })
        const fallback = end.kind === 'failed' && !end.started ? call.fallback?.(end.error) : undefined
        if (fallback) end = await calls.run({ ...fallback, receiver })
        if (end.kind !== 'ended') return
        bodies.push(body)
      }
    },
    async giveToCaller() {
      const read = await readAnswer()
      const counted = read && (await withinHold(request, wholeUsage(job, read)))
      // If the engine's answer was unusable as well, that takes precedence.
      if (reply.isGone && (counted || end.kind === 'aborted')) {
        await settleDeparture(parts, request, counted ?? usageWithoutAnswer(request), firstByteAt)
        throw new CallerLeft()
      }
      if (!read || !counted) {
        const error = failureOf(end)
        await settleFailure(parts, request, error, { isOpen, firstTokenAt: firstByteAt })
        throw error
      }
      const row = await settle(parts, request, {
        ...completed,
        counted,
        firstTokenAt: firstByteAt,
        ifLate: { outcome: 'withheld', httpStatus: isOpen ? 200 : 503, errorCode: 'service_unavailable' },
      })
      reply.sendAnswer(read.contentType ?? 'application/json', read.render(counted.usage), ownHeaders)
      return row
    },
  }
}
