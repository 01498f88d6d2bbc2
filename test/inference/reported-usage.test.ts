import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readUsage } from '../../src/inference/generation/generation-usage.ts'

describe('the usage that an engine reports', () => {
  it('has no more cached tokens than input, and no more reasoning than output', () => {
    const read = readUsage({
      prompt_tokens: 10,
      completion_tokens: 5,
      prompt_tokens_details: { cached_tokens: 50 },
      completion_tokens_details: { reasoning_tokens: 50 },
    })
    assert.deepEqual([read?.usage.cachedInputTokens, read?.reasoningTokens], [10, 5])
  })

  it('does not count when it is all zero, negative, broken or impossibly large', () => {
    for (const [input, output] of [
      [0, 0],
      [-1, 5],
      [5, -1],
      [1.5, 1],
      ['10', 1],
      [1e9, 1],
    ]) {
      assert.equal(readUsage({ prompt_tokens: input, completion_tokens: output }), undefined, `${input} ${output}`)
    }
    for (const nothing of [null, undefined, 5, {}]) assert.equal(readUsage(nothing), undefined)
  })
})
