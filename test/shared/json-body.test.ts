import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { ApiError } from '../../src/shared/errors.ts'
import { HEADROOM, memoryToParse, scanJson, endOfString } from '../../src/shared/json/json-body.ts'
import { parsedBody as parse } from '../support/made-job.ts'

const isRefused = (words: RegExp) => (error: unknown) =>
  error instanceof ApiError && error.code === 'invalid_json' && words.test(error.message)

describe('a JSON body', () => {
  it('may be nested 100 levels deep, and not one more', () => {
    const nested = (levels: number): string => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
    assert.ok(parse(nested(100)).value['a'])
    assert.throws(() => parse(nested(101)), isRefused(/deeper than 100 levels/))
  })

  it('may have 250,000 values, and not one more', () => {
    // The object and the array count as one value each, and every comma as another.
    const list = (commas: number): string => `{"a":[${'0,'.repeat(commas)}0]}`
    assert.equal((parse(list(249_998)).value['a'] as unknown[]).length, 249_999)
    assert.throws(() => parse(list(249_999)), isRefused(/more than 250000 values/))
  })

  it('may have 50,000 objects and arrays, and not one more', () => {
    // The body and the list are the first two.
    const list = (objects: number): string => `{"a":[${'{},'.repeat(objects - 3)}{}]}`
    assert.equal((parse(list(50_000)).value['a'] as unknown[]).length, 49_998)
    assert.throws(() => parse(list(50_001)), isRefused(/more than 50000 objects and arrays/))
  })

  it('may have 10,000 fields in one object, and not one more', () => {
    const fields = (count: number): string => Array.from({ length: count }, (_, index) => `"${index}":0`).join(',')
    assert.equal(Object.keys(parse(`{"a":{${fields(10_000)}}}`).value['a'] as object).length, 10_000)
    assert.equal(Object.keys(parse(`{"a":[{${fields(9000)}},{${fields(9000)}}]}`).value).length, 1)
    assert.throws(() => parse(`{"a":{${fields(10_001)}}}`), isRefused(/more than 10000 fields/))
  })

  it('is refused with the position of a mistake, and without repeating its text', () => {
    const text = `{"a":"${'x'.repeat(500)}","b":[1,2,"secret" 3]}`
    assert.throws(
      () => parse(text),
      (error: ApiError) => {
        assert.equal(error.message, `The body is not valid JSON (at position ${text.indexOf(' 3]') + 1}).`)
        assert.doesNotMatch(`${String(error.cause)} ${error.stack}`, /secret/)
        return error.code === 'invalid_json'
      },
    )
  })

  it('may not have a field twice, however it is written, and at any depth', () => {
    const twice = (name: string, other = name): string => `{"a":1,"${name}":1,"b":2,"${other}":2}`
    assert.throws(() => parse(twice('model')), isRefused(/^The field "model" appears more than once\.$/))
    assert.throws(() => parse(twice('mode\\u006c', 'model')), isRefused(/^The field "model" appears more than once\.$/))
    // No more of the name is repeated than is needed to find it.
    for (const length of [63, 64, 65, 500]) {
      const shown = 'n'.repeat(Math.min(length, 64))
      assert.throws(() => parse(twice('n'.repeat(length))), isRefused(new RegExp(`^The field "${shown}" appears`)))
    }
    const inside = /^An object in the body has the same field more than once\.$/
    for (const text of [`{"x":${twice('y')}}`, `{"x":[1,{"z":${twice('y')}}]}`, `{"x":[[${twice('y')}]],"y":1}`]) {
      assert.throws(() => parse(text), isRefused(inside), text)
    }
    for (const text of ['{"x":{"y":1},"z":{"y":1}}', '{"x":[{"y":1},{"y":2}],"y":3}', '{"x":"\\":","y":[":",":"]}']) {
      assert.ok(parse(text), text)
    }
  })

  it('must be an object', () => {
    for (const text of ['[]', '[{"a":1}]', 'null', '5', '"a"', 'true']) {
      assert.throws(() => parse(text), isRefused(/^The body must be a JSON object\.$/), text)
    }
  })

  it('must be UTF-8, whatever precedes it', () => {
    const bytes = Buffer.concat([Buffer.alloc(HEADROOM, 0xff), Buffer.from('{"a":"é"}')])
    assert.equal(scanJson(bytes).names, 1)
    bytes[bytes.length - 3] = 0xff
    assert.throws(() => scanJson(bytes), isRefused(/^The body is not valid UTF-8\.$/))
  })

  it('that ends too soon is wrong at its end', () => {
    for (const text of ['', '{', '{"a":', '{"a":"b', '{"a":[1,']) {
      assert.throws(() => parse(text), isRefused(new RegExp(`position ${text.length}\\)`)), text)
    }
  })

  it('counts four times for its bytes and the headroom, and 64 bytes for each value', () => {
    assert.equal(memoryToParse(1000, 10), (256 + 1000) * 4 + 640)
    assert.equal(memoryToParse(0, 0), 1024)
    assert.equal(memoryToParse(0), 1024 + 250_000 * 64)
  })

  it('has its strings end where JSON.parse ends them', () => {
    // Around the length from which on another search is used, with quotes and backslashes anywhere.
    const text = fc.array(fc.constantFrom('\\', '"', 'x', 'é', 'x'.repeat(61), 'x'.repeat(64)), { maxLength: 12 })
    fc.assert(
      fc.property(text, fc.nat(3), (pieces, before) => {
        const written = JSON.stringify(pieces.join(''))
        const start = ' '.repeat(before)
        const bytes = Buffer.from(`${start}${written},"next"`)
        assert.equal(endOfString(bytes, before), before + Buffer.byteLength(written))
        const open = Buffer.from(`${start}${written.slice(0, -1)}`)
        assert.equal(endOfString(open, before) >= open.length, true, 'one without an end goes to the end')
      }),
      { numRuns: 1000 },
    )
  })
})
