import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { ApiError } from '../../src/core/errors.ts'
import { boundaryOf, multipartParser } from '../../src/core/multipart.ts'

type Part = readonly [name: string, content: string]

/** Parses a body that arrives in pieces of these sizes, one after the other. */
function parse(body: Buffer, sizes: readonly number[] = [body.length], boundary = 'frontier'): Part[] {
  const parts: [string, Buffer[]][] = []
  const parser = multipartParser(boundary, {
    begin: (name) => parts.push([name, []]),
    data: (bytes) => parts.at(-1)?.[1].push(Buffer.from(bytes)),
    end() {},
  })
  for (let at = 0, turn = 0; at < body.length; turn++) {
    const size = Math.max(1, sizes[turn % sizes.length] ?? 1)
    // The piece is overwritten afterwards, so the parser must copy what it keeps.
    const chunk = Buffer.from(body.subarray(at, at + size))
    parser.push(chunk)
    chunk.fill(0)
    at += size
  }
  parser.finish()
  return parts.map(([name, pieces]) => [name, Buffer.concat(pieces).toString('latin1')])
}

function write(parts: readonly Part[], boundary = 'frontier'): Buffer {
  const texts = parts.map(
    ([name, content]) => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${content}\r\n`,
  )
  return Buffer.from(`${texts.join('')}--${boundary}--\r\n`, 'latin1')
}

describe('a form', () => {
  it('parses the same in any pieces, even with parts of its boundary inside', () => {
    const content = fc
      .array(fc.constantFrom('\r', '\n', '-', '\r\n--front', '\r\n--', '--frontier', 'x', '\xff', '\0', 'ier'), {
        maxLength: 30,
      })
      .map((bits) => bits.join(''))
      .filter((text) => !`\r\n${text}`.includes('\r\n--frontier'))
    const parts = fc.array(fc.tuple(fc.constantFrom('a', 'file', 'model'), content), { maxLength: 5 })
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(parts, sizes, (expected, pieces) => assert.deepEqual(parse(write(expected), pieces), expected)),
      { numRuns: 2000 },
    )
  })

  it('is refused when it ends before its last boundary, wherever that is', () => {
    const whole = write([
      ['model', 'x'],
      ['file', 'RIFF'],
    ])
    const end = whole.lastIndexOf('--') + 2
    assert.equal(parse(whole.subarray(0, end)).length, 2)
    for (let length = 0; length < end; length++) {
      assert.throws(() => parse(whole.subarray(0, length)), /ends before its last boundary/, `${length} bytes`)
    }
  })

  it('is refused without a crash when it is garbage', () => {
    const bit = fc.constantFrom(
      '--frontier',
      '\r\n',
      '--',
      'Content-Disposition: form-data; name="a"',
      ':',
      '"',
      ' ',
      'x',
    )
    fc.assert(
      fc.property(fc.array(bit, { maxLength: 40 }), fc.integer({ min: 1, max: 9 }), (bits, size) => {
        try {
          parse(Buffer.from(bits.join('')), [size])
        } catch (error) {
          assert.ok(error instanceof ApiError, String(error))
        }
      }),
      { numRuns: 3000 },
    )
  })

  it('may name its fields in all the ways that clients do', () => {
    const nameIn = (disposition: string): string | undefined =>
      parse(
        Buffer.from(`--frontier\r\nX-Other: 1\r\ncontent-disposition: ${disposition}\r\n\r\nx\r\n--frontier--`),
      )[0]?.[0]
    assert.equal(nameIn('form-data; name="file"; filename="a; name=b.wav"'), 'file')
    assert.equal(nameIn('form-data; filename="a\\"; name=\\"b"; name="file"'), 'file')
    assert.equal(nameIn('form-data; name=model'), 'model')
    assert.equal(nameIn('form-data; filename*=UTF-8\'\'x; NAME="file"'), 'file')
    assert.throws(() => nameIn('attachment; name="file"'), ApiError)
    assert.throws(() => nameIn('form-data'), ApiError)
  })

  it('may have text before and after, and spaces after a boundary', () => {
    const [first, ...rest] = write([['a', '1']])
      .toString('latin1')
      .split('\r\n')
    const padded = Buffer.from(`hello\r\n${first} \t\r\n${rest.join('\r\n')}goodbye`, 'latin1')
    assert.deepEqual(parse(padded, [3]), [['a', '1']])
  })

  it('has headers of a limited length, and a boundary in its Content-Type', () => {
    const long = `--frontier\r\nX: ${'a'.repeat(9000)}`
    assert.throws(() => parse(Buffer.from(long), [100]), /too long: at most 8192 bytes/)
    assert.equal(boundaryOf('multipart/form-data; boundary=abc'), 'abc')
    assert.equal(boundaryOf('Multipart/Form-Data; charset=utf-8; boundary="a b"'), 'a b')
    for (const type of [undefined, '', 'multipart/form-data', 'multipart/mixed; boundary=a', 'application/json']) {
      assert.equal(boundaryOf(type), undefined)
    }
  })
})
