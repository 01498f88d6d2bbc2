import type { AnswerHead, ReadAnswer } from '../core/job.ts'
import type { GenerationDialect } from './dialect.ts'
import { generationAnswer, type AnswerWording } from './generation-answer.ts'

const wording: AnswerWording = {
  idPrefix: 'cmpl-',
  object: 'text_completion',
  content: ({ text }) => ({ text: typeof text === 'string' ? text : '' }),
}

/** A whole legacy completion. */
export function textCompletion(
  body: Buffer,
  head: AnswerHead,
  cachedTokens?: GenerationDialect['cachedTokens'],
): ReadAnswer | undefined {
  return generationAnswer(body, head, cachedTokens, wording)
}
