import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import {
  firstTokens,
  imageTokens,
  likelyOutputTokens,
  messageTokens,
  jsonTokens,
  sumOf,
  textTokens,
  isTokenizer,
  tokenizerNames,
} from '../../src/shared/tokens/token-estimate.ts'
import { anyCharacter } from '../support/any-character.ts'

fc.configureGlobal({ seed: 1 })

const anyTokenizer = [undefined, ...tokenizerNames]
const text = fc.string({ unit: anyCharacter, maxLength: 200 })

describe('token estimates', () => {
  it('[Q1] count letters, digits, punctuation and scripts each at their own rate', () => {
    const word = textTokens('weir', 'llama3').charged
    assert.equal(word, Math.ceil(4 * 0.27 * 1.3))
    assert.equal(textTokens('', 'llama3').charged, 0)
    assert.ok(textTokens('WEIR', 'llama3').charged > word)
    assert.ok(textTokens('堰堰堰堰', 'llama3').charged > word)
    // Llama 3 takes three digits at a time; Qwen takes them one by one.
    const digits = '0123456789'.repeat(10)
    assert.ok(textTokens(digits, 'qwen2').likely > textTokens(digits, 'llama3').likely * 2)
  })

  it('[Q1] know each script by where it is in Unicode', () => {
    const rates: readonly (readonly [characters: string, tokens: number])[] = [
      ['éż', 1.06],
      ['ạẞ', 1.06],
      ['жԀ', 0.41],
      ['αאش', 0.59],
      ['अก', 0.85],
      ['আ\u1100\u1f00', 1.19],
      ['→★', 2.56],
      ['\u2c00中한！', 0.76],
    ]
    for (const [characters, tokens] of rates) {
      for (const character of characters) {
        const { charged, likely } = textTokens(character.repeat(1000), 'qwen2')
        assert.deepEqual([charged, likely], [Math.ceil(tokens * 1300), Math.floor(tokens * 700)], character)
      }
    }
    const smiles = JSON.stringify('😀'.repeat(1000))
    const { charged, likely } = jsonTokens(Buffer.from(smiles), 0, Buffer.byteLength(smiles), 'qwen2')
    assert.deepEqual({ charged, likely }, textTokens(smiles, 'qwen2'))
  })

  it('[Q1] charge at least what is likely, and more for more text', () => {
    fc.assert(
      fc.property(text, text, fc.constantFrom(...anyTokenizer), (one, other, tokenizer) => {
        const { charged, likely } = textTokens(one, tokenizer)
        const more = textTokens(one + other, tokenizer)
        assert.ok(Number.isSafeInteger(charged) && Number.isSafeInteger(likely))
        assert.ok(charged >= likely)
        assert.ok(more.charged >= charged && more.likely >= likely)
      }),
    )
  })

  it('truncate a text so that even its high estimate is within a limit, and no shorter than needed', () => {
    const anyText = fc.oneof(text, fc.string({ unit: 'grapheme', maxLength: 200 }))
    fc.assert(
      fc.property(
        anyText,
        fc.integer({ min: 1, max: 60 }),
        fc.constantFrom(...anyTokenizer),
        (it, limit, tokenizer) => {
          const cut = firstTokens(it, limit, tokenizer)
          const [first = ''] = it
          assert.ok(it.startsWith(cut))
          assert.ok(cut === first || textTokens(cut, tokenizer).charged <= limit)
          const [next = ''] = it.slice(cut.length)
          assert.ok(cut === it || textTokens(cut + next, tokenizer).charged > limit)
          if (it.isWellFormed()) assert.ok(cut.isWellFormed(), 'no character is split')
        },
      ),
      { numRuns: 2000 },
    )
    assert.equal(firstTokens('', 1, 'llama3'), '')
    assert.equal(firstTokens('😀😀', 1, undefined), '😀', 'something is left to rank')
  })

  it('[Q1] without a tokenizer, charge like the most expensive one and check the context like the cheapest', () => {
    fc.assert(
      fc.property(text, fc.constantFrom(...tokenizerNames), (it, tokenizer) => {
        assert.ok(textTokens(it, undefined).charged >= textTokens(it, tokenizer).charged)
        assert.ok(textTokens(it, undefined).likely <= textTokens(it, tokenizer).likely)
      }),
    )
  })

  it('[Q1] measure a long text as the sum of its parts', () => {
    const part = 'A weir, 堰, of 1000 tokens 😀. '
    const once = textTokens(part.repeat(1000), 'gemma').charged
    assert.ok(Math.abs(textTokens(part.repeat(100_000), 'gemma').charged - once * 100) <= 100)
  })

  it('[Q1] count JSON from its bytes like its text, however it is indented and escaped', () => {
    const escape = (json: string): string =>
      json.replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(...anyTokenizer), (value, tokenizer) => {
        const estimate = (json: string): object => {
          const bytes = Buffer.from(`..${json}..`)
          return jsonTokens(bytes, 2, bytes.length - 2, tokenizer)
        }
        const compact = JSON.stringify(value)
        assert.deepEqual(estimate(JSON.stringify(value, null, '\t ')), estimate(compact))
        assert.deepEqual(estimate(escape(compact)), estimate(compact))
        if (!compact.includes('\\')) assert.deepEqual(estimate(compact), textTokens(compact, tokenizer))
      }),
      { numRuns: 2000 },
    )
    const text = 'A "weir" \\ of 1000 tokens,\n\t堰 é 😀 '.repeat(1000)
    const bytes = Buffer.from(JSON.stringify(text))
    const { charged } = jsonTokens(bytes, 0, bytes.length, 'llama3')
    assert.ok(Math.abs(charged - textTokens(text, 'llama3').charged) <= 2, 'an escape is one character')
    const number = Buffer.from('1'.repeat(4000))
    assert.equal(jsonTokens(number, 0, number.length, 'llama3').charged, textTokens('1'.repeat(4000), 'llama3').charged)
  })

  it('[Q1] count plain ASCII, two characters at a time, like any other text', () => {
    const letters = fc.string({
      unit: fc.constantFrom('a', 'Z', '0', '9', '.', ',', '-'),
      minLength: 250,
      maxLength: 600,
    })
    fc.assert(
      fc.property(letters, fc.constantFrom('', 'é', '堰'), fc.constantFrom(...anyTokenizer), (it, end, tokenizer) => {
        const long = it.repeat(40).slice(0, 8192 + it.length - end.length) + end
        const bytes = Buffer.from(long)
        assert.deepEqual(textTokens(long, tokenizer), jsonTokens(bytes, 0, bytes.length, tokenizer))
      }),
    )
    // The most expensive ones, which add up to the largest numbers.
    const digits = Buffer.from('7'.repeat(20_001))
    for (const tokenizer of anyTokenizer) {
      assert.deepEqual(textTokens(digits.toString(), tokenizer), jsonTokens(digits, 0, digits.length, tokenizer))
    }
  })

  it('know tokenizers by name, in upper or lower case', () => {
    assert.ok(isTokenizer('Llama3') && isTokenizer('CL100K_BASE'))
    assert.ok(!isTokenizer('llama') && !isTokenizer('constructor'))
    assert.deepEqual(textTokens('Weir 堰', 'Llama3'), textTokens('Weir 堰', 'llama3'))
  })

  it('[Q1] add something for each message, and more for each image', () => {
    assert.deepEqual(messageTokens(3), sumOf([messageTokens(1), messageTokens(1), messageTokens(1)]))
    assert.ok(imageTokens(1).charged > messageTokens(1).charged)
    assert.deepEqual(sumOf([]), { charged: 0, likely: 0 })
    assert.deepEqual(sumOf([{ charged: 5, likely: 2 }, messageTokens(1)]), { charged: 13, likely: 5 })
  })

  it('estimate an answer from its bytes', () => {
    assert.equal(likelyOutputTokens(0), 0)
    assert.equal(likelyOutputTokens(5), 2)
  })
})
