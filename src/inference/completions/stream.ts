import type { AnswerHead } from '../../engines/job.ts'
import { charactersIn, isChatLogprobs, textLogprobs } from '../generation/generation-logprobs.ts'
import type { GenerationOptions } from '../generation/generation-options.ts'
import { generationStream, type CallStream, type RewrittenChoice } from '../generation/generation-stream.ts'

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
