import type { Job } from '../../core/job.ts'
import { generationAnswer, type AnswerFormat } from '../generation-answer.ts'
import type { GenerationOptions } from '../generation-options.ts'
import { completionsStream } from './stream.ts'

const format: AnswerFormat<{ readonly text: string }> = {
  idPrefix: 'cmpl-',
  object: 'text_completion',
  content: ({ text }) => ({ text: typeof text === 'string' ? text : '' }),
  outputOf: ({ text }) => text,
  cut: ({ text }, keep) => ({ text: keep(text) }),
}

/** A separate function, so that the closures do not retain the request body. */
export function completionsAnswer(isStream: boolean, options: GenerationOptions): Job['answer'] {
  if (isStream) return { kind: 'streamed', relay: (head) => completionsStream(head, options) }
  return { kind: 'whole', read: ([body], head) => body && generationAnswer(body.whole(), head, options, format) }
}
