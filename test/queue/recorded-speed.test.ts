import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { recordedSpeed, type RecordedAnswer } from '../../src/queue/recorded-speed.ts'

const answer = (changes: Partial<RecordedAnswer>): RecordedAnswer => ({
  inputTokens: 1000,
  outputTokens: 100,
  durationMs: 2500,
  firstTokenMs: 500,
  ...changes,
})

describe('the speed of an engine, as its answers show it', () => {
  it('is that of the output after the first token, and of the input before it', () => {
    assert.deepEqual(recordedSpeed([answer({})]), { tokensPerSecond: 50, prefillTokensPerSecond: 2000 })
  })

  it('is taken from the whole time where an answer was not streamed, or has no output', () => {
    const whole = recordedSpeed([answer({ firstTokenMs: null })])
    assert.deepEqual(whole, { tokensPerSecond: 40, prefillTokensPerSecond: undefined })
    const vectors = recordedSpeed([answer({ firstTokenMs: null, outputTokens: 0 })])
    assert.deepEqual(vectors, { tokensPerSecond: undefined, prefillTokensPerSecond: 400 })
  })

  it('is not taken from answers too short to measure', () => {
    const short = [answer({ outputTokens: 7 }), answer({ durationMs: 549 }), answer({ outputTokens: 0 })]
    assert.equal(recordedSpeed(short).tokensPerSecond, undefined)
    assert.equal(recordedSpeed([answer({ outputTokens: 8, durationMs: 550 })]).tokensPerSecond, 160)
    assert.deepEqual(recordedSpeed([]), { tokensPerSecond: undefined, prefillTokensPerSecond: undefined })
  })

  it('is that of the fast answers, which were alone on the engine, but not of the fastest', () => {
    const answers = Array.from({ length: 11 }, (_, index) => answer({ durationMs: 500 + 100_000 / (10 * (index + 1)) }))
    const { tokensPerSecond = 0 } = recordedSpeed(answers)
    assert.equal(Math.round(tokensPerSecond), 100)
  })
})
