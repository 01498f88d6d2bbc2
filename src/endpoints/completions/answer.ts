import type { Job } from '../../core/job.ts'
import { generationAnswer, type AnswerFormat } from '../generation-answer.ts'
import type { StreamOptions } from '../generation-stream.ts'
import { completionsStream } from './stream.ts'

const format: AnswerFormat = {
  idPrefix: 'cmpl-',
  object: 'text_completion',
  content: ({ text }) => ({ text: typeof text === 'string' ? text : '' }),
}

/** A separate function, so that the closures do not retain the request body. */
export function completionsAnswer(isStream: boolean, options: StreamOptions): Job['answer'] {
  if (isStream) return { kind: 'streamed', relay: (head) => completionsStream(head, options) }
  return {
    kind: 'whole',
    read: ([body], head) => body && generationAnswer(body.whole(), head, options.cachedTokens, format),
  }
}
