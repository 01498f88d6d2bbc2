import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { encode as encodeCl100k } from 'gpt-tokenizer/encoding/cl100k_base'
import { encode as encodeO200k } from 'gpt-tokenizer/encoding/o200k_base'
import {
  choiceMeter,
  leastTokensOf,
  tokenBudget,
  type OutputLimit,
} from '../../src/inference/generation/generation-limit.ts'
import { runLength } from '../support/long-run.ts'

const limitOf = (maxTokens: number, more: Partial<OutputLimit> = {}): OutputLimit => ({
  maxTokens,
  choices: 1,
  generated: 1,
  tokenizer: undefined,
  ...more,
})

const text = fc.array(
  fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 20 }),
    fc.constantFrom(
      'the ',
      'quick\n',
      ' brown',
      '    ',
      '\n\n',
      ' -- ',
      '//',
      'x1 2y ',
      '\t',
      'größer ',
      '词语 ',
      ' а б в ',
    ),
    fc.nat(300).map((length) => ' '.repeat(length)),
    fc.nat(300).map((length) => '-'.repeat(length)),
    fc.nat(300).map((length) => 'ab '.repeat(length)),
  ),
  { maxLength: 30 },
)

describe('the least number of tokens of a text', () => {
  it('[E12] is never more than a tokenizer finds', () => {
    fc.assert(
      fc.property(text, (parts) => {
        const whole = parts.join('')
        for (const encode of [encodeCl100k, encodeO200k]) {
          // Text that looks like a special token is ordinary text.
          const tokens = encode(whole, { disallowedSpecial: new Set() }).length
          assert.ok(leastTokensOf(whole) <= tokens, `${leastTokensOf(whole)} > ${tokens}`)
        }
      }),
      { numRuns: runLength(300, 2000) },
    )
  })

  it('[E12] is at least the number of its words', () => {
    assert.equal(leastTokensOf('A weir lets a river through.\n\n  It has 2 gates.'), 10)
    assert.equal(leastTokensOf(' '.repeat(1280)), 10)
    assert.equal(leastTokensOf(''), 0)
    assert.equal(leastTokensOf('a z A Z 0 9 \u0000b'), 7)
    assert.equal(leastTokensOf('` { @ [ / : !x'), 1, 'what is beside letters and digits is no word')
  })
})

describe('the meter of a streamed choice', () => {
  it('[E12] never stops an engine that keeps its limit, however it splits its text into events', () => {
    fc.assert(
      fc.property(text, fc.array(fc.nat(), { maxLength: 40 }), (parts, places) => {
        const whole = parts.join('')
        const tokens = encodeO200k(whole, { disallowedSpecial: new Set() }).length
        // At most as many events as tokens.
        const at = [...new Set(places.slice(0, Math.max(0, tokens - 1)).map((place) => place % (whole.length + 1)))]
        const ends = [...at.sort((a, b) => a - b), whole.length]
        const meter = choiceMeter(limitOf(tokens), 0)
        let start = 0
        for (const end of ends) {
          const piece = whole.slice(start, end)
          start = end
          if (piece !== '') assert.equal(meter.take(piece, undefined, false), undefined)
        }
      }),
      { numRuns: runLength(300, 2000) },
    )
  })

  it('[E12] trusts the engine’s count, and that an event has a token', () => {
    const meter = choiceMeter(limitOf(5), 0)
    assert.equal(meter.take('six words in a single token', 1, false), undefined)
    assert.equal(meter.take('a', 4, false), undefined)
    assert.equal(meter.take('b', undefined, false), undefined)
    assert.ok(meter.take('c', undefined, false))
    assert.equal(meter.events(), 3)
    const lying = choiceMeter(limitOf(2), 0)
    assert.deepEqual(
      ['a', 'b', 'c'].map((it) => lying.take(it, 1, false) === undefined),
      [true, true, false],
    )
  })

  it('[E12] allows an engine to count its last token, which is not sent', () => {
    const meter = choiceMeter(limitOf(1), 0)
    assert.equal(meter.take('a', 1, false), undefined)
    assert.equal(meter.take(undefined, 2, true), undefined)
    assert.ok(meter.take(undefined, 2, false), 'but not go on without a word')
  })

  it('[E12] allows each choice to repeat its own prompt', () => {
    const limit = limitOf(1, { choices: 4, echoedCharacters: [3, 5] })
    for (const [index, echo] of ['abc', 'abc', 'abcde', 'abcde'].entries()) {
      const meter = choiceMeter(limit, index)
      for (const character of echo) assert.equal(meter.take(character, 0, false), undefined)
      assert.equal(meter.events(), 0)
      assert.equal(meter.take('x', undefined, false), undefined)
      assert.ok(meter.take('y', undefined, false))
    }
  })
})

describe('a budget of tokens', () => {
  it('keeps the beginning of each text until it is used up', () => {
    const budget = tokenBudget(4, undefined)
    assert.equal(budget.keep('Hi'), 'Hi')
    assert.ok(!budget.isExceeded())
    const kept = budget.keep('a long text that does not fit')
    assert.ok(kept.length > 0 && 'a long text that does not fit'.startsWith(kept))
    assert.ok(budget.isExceeded())
    assert.equal(budget.keep('more'), '')
  })

  it('keeps whole characters', () => {
    assert.equal(tokenBudget(1, undefined).keep('👩‍👧👩‍👧'), '👩')
    assert.equal(tokenBudget(0, undefined).keep('👩'), '')
  })

  it('does not charge for a repeated prompt', () => {
    const budget = tokenBudget(0, undefined, 6)
    assert.equal(budget.keep('prom'), 'prom')
    assert.equal(budget.keep('pt and more'), 'pt')
    assert.ok(budget.isExceeded())
  })
})
