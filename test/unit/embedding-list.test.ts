import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { base64List } from '../../src/core/embedding-list.ts'

interface Item {
  readonly [name: string]: unknown
  readonly embedding: string
}

const usage = { prompt_tokens: 3, total_tokens: 3 }
const vector = (value: number): string => Buffer.from(Float32Array.of(value, 1).buffer).toString('base64')
const item = (index: number): Item => ({ object: 'embedding', index, embedding: vector(index) })
const bytesOf = (answer: unknown): Buffer => Buffer.from(JSON.stringify(answer))

/** As bytes come over a network: cut anywhere. */
const cut = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => bytes.subarray(index * size, (index + 1) * size))

const json = (slices: readonly Buffer[] | undefined): unknown =>
  JSON.parse(Buffer.concat(slices ?? []).toString('utf8'))

/** The fields of an item in another order, as some servers have them. */
function reordered(it: Item, order: readonly string[]): Item {
  return Object.fromEntries(order.map((name) => [name, it[name]])) as Item
}

const pieceSizes = fc.integer({ min: 1, max: 400 })

describe('embeddings in the bytes they came in', () => {
  it('are found in any order of fields, and say what JSON.parse says', () => {
    const orders = fc.shuffledSubarray(['object', 'index', 'embedding'], { minLength: 3 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), orders, fc.boolean(), pieceSizes, (count, order, isFirst, size) => {
        const data = Array.from({ length: count }, (_, index) => reordered(item(index), order))
        const answer = isFirst ? { data, usage } : { object: 'list', model: 'ü', usage, data, id: 1 }
        const found = base64List(cut(bytesOf(answer), size), count)
        assert.deepEqual(json(found?.data), data)
        assert.deepEqual(found?.rest, { ...answer, data: [] })
      }),
    )
  })

  it('are left to the parser where anything is otherwise', () => {
    const two = [item(0), item(1)]
    const others: readonly [string, unknown][] = [
      ['fewer', { data: [item(0)] }],
      ['more', { data: [...two, item(2)] }],
      ['another order', { data: two.toReversed() }],
      ['twice the same', { data: [item(0), item(0)] }],
      ['another length', { data: [item(0), { ...item(1), embedding: 'AAAA' }] }],
      ['numbers', { data: [item(0), { ...item(1), embedding: [1, 2] }] }],
      ['one field more', { data: two.map((it) => ({ ...it, x: 1 })) }],
      ['one field less', { data: two.map(({ index, embedding }) => ({ index, embedding })) }],
      ['no base64', { data: two.map((it) => ({ ...it, embedding: '!'.repeat(12) })) }],
      ['half a number', { data: two.map((it) => ({ ...it, embedding: 'AAA=' })) }],
      ['a quote inside', { data: [item(0), { ...item(1), embedding: `${vector(1).slice(2)}"` }] }],
      ['more than ASCII', { data: [item(0), { ...item(1), embedding: `${vector(1).slice(2)}ü` }] }],
      ['further down', { meta: { data: two } }],
      ['no list', { data: {} }],
      ['nothing', {}],
      ['another kind', two],
    ]
    for (const [what, answer] of others) assert.equal(base64List([bytesOf(answer)], 2), undefined, what)
    assert.equal(base64List([Buffer.from(JSON.stringify({ data: two }, null, 1))], 2), undefined, 'spaces')
    const whole = bytesOf({ data: two, usage })
    for (let length = 0; length < whole.length; length++) {
      assert.equal(base64List(cut(whole.subarray(0, length), 9), 2), undefined, `cut at ${length}`)
    }
  })

  it('that were tampered with never say anything else than JSON.parse does', () => {
    const whole = bytesOf({ data: [item(0), item(1)], usage })
    const places = fc.nat({ max: whole.length - 1 })
    fc.assert(
      fc.property(places, fc.integer({ min: 0x20, max: 0x7e }), pieceSizes, (place, byte, size) => {
        const bytes = Buffer.from(whole)
        bytes[place] = byte
        const found = base64List(cut(bytes, size), 2)
        if (!found) return
        const { data } = JSON.parse(bytes.toString('utf8')) as { data: Item[] }
        assert.deepEqual(json(found.data), data)
        assert.deepEqual(
          data.map(({ index }) => index),
          [0, 1],
        )
      }),
      { numRuns: 2000 },
    )
  })
})
