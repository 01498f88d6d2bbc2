import { createRequire } from 'node:module'
import { ApiError } from '../../shared/errors.ts'

const require = createRequire(import.meta.url)

/**
 * The texts of token ids of cl100k_base, the tokenizer that SDKs use. Its table takes 42 MB and a tenth of a second to load,
 * and a list of the largest size almost as long to decode. So it is loaded on demand, and only in the thread for large bodies.
 */
export function textsOfTokens(input: readonly number[] | readonly (readonly number[])[]): readonly string[] {
  const { decode } =
    require('gpt-tokenizer/encoding/cl100k_base') as typeof import('gpt-tokenizer/encoding/cl100k_base')
  const lists = typeof input[0] === 'number' ? [input as readonly number[]] : (input as readonly (readonly number[])[])
  return lists.map((tokens, index) => {
    try {
      return decode(tokens)
    } catch {
      // The decoder's own message quotes the input, which must not be logged.
      throw new ApiError('invalid_value', 'The input has a number that is not a token id of cl100k_base.', {
        param: lists.length === 1 ? 'input' : `input[${index}]`,
      })
    }
  })
}
