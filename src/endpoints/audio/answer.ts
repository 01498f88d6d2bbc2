import { ApiError } from '../../core/errors.ts'
import type { ParsedAnswer, WholeAnswer } from '../../core/job.ts'
import { noUsage } from '../../core/money/rating.ts'
import type { SpeechDialect } from '../../dialects/dialect.ts'
import { tryParseJson } from '../engine-operation.ts'
import type { TranscriptFormat } from './schema.ts'
import { renderTranscript, toTranscript, transcriptType, type TranscriptOptions } from './transcript.ts'

/** A separate function, so that the closure does not retain the form. */
export function audioAnswer(
  dialect: SpeechDialect,
  options: TranscriptOptions & { readonly format: TranscriptFormat },
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
