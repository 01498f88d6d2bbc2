import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { scanObject } from '../../src/core/json/json-scan.ts'
import { hasRepeatedName, JsonSyntaxError, parseInPieces, RepeatedNameError } from '../../src/core/json/json-tree.ts'
import { finish } from '../../src/core/sliced-work.ts'

fc.configureGlobal({ seed: 1 })

const words = fc.oneof(
  fc.constantFrom('', 'a', '__proto__', 'toString', '1', '0', 'é', '日本', '😀', '\\', '"', '\u0000', '\ud83d', 'a\\u'),
  fc.string({ unit: 'binary', maxLength: 40 }),
)
const values = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, depthSize: 'large' },
    words,
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(true, false, null),
    fc.array(tie('value'), { maxLength: 6 }),
    fc.array(tie('member'), { maxLength: 6 }).map((members) => Object.fromEntries(members as [string, unknown][])),
  ),
  // After an object with a name that begins with a backslash, V8 misreads other names that begin with an escape.
  member: fc.tuple(
    words.filter((name) => !name.startsWith('\\')),
    tie('value'),
  ),
})).value
const spaces = fc.array(fc.constantFrom('', ' ', '\n\t\r ', '                    '), { minLength: 1, maxLength: 5 })

/** JSON text with white space everywhere and every other string escaped. */
function spell(value: unknown, gaps: readonly string[]): string {
  let turn = 0
  const gap = (): string => gaps[turn++ % gaps.length] ?? ''
  const word = (text: string): string =>
    turn++ % 2 === 0
      ? JSON.stringify(text)
      : `"${text.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)}"`
  const write = (it: unknown): string => {
    if (typeof it === 'string') return word(it)
    if (Array.isArray(it)) return `[${it.map((item) => gap() + write(item) + gap()).join(',') || gap()}]`
    if (typeof it !== 'object' || it === null) return JSON.stringify(it)
    const members = Object.entries(it).map(
      ([name, item]) => `${gap()}${word(name)}${gap()}:${gap()}${write(item)}${gap()}`,
    )
    return `{${members.join(',') || gap()}}`
  }
  return gap() + write(value) + gap()
}

type Outcome = { readonly value: unknown } | 'not JSON' | 'repeated name'

function inPieces(text: string, pieceBytes: number): Outcome {
  const bytes = Buffer.from(text)
  try {
    return { value: finish(parseInPieces(bytes, scanObject(bytes, 0, pieceBytes), pieceBytes)) }
  } catch (error) {
    if (error instanceof JsonSyntaxError) return 'not JSON'
    if (error instanceof RepeatedNameError) return 'repeated name'
    throw error
  }
}

function atOnce(text: string): Outcome {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return 'not JSON'
  }
  return hasRepeatedName(value, scanObject(Buffer.from(text)).names) ? 'repeated name' : { value }
}

/** A broken text may have a repeated name before its mistake: then either may be reported. */
function requireSame(text: string, pieceBytes: number): void {
  const expected = atOnce(text)
  const found = inPieces(text, pieceBytes)
  if (expected === 'not JSON') assert.ok(typeof found === 'string', `accepted: ${text}`)
  else assert.deepEqual(found, expected, text)
}

const sizes = fc.constantFrom(16, 17, 20, 33, 64, 200, 100_000)

describe('JSON parsed in pieces', () => {
  it('is what JSON.parse reads, wherever the pieces end', () => {
    fc.assert(
      fc.property(values, spaces, sizes, (value, gaps, size) => {
        const text = spell(value, gaps)
        assert.deepEqual(inPieces(text, size), { value: JSON.parse(text) as unknown })
      }),
      { numRuns: 5000 },
    )
  })

  it('accepts nothing that JSON.parse refuses: any text with a mistake in it', () => {
    const strange = fc.constantFrom(
      '',
      ',',
      ':',
      '"',
      '\\',
      '[',
      ']',
      '{',
      '}',
      '0',
      ' ',
      '[]',
      ',,',
      '""',
      '"":0,',
      '.5',
      'e1',
      '\u0001',
      '\u00a0',
    )
    fc.assert(
      fc.property(values, spaces, sizes, fc.nat(), fc.nat(3), strange, (value, gaps, size, place, cut, put) => {
        const text = spell(value, gaps)
        const at = place % (text.length + 1)
        requireSame(Buffer.from(text.slice(0, at) + put + text.slice(at + cut)).toString(), size)
      }),
      { numRuns: 20_000 },
    )
  })

  it('finds a repeated name, also if its two places are in different pieces', () => {
    const filler = `"${'x'.repeat(40)}"`
    for (const text of [
      `{"a":${filler},"b":${filler},"a":${filler}}`,
      `{"a":0,"b":${filler},"\\u0061":0}`,
      `{"a":${filler},"c":[${filler},${filler}],"a":0}`,
      `[{"b":[${filler},{"a":1,"a":2}]}]`,
      `{"":${filler},"":0}`,
      `{"__proto__":${filler},"b":${filler},"__proto__":0}`,
    ]) {
      for (const size of [16, 30, 50, 1000]) assert.equal(inPieces(text, size), 'repeated name', text)
    }
  })

  it('says where a mistake is, and does not repeat the text', () => {
    const text = `{"a":"${'x'.repeat(500)}","b":[1,2,"secret" 3]}`
    const bytes = Buffer.from(text)
    for (const size of [16, 100, 10_000]) {
      assert.throws(
        () => finish(parseInPieces(bytes, scanObject(bytes, 0, size), size)),
        (error: JsonSyntaxError) => {
          assert.equal(error.at, text.indexOf(' 3]') + 1)
          assert.doesNotMatch(`${error.message} ${String(error.cause)} ${error.stack}`, /secret/)
          return true
        },
      )
    }
  })

  it('pauses often in a large text', () => {
    const bytes = Buffer.from(JSON.stringify({ a: 'x'.repeat(5_000_000), b: Array.from({ length: 200_000 }, () => 1) }))
    const pauses = [...parseInPieces(bytes, scanObject(bytes))].length
    assert.ok(pauses > 35, `${pauses} pauses`)
  })
})
