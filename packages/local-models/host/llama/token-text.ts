import type { LlamaModel, Token } from 'node-llama-cpp'

/** How many earlier tokens the tokenizer sees: enough to decide whether a space belongs in between. */
const CONTEXT_TOKENS = 8
/** A character has at most four bytes, and each may be a token of its own. */
const MAX_TOKENS_PER_CHARACTER = 4

export interface TokenText {
  /** Returns the text that is complete so far, which may be empty. */
  push(token: Token): string
  flush(): string
}

/** Turns tokens into text as they arrive, and never shows half a character. */
export function tokenText(model: LlamaModel, prompt: readonly Token[]): TokenText {
  let before = prompt.slice(-CONTEXT_TOKENS)
  let pending: Token[] = []

  function take(text: string): string {
    before = [...before, ...pending].slice(-CONTEXT_TOKENS)
    pending = []
    return text
  }

  return {
    push(token) {
      pending.push(token)
      const text = model.detokenize(pending, false, before)
      const isIncomplete = text.endsWith('\uFFFD') && pending.length < MAX_TOKENS_PER_CHARACTER
      return isIncomplete ? '' : take(text)
    },
    flush: () => take(model.detokenize(pending, false, before)),
  }
}
