import type { LlamaModel, Token } from 'node-llama-cpp'

/** Tokens before the new ones: enough for a tokenizer to know whether a space belongs in between. */
const contextTokens = 8
/** A character is at most four bytes, each of which may be a token of its own. */
const piecesMax = 4

/** Turns tokens into text as they come, never showing half a character. */
export class TokenText {
  readonly #model: LlamaModel
  #before: Token[]
  #pending: Token[] = []

  constructor(model: LlamaModel, before: readonly Token[]) {
    this.#model = model
    this.#before = before.slice(-contextTokens)
  }

  push(token: Token): string {
    this.#pending.push(token)
    const text = this.#model.detokenize(this.#pending, false, this.#before)
    return text.endsWith('\uFFFD') && this.#pending.length < piecesMax ? '' : this.#take(text)
  }

  flush(): string {
    return this.#take(this.#model.detokenize(this.#pending, false, this.#before))
  }

  #take(text: string): string {
    this.#before = [...this.#before, ...this.#pending].slice(-contextTokens)
    this.#pending = []
    return text
  }
}
