import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import { embeddingList } from '../../src/inference/embeddings/embedding-list.ts'
import { runLength } from '../support/long-run.ts'

type Form = 'base64' | 'float'

interface Item {
  readonly [name: string]: unknown
  readonly embedding: string | readonly number[]
}

/** Large enough to be forwarded: 40 vectors of 500 numbers are 108 KB in base64, and more as numbers. */
const COUNT = 40
const NUMBERS = 500
const usage = { prompt_tokens: 3, total_tokens: 3 }
const bytesOf = (answer: unknown): Buffer => Buffer.from(JSON.stringify(answer))

/** An item with its fields in another order, as some servers send them. */
function reordered(it: Item, order: readonly string[]): Item {
  return Object.fromEntries(order.map((name) => [name, it[name]])) as Item
}

/**
 * What happens to an answer that arrives in chunks of a size. Forwarded: its list and the rest, as JSON.parse
 * reads them. Otherwise 'whole': nothing was forwarded; 'broken': it failed after something was forwarded;
 * 'unreadable': it was forwarded but is not JSON.
 */
function passed(
  form: Form,
  bytes: Buffer,
  size: number,
  count = COUNT,
): { data: unknown; rest: unknown } | 'whole' | 'broken' | 'unreadable' {
  const list = embeddingList(count, form)
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
  if (rest === undefined) return 'broken'
  try {
    return { data: JSON.parse(Buffer.concat(sent).toString('utf8')), rest }
  } catch {
    return 'unreadable'
  }
}

/** To show where so many numbers differ would take minutes. */
function requireSame(found: unknown, expected: unknown): void {
  assert.ok(isDeepStrictEqual(found, expected), typeof found === 'string' ? found : 'it is another list')
}

const chunkSizes = fc.oneof(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 1000, max: 200_000 }))

for (const form of ['base64', 'float'] as const) {
  const numbers = (value: number): number[] => Array.from({ length: NUMBERS }, (_, at) => Math.fround(value + at / 7))
  const inBase64 = (value: number): string => Buffer.from(Float32Array.from(numbers(value)).buffer).toString('base64')
  const vector = form === 'base64' ? inBase64 : numbers
  const otherVector = form === 'base64' ? numbers : inBase64
  const item = (index: number): Item => ({ object: 'embedding', index, embedding: vector(index) })
  const items = (count = COUNT): Item[] => Array.from({ length: count }, (_, index) => item(index))
  const replaced = (at: number, changes: object): Item[] => items().with(at, { ...item(at), ...changes })
  const fateOf = (bytes: Buffer, size = 16_384): string => {
    const found = passed(form, bytes, size)
    return typeof found === 'string' ? found : 'passed'
  }

  describe(`forwarded embeddings in ${form}`, () => {
    it('are the ones JSON.parse finds, with any order of fields and any chunks', () => {
      const orders = fc.shuffledSubarray(['object', 'index', 'embedding'], { minLength: 3 })
      const counts = fc.integer({ min: 26, max: 60 })
      fc.assert(
        fc.property(counts, orders, fc.boolean(), chunkSizes, (count, order, isFirst, size) => {
          const data = items(count).map((it) => reordered(it, order))
          const answer = isFirst ? { data, usage } : { object: 'list', model: 'ü', usage, data, id: 1 }
          const found = passed(form, bytesOf(answer), size, count)
          requireSame(found, { data, rest: { ...answer, data: [] } })
        }),
        // A smaller answer would say no more about a failure, and looking for one takes minutes.
        { numRuns: runLength(20, 40), endOnFailure: true },
      )
    })

    it('may be so long that two of them take many chunks', () => {
      const embedding =
        form === 'base64'
          ? inBase64(1).replaceAll('=', '').repeat(48)
          : numbers(1 / 3).concat(...Array.from({ length: 20 }, () => numbers(2 / 3)))
      const data = Array.from({ length: 8 }, (_, index) => ({ object: 'embedding', index, embedding }))
      requireSame(passed(form, bytesOf({ data, usage }), 65_536, 8), { data, rest: { data: [], usage } })
    })

    it('are read as a whole instead when there are few, or when the first have another format', () => {
      const others: readonly (readonly [string, unknown])[] = [
        ['few', { data: items(2) }],
        ['another order', { data: items().toReversed() }],
        ['the first twice', { data: [item(0), ...items()] }],
        ['the other form', { data: items().map((it) => ({ ...it, embedding: otherVector(it['index'] as number) })) }],
        ['one in the other form', { data: replaced(1, { embedding: otherVector(1) }) }],
        ['an empty one', { data: replaced(1, { embedding: form === 'base64' ? '' : [] }) }],
        ['one field more', { data: items().map((it) => ({ ...it, x: 1 })) }],
        ['one field less', { data: items().map(({ index, embedding }) => ({ index, embedding })) }],
        [
          'no vectors',
          {
            data: items().map((it) => ({ ...it, embedding: form === 'base64' ? '!'.repeat(2668) : [null, 1] })),
            more: 'x'.repeat(60_000),
          },
        ],
        ['further down', { meta: { data: items() } }],
        ['another list before it', { meta: { data: [] }, data: items() }],
        ['no list', { data: {}, padding: 'x'.repeat(100_000) }],
        ['another kind', items()],
      ]
      for (const [what, answer] of others) assert.equal(fateOf(bytesOf(answer)), 'whole', what)
      assert.equal(fateOf(Buffer.from(JSON.stringify({ data: items() }, null, 1))), 'whole', 'spaces')
      const muchAfter = bytesOf({ data: items(), more: 'x'.repeat(70_000) })
      assert.equal(fateOf(muchAfter, muchAfter.length), 'whole', 'much after it, all at once')
    })

    it('break when the format changes midway', () => {
      const last = COUNT - 1
      const others: readonly (readonly [string, unknown])[] = [
        ['fewer', { data: items(last) }],
        ['more', { data: items(COUNT + 1) }],
        ['one twice', { data: items().with(last, item(last - 1)) }],
        ['the other form', { data: replaced(last, { embedding: otherVector(1) }) }],
        ['an empty one', { data: replaced(last, { embedding: form === 'base64' ? '' : [] }) }],
        ['one field more', { data: replaced(last, { x: 1 }) }],
        ['a second list', `{"data":${JSON.stringify(items())},"data":[1]}`],
        ['too much after it', { data: items(), more: 'x'.repeat(70_000) }],
        ...(form === 'base64'
          ? ([
              ['another length', { data: replaced(last, { embedding: 'AAAA' }) }],
              ['a quote inside', { data: replaced(last, { embedding: `${inBase64(1).slice(2)}"` }) }],
              ['more than ASCII', { data: replaced(last, { embedding: `${inBase64(1).slice(2)}ü` }) }],
            ] as const)
          : ([
              ['no number', { data: replaced(last, { embedding: [1, null] }) }],
              ['a list inside', { data: replaced(last, { embedding: [1, [2]] }) }],
            ] as const)),
      ]
      for (const [what, answer] of others) {
        const bytes = typeof answer === 'string' ? Buffer.from(answer) : bytesOf(answer)
        assert.equal(fateOf(bytes), 'broken', what)
      }
    })

    it('are forwarded from 64 KiB on, and no sooner', () => {
      const whole = bytesOf({ data: items(), usage })
      for (const [size, isForwarded] of [
        [65_535, false],
        [65_536, true],
      ] as const) {
        assert.equal(embeddingList(COUNT, form).push(whole.subarray(0, size)) !== undefined, isForwarded)
      }
    })

    it('may have 64 KiB after them, and no more', () => {
      const answer = (length: number): Buffer => bytesOf({ data: items(), more: 'x'.repeat(length) })
      // `],"more":"` and `"}` belong to what comes after the list, but not its bracket.
      const most = 65_536 - ',"more":""}'.length
      for (const size of [9000, 1_000_000]) {
        assert.equal(fateOf(answer(most), size), 'passed')
        assert.equal(fateOf(answer(most + 1), size), size === 9000 ? 'broken' : 'whole')
      }
    })

    it('may have up to 1 KiB before them, or are read as a whole', () => {
      const answer = (length: number): Buffer => bytesOf({ id: 'x'.repeat(length), data: items(), usage })
      const most = 1024 - '{"id":"","data":['.length
      assert.equal(fateOf(answer(most)), 'passed')
      assert.equal(fateOf(answer(most + 1)), 'whole')
    })

    it('are read as a whole if two of them do not fit into a megabyte', () => {
      const list = embeddingList(COUNT, form)
      const start = Buffer.from(`{"data":[{"object":"embedding","index":0,"embedding":${form === 'base64' ? '"' : '['}`)
      assert.equal(list.push(start), undefined)
      for (let sent = 0; sent < 3 * 1024 * 1024; sent += 65_536) {
        assert.equal(list.push(Buffer.alloc(65_536, form === 'base64' ? 'A' : '1')), undefined)
      }
      assert.equal(list.rest(), undefined)
      const long = form === 'base64' ? 'A'.repeat(1_200_000) : Array.from({ length: 600_000 }, () => 1)
      const data = [0, 1, 2].map((index) => ({ object: 'embedding', index, embedding: long }))
      assert.equal(passed(form, bytesOf({ data, usage }), 65_536, 3), 'whole')
    })

    it('are incomplete when they end too soon', () => {
      const whole = bytesOf({ data: items(), usage })
      fc.assert(
        fc.property(fc.nat({ max: whole.length - 1 }), (length) => {
          assert.equal(typeof passed(form, whole.subarray(0, length), 9000), 'string')
        }),
        { endOnFailure: true },
      )
    })

    it('never differ from what JSON.parse reads, even when a byte was changed', () => {
      const whole = bytesOf({ data: items(), usage })
      const places = fc.nat({ max: whole.length - 1 })
      fc.assert(
        fc.property(places, fc.integer({ min: 0x20, max: 0x7e }), chunkSizes, (place, byte, size) => {
          const bytes = Buffer.from(whole)
          bytes[place] = byte
          const found = passed(form, bytes, size)
          // Numbers are forwarded unchecked, so an invalid one stays invalid.
          if (found === 'unreadable') assert.equal(form, 'float')
          if (typeof found === 'string') return
          const { data } = JSON.parse(bytes.toString('utf8')) as { data: Item[] }
          requireSame(found.data, data)
          assert.deepEqual(
            data.map(({ index }) => index),
            items().map(({ index }) => index),
          )
        }),
        { numRuns: runLength(100, 300), endOnFailure: true },
      )
    })
  })
}
