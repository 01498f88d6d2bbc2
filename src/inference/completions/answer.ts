import type { Job } from '../../engines/job.ts'
import { generationAnswer, type AnswerFormat } from '../generation/generation-answer.ts'
import { textLogprobs } from '../generation/generation-logprobs.ts'
import type { GenerationOptions } from '../generation/generation-options.ts'
import { joinedStream } from '../generation/joined-stream.ts'
import { completionsStream } from './stream.ts'

const format: AnswerFormat<{ readonly text: string }> = {
  idPrefix: 'cmpl-',
  object: 'text_completion',
  content: ({ text }) => ({ text: typeof text === 'string' ? text : '' }),
  logprobs: ({ logprobs }) => textLogprobs(logprobs, 0),
  outputOf: ({ text }) => text,
  cut: ({ text }, keep) => ({ text: keep(text) }),
  choice: ({ index, content, logprobs, finish_reason }) => ({ index, text: content.text, logprobs, finish_reason }),
}

/** A separate function, so that the closures do not retain the request body. */
export function completionsAnswer(isStream: boolean, options: GenerationOptions): Job['answer'] {
  if (isStream)
    return { kind: 'streamed', relay: (head) => joinedStream(options, (part) => completionsStream(head, part)) }
  return { kind: 'whole', read: async (bodies, head) => generationAnswer(bodies, head, options, format) }
}
