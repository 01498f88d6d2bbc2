import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError } from '../../src/core/errors.ts'
import { scanInSlices } from '../../src/core/json/json-scan.ts'
import { parsedBody as parse } from '../support/sliced.ts'

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

  it('may have names of 4 MiB, and not one byte more', () => {
    const name = 'x'.repeat(4_194_302)
    assert.deepEqual(Object.keys(parse(`{"${name}":0}`).value), [name])
    assert.throws(() => parse(`{"${name}x":0}`), isRefused(/longer than 4194304 bytes/))
  })

  it('may have 128 KiB of white space or digits in a row, and not one byte more', () => {
    assert.deepEqual(parse(`{"a":${' '.repeat(131_070)}0}`).value, { a: 0 })
    assert.throws(() => parse(`{"a":${' '.repeat(131_072)}0}`), isRefused(/more than 131072 bytes of white space/))
    assert.throws(() => parse(`{"a":[${'1'.repeat(131_074)}]}`), isRefused(/more than 131072 bytes of white space/))
    assert.throws(() => parse(`{}${' '.repeat(200_000)}`), isRefused(/more than 131072 bytes of white space/))
  })
})

describe('the scan of a large body', () => {
  it('pauses after every piece', () => {
    const pieceBytes = 1000
    const bytes = Buffer.from(`{"a":[${'"x",'.repeat(2500)}1]}`)
    const much = 1_000_000
    const limits = { depth: 100, values: much, containers: much, names: much, nameBytes: much, gapBytes: much }
    let pauses = 0
    for (const _ of scanInSlices(bytes, 0, limits, pieceBytes)) pauses++
    assert.equal(pauses, Math.ceil(bytes.length / pieceBytes) - 1)
  })
})
