import { ApiError } from '../../shared/errors.ts'
import type { ParsedAnswer, WholeAnswer } from '../../engines/job.ts'
import { noUsage } from '../../billing/rating/rating.ts'
import type { SpeechDialect } from '../../engines/dialects/dialect.ts'
import { tryParseJson } from '../request/engine-operation.ts'
import type { TranscriptFormat } from './schema.ts'
import { renderTranscript, toTranscript, transcriptType, type TranscriptOptions } from './transcript.ts'

/** A separate function, so that the closure does not retain the form. */
export function audioAnswer(
  dialect: SpeechDialect,
  options: TranscriptOptions & { readonly format: TranscriptFormat; readonly isClaimed: boolean },
): WholeAnswer {
  const { format, durationMs } = options
  return {
    kind: 'whole',
    async read([body]): Promise<ParsedAnswer | undefined> {
      const answer = body && tryParseJson(body.whole())
      if (dialect.isUnreadable?.(answer)) {
        throw new ApiError(
          'unsupported_content',
          'The engine cannot read the recording. Check that the file is complete, or send it as wav, mp3 or flac.',
          { param: 'file' },
        )
      }
      const output = dialect.response(answer)
      if (!output) return undefined
      requireConfirmed(durationMs, options.isClaimed, output.seconds)
      const transcript = toTranscript(output, options)
      return {
        usage: { ...noUsage, audioMs: durationMs },
        outputBytes: () => Buffer.byteLength(transcript.text),
        contentType: transcriptType(format),
        render: () => renderTranscript(transcript, format),
      }
    },
  }
}

/**
 * A caller can forge headers that make an engine play more than a decoder does, or that are all we know about the
 * length. So the engine must not have found more than is billed, and has to report a length if ours comes from the
 * headers only.
 */
function requireConfirmed(durationMs: number, isClaimed: boolean, reported: number | undefined): void {
  const billed = durationMs / 1000
  if (reported === undefined ? !isClaimed : reported <= billed * 1.01 + 1) return
  const found = reported === undefined ? 'the engine does not report one' : `the engine found ${reported} s`
  throw new ApiError(
    'unsupported_content',
    `The length of the recording cannot be verified: the file has ${billed} s, and ${found}. Send it as wav, mp3 or flac.`,
    { param: 'file' },
  )
}
