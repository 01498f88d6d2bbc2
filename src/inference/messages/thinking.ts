import type { MessageBlock, MessagesRequest } from './schema.ts'

/**
 * What a caller sees of the reasoning. `sealed`: a block without text, whose reasoning is in the signature. Most chat
 * templates need the reasoning of a turn until its last tool call, and without it the start of the prompt would change.
 */
export type Thinking = 'shown' | 'sealed' | 'hidden'

/** It is not verified, but clients drop thinking without a signature. */
const UNSEALED = 'unsealed'

/** Callers who do not ask for the reasoning take the first block for the answer. */
export function thinkingOf(thinking: MessagesRequest['thinking']): Thinking {
  if (thinking?.type !== 'enabled' && thinking?.type !== 'adaptive') return 'hidden'
  return thinking.display === 'omitted' ? 'sealed' : 'shown'
}

/** The text belongs to the caller, so it is packed and not encrypted. */
export function signatureOf(text: string, thinking: Thinking): string {
  return thinking === 'sealed' ? Buffer.from(text).toString('base64') : UNSEALED
}

export function readThinking({ thinking, signature }: MessageBlock): string {
  if (thinking) return thinking
  return signature && signature !== UNSEALED ? Buffer.from(signature, 'base64').toString() : ''
}
