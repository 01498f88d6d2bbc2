import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { parseWithLargeStrings } from '../../src/inference/images/large-json-strings.ts'

const long = 'A'.repeat(5000)

describe('JSON parsed without its long strings', () => {
  it('has placeholders for them, and gives their bytes without a copy', () => {
    const body = Buffer.from(JSON.stringify({ data: [{ b64: long, note: 'short' }, { b64: long }] }))
    const json = parseWithLargeStrings(body) ?? assert.fail()
    const { data } = json.value as { data: { b64: string; note?: string }[] }
    assert.equal(data.length, 2)
    for (const { b64 } of data) {
      assert.ok(b64.length < 10)
      const bytes = json.bytesOf(b64)
      assert.equal(bytes.toString(), long)
      assert.equal(bytes.buffer, body.buffer, 'no copy')
    }
    assert.equal(json.bytesOf(data[0]?.note ?? '').toString(), 'short')
  })

  it('has them from 4096 bytes on, with their quotes', () => {
    const placeholderOf = (length: number): boolean => {
      const json = parseWithLargeStrings(Buffer.from(JSON.stringify(['a'.repeat(length)]))) ?? assert.fail()
      const [text] = json.value as [string]
      return text.startsWith('\0')
    }
    assert.deepEqual([4094, 4095].map(placeholderOf), [false, true])
  })

  it('means the same as any JSON once they are put back', () => {
    const strings = fc.oneof(
      fc.string(),
      fc.constant(long),
      fc.constant(`${long}\\"\n${long}`),
      fc.constant(`${long}é`),
    )
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), fc.array(strings), (value, texts) => {
        const original = [value, ...texts]
        const json = parseWithLargeStrings(Buffer.from(JSON.stringify(original)))
        assert.deepEqual(restored(json?.value, json), JSON.parse(JSON.stringify(original)))
      }),
    )
  })

  it('may be one long string', () => {
    const json = parseWithLargeStrings(Buffer.from(JSON.stringify(long)))
    assert.ok(typeof json?.value === 'string' && json.value.startsWith('\0'))
    assert.equal(json.bytesOf(json.value).toString(), long)
  })

  it('is undefined when the text is not JSON', () => {
    for (const text of ['', '{', `{"a":"${long}`, `{"a":"${long}"`, `["${long}",]`, '"']) {
      assert.equal(parseWithLargeStrings(Buffer.from(text)), undefined, text.slice(0, 20))
    }
  })
})

function restored(value: unknown, json: ReturnType<typeof parseWithLargeStrings>): unknown {
  if (typeof value === 'string') return value.startsWith('\0') ? json?.bytesOf(value).toString() : value
  if (Array.isArray(value)) return value.map((item) => restored(item, json))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, restored(item, json)]))
}
