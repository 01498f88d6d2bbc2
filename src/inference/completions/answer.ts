import type { Job, AnswerHead } from '../../engines/job.ts'
import { generationAnswer, type AnswerFormat } from '../generation/generation-answer.ts'
import { textLogprobs, charactersIn, isChatLogprobs } from '../generation/engine-output.ts'
import type { GenerationOptions } from '../generation/generation-options.ts'
import { joinedStream } from '../generation/generation-calls.ts'
import { generationStream, type CallStream, type RewrittenChoice } from '../generation/generation-stream.ts'

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

interface Choice {
  index?: number
  text?: string | null
  logprobs?: unknown
  finish_reason?: string | null
}

/** The stream of a legacy completion: pieces of text, and one finish_reason for each choice. */
export function completionsStream(head: AnswerHead, options: GenerationOptions): CallStream {
  const finished = new Set<number>()
  /**
   * The characters of each choice so far, needed if the engine sends the log probabilities of a chat, which have no
   * offsets.
   */
  const characters = new Map<number, number>()

  function rewrite(choice: Choice, write: (choice: object) => string): RewrittenChoice {
    const index = choice.index ?? 0
    const text = choice.text ?? ''
    const finishes = Boolean(choice.finish_reason) && !finished.has(index)
    if (text === '' && !finishes) return { text: '', finished: undefined }
    if (finishes) finished.add(index)
    const reason = finishes ? choice.finish_reason : null
    return {
      text: write({ index, text, logprobs: logprobsOf(choice, index, text), finish_reason: reason }),
      finished: finishes ? index : undefined,
    }
  }

  function logprobsOf({ logprobs }: Choice, index: number, text: string): unknown {
    if (!isChatLogprobs(logprobs)) return logprobs ?? null
    const start = characters.get(index) ?? 0
    characters.set(index, start + charactersIn(text))
    return textLogprobs(logprobs, start)
  }

  return generationStream<Choice>(head, options, {
    idPrefix: 'cmpl-',
    object: 'text_completion',
    countsCharacters: (data) => /"logprobs":\s*\{/.test(data),
    isPlain: ({ index, text, logprobs, finish_reason }) =>
      typeof index === 'number' &&
      typeof text === 'string' &&
      text !== '' &&
      finish_reason === null &&
      (!logprobs || !isChatLogprobs(logprobs)),
    outputOf: ({ text }) => text || undefined,
    cut: ({ index, text }, keep) => ({ index: index ?? 0, text: keep(text ?? ''), finish_reason: 'length' }),
    rewrite,
    ending: (index, reason) => ({ index, text: '', finish_reason: reason }),
  })
}
