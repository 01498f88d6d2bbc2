import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { base64List } from '../../src/core/embedding-list.ts'

interface Item {
  readonly [name: string]: unknown
  readonly embedding: string
}

/** More than is read whole: 40 vectors of 500 numbers are 108 KB. */
const COUNT = 40
const NUMBERS = 500
const usage = { prompt_tokens: 3, total_tokens: 3 }
const vector = (value: number): string =>
  Buffer.from(Float32Array.from({ length: NUMBERS }, (_, at) => value + at).buffer).toString('base64')
const item = (index: number): Item => ({ object: 'embedding', index, embedding: vector(index) })
const items = (count = COUNT): Item[] => Array.from({ length: count }, (_, index) => item(index))
const replaced = (at: number, changes: object): Item[] => items().with(at, { ...item(at), ...changes })
const bytesOf = (answer: unknown): Buffer => Buffer.from(JSON.stringify(answer))

/** The fields of an item in another order, as some servers have them. */
function reordered(it: Item, order: readonly string[]): Item {
  return Object.fromEntries(order.map((name) => [name, it[name]])) as Item
}

/**
 * What becomes of an answer whose bytes come in chunks of a size: its list and the rest, as JSON.parse reads
 * them; or it is left to be read whole, with nothing sent on; or it broke, with something sent on.
 */
function passed(bytes: Buffer, size: number, count = COUNT): { data: unknown; rest: unknown } | 'whole' | 'broken' {
  const list = base64List(count)
  const sent: Buffer[] = []
  try {
    for (let from = 0; from < bytes.length; from += size) {
      const piece = list.push(bytes.subarray(from, from + size))
      if (piece) sent.push(piece)
    }
  } catch {
    return 'broken'
  }
  if (sent.length === 0) return 'whole'
  const rest = list.rest()
  return rest === undefined ? 'broken' : { data: JSON.parse(Buffer.concat(sent).toString('utf8')), rest }
}

const fateOf = (bytes: Buffer): string => {
  const found = passed(bytes, 16_384)
  return typeof found === 'string' ? found : 'passed'
}

const chunkSizes = fc.oneof(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 1000, max: 200_000 }))

describe('embeddings on their way through', () => {
  it('pass in any order of fields and whatever chunks they come in, and say what JSON.parse says', () => {
    const orders = fc.shuffledSubarray(['object', 'index', 'embedding'], { minLength: 3 })
    fc.assert(
      fc.property(fc.integer({ min: 26, max: 60 }), orders, fc.boolean(), chunkSizes, (count, order, isFirst, size) => {
        const data = items(count).map((it) => reordered(it, order))
        const answer = isFirst ? { data, usage } : { object: 'list', model: 'ü', usage, data, id: 1 }
        assert.deepEqual(passed(bytesOf(answer), size, count), { data, rest: { ...answer, data: [] } })
      }),
    )
  })

  it('are read whole where few come, or the first of them are worded otherwise', () => {
    const others: readonly [string, unknown][] = [
      ['few', { data: items(2) }],
      ['another order', { data: items().toReversed() }],
      ['the first twice', { data: [item(0), ...items()] }],
      ['another length', { data: replaced(1, { embedding: 'AAAA' }) }],
      ['numbers', { data: replaced(1, { embedding: [1, 2] }) }],
      ['one field more', { data: items().map((it) => ({ ...it, x: 1 })) }],
      ['one field less', { data: items().map(({ index, embedding }) => ({ index, embedding })) }],
      ['no base64', { data: items().map((it) => ({ ...it, embedding: '!'.repeat(2668) })) }],
      ['half a number', { data: items().map((it) => ({ ...it, embedding: 'A'.repeat(2664) })) }],
      ['a quote inside', { data: replaced(1, { embedding: `${vector(1).slice(2)}"` }) }],
      ['more than ASCII', { data: replaced(1, { embedding: `${vector(1).slice(2)}ü` }) }],
      ['further down', { meta: { data: items() } }],
      ['no list', { data: {}, padding: vector(1).repeat(40) }],
      ['another kind', items()],
    ]
    for (const [what, answer] of others) assert.equal(fateOf(bytesOf(answer)), 'whole', what)
    assert.equal(fateOf(Buffer.from(JSON.stringify({ data: items() }, null, 1))), 'whole', 'spaces')
  })

  it('break where the wording changes on the way, and never pass for what they are not', () => {
    const last = COUNT - 1
    const others: readonly [string, unknown][] = [
      ['fewer', { data: items(last) }],
      ['more', { data: items(COUNT + 1) }],
      ['one twice', { data: items().with(last, item(last - 1)) }],
      ['another length', { data: replaced(last, { embedding: 'AAAA' }) }],
      ['numbers', { data: replaced(last, { embedding: [1, 2] }) }],
      ['a quote inside', { data: replaced(last, { embedding: `${vector(1).slice(2)}"` }) }],
      ['more than ASCII', { data: replaced(last, { embedding: `${vector(1).slice(2)}ü` }) }],
      ['one field more', { data: replaced(last, { x: 1 }) }],
      ['a second list', `{"data":${JSON.stringify(items())},"data":[1]}`],
      ['too much behind it', { data: items(), more: 'x'.repeat(70_000) }],
    ]
    for (const [what, answer] of others) {
      const bytes = typeof answer === 'string' ? Buffer.from(answer) : bytesOf(answer)
      assert.equal(fateOf(bytes), 'broken', what)
    }
  })

  it('that end too soon are not whole', () => {
    const whole = bytesOf({ data: items(), usage })
    fc.assert(
      fc.property(fc.nat({ max: whole.length - 1 }), (length) => {
        assert.equal(typeof passed(whole.subarray(0, length), 9000), 'string')
      }),
    )
  })

  it('that were tampered with never say anything else than JSON.parse does', () => {
    const whole = bytesOf({ data: items(), usage })
    const places = fc.nat({ max: whole.length - 1 })
    fc.assert(
      fc.property(places, fc.integer({ min: 0x20, max: 0x7e }), chunkSizes, (place, byte, size) => {
        const bytes = Buffer.from(whole)
        bytes[place] = byte
        const found = passed(bytes, size)
        if (typeof found === 'string') return
        const { data } = JSON.parse(bytes.toString('utf8')) as { data: Item[] }
        assert.deepEqual(found.data, data)
        assert.deepEqual(
          data.map(({ index }) => index),
          items().map(({ index }) => index),
        )
      }),
      { numRuns: 1000 },
    )
  })
})
