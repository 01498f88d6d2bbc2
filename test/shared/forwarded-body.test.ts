import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { forwardBody, scanObject } from '../../src/shared/json/json-body.ts'
import { anyCharacter } from '../support/any-character.ts'
import { parsedBody } from '../support/made-job.ts'

fc.configureGlobal({ seed: 1 })

const unlimited = { depth: Infinity, values: Infinity, containers: Infinity, names: Infinity }

/** Names that parsers get wrong, and any others. */
const names = fc.oneof(
  fc.constantFrom('model', 'messages', 'a,b', 'a"b', 'a\\', '\\"', '{', '}:', '', '\n', 'é', '日本', '😀', '__proto__'),
  fc.string({ unit: anyCharacter }),
)
const objects = fc.dictionary(names, fc.jsonValue({ maxDepth: 4 }), { maxKeys: 8, noNullPrototype: true })
const space = fc.constantFrom('', ' ', '\n', '\t\r\n', '          ')

/** An object's JSON with varying escapes and white space, but the same meaning. */
const spellings = fc.tuple(objects, fc.array(space, { minLength: 1, maxLength: 7 }), fc.boolean()).map(spell)

function spell([value, spaces, escaped]: [Record<string, unknown>, string[], boolean]): [
  Record<string, unknown>,
  string,
] {
  let turn = 0
  const gap = (): string => spaces[turn++ % spaces.length] ?? ''
  const write = (it: unknown): string => {
    if (Array.isArray(it)) return `[${gap()}${it.map((item) => gap() + write(item) + gap()).join(',')}]`
    if (typeof it === 'object' && it !== null) {
      const fields = Object.entries(it).map(([name, item]) => gap() + word(name) + gap() + ':' + gap() + write(item))
      return `{${fields.map((field) => field + gap()).join(',')}${gap()}}`
    }
    return typeof it === 'string' ? word(it) : JSON.stringify(it)
  }
  const word = (text: string): string => {
    if (!escaped) return JSON.stringify(text)
    const units = text.split('').map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    return `"${units.join('')}"`
  }
  return [value, gap() + write(value) + gap()]
}

/** The text after `headroom` bytes of garbage that must not matter. */
function behind(headroom: number, text: string): Buffer {
  return Buffer.concat([Buffer.alloc(headroom, '{",'), Buffer.from(text)])
}

function entriesOf(it: object): [string, unknown][] {
  return Object.entries(it).sort(([one], [other]) => (one < other ? -1 : 1))
}

describe('the fields of an object, found in its bytes', () => {
  it('are the ones JSON.parse finds, with their values, however they are written', () => {
    fc.assert(
      fc.property(spellings, fc.nat(40), ([value, text], headroom) => {
        const bytes = behind(headroom, text)
        const { fields } = scanObject(bytes, headroom)
        const found = fields.map(({ name, valueStart, end }): [string, unknown] => [
          name,
          JSON.parse(bytes.toString('utf8', valueStart, end)),
        ])
        // Compared as text, because -0 is written as 0.
        assert.equal(JSON.stringify(found), JSON.stringify(Object.entries(JSON.parse(text) as object)))
        assert.equal(found.length, Object.keys(value).length)
      }),
      { numRuns: 1000 },
    )
  })

  it('include both fields when a name appears twice, so that the body can be refused', () => {
    const text = '{"a":1,"b":{"a":2},"\\u0061":3}'
    assert.deepEqual(
      scanObject(Buffer.from(text)).fields.map(({ name }) => name),
      ['a', 'b', 'a'],
    )
  })

  it('are counted at every depth: a parsed tree with fewer names than its text had a repeated name', () => {
    const repeated = (text: string): boolean => {
      try {
        parsedBody(text)
        return false
      } catch (error) {
        assert.match((error as Error).message, /more than once/)
        return true
      }
    }
    for (const text of [
      '{"a":{"b":1,"b":2}}',
      '{"a":{"b":1,"\\u0062":2}}',
      '{"a":[[[{"b":1,"b":1}]]]}',
      '{"a":[1,"x",null,{"c":{}},{"b":{"d":1,"e":2,"d":3}}]}',
      '{"a":{"__proto__":1,"__proto__":2}}',
      '{"a":{"":1,"":2}}',
    ]) {
      assert.ok(repeated(text), text)
    }
    fc.assert(
      fc.property(spellings, ([, text]) => {
        assert.ok(!repeated(text), text)
        assert.ok(repeated(`{"outer":[0,{"name":${text},"n\\u0061me":${text}}]}`))
      }),
      { numRuns: 1000 },
    )
  })

  it('are not confused by quotes, brackets and backslashes in strings, short or long', () => {
    for (const filling of ['', 'x'.repeat(61), 'x'.repeat(62), 'x'.repeat(63), 'x'.repeat(10_000)]) {
      for (const trick of ['\\', '\\\\', '"', '\\"', '","b":1,"', '}', ']', '\\\\"', '\\'.repeat(63), '"'.repeat(64)]) {
        const object = { first: filling + trick, second: [trick + filling], [trick]: 1 }
        const { fields } = scanObject(Buffer.from(JSON.stringify(object)))
        assert.deepEqual(
          fields.map(({ name }) => name),
          Object.keys(object),
        )
      }
    }
  })

  it('come with the depth and the number of values, so that a body can be refused before it is parsed', () => {
    assert.deepEqual(pick('{}'), { depth: 1, values: 1 })
    assert.deepEqual(pick('{"a":[[1,2],{"b":3}]}'), { depth: 3, values: 6 })
    assert.deepEqual(pick('{"a":"[[[[{{{{,,,,"}'), { depth: 1, values: 1 })
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        const { depth, values } = pick(JSON.stringify(value))
        assert.equal(depth, depthOf(value))
        // Never fewer than the tree has, not counting its root.
        assert.ok(values >= countOf(value) - 1)
      }),
    )
    function pick(text: string) {
      const bytes = Buffer.from(text)
      const isWithin = (depth: number): boolean => scanObject(bytes, 0, { ...unlimited, depth }).exceeded === undefined
      const depth = Array.from({ length: 20 }, (_, it) => it).findIndex(isWithin)
      return { depth, values: scanObject(bytes).values }
    }
  })

  it('have valid offsets in any bytes, even if they are not JSON', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), fc.string().map(Buffer.from)), (bytes) => {
        const buffer = Buffer.from(bytes)
        for (const { start, valueStart, end } of scanObject(buffer).fields) {
          assert.ok(start >= 0 && start < valueStart && valueStart <= end && end <= buffer.length)
        }
      }),
      { numRuns: 1000 },
    )
  })

  it('are found in linear time, even in deep or crowded bodies', () => {
    const megabytes = 4_000_000
    const bodies = [
      '['.repeat(megabytes),
      '{"a":'.repeat(megabytes / 5),
      `{"a":[${'1,'.repeat(megabytes / 2)}1]}`,
      `{${'"a":1,'.repeat(megabytes / 6)}"b":1}`,
      `{"a":"${'\\'.repeat(megabytes)}"}`,
      `{"a":"${'\\"'.repeat(megabytes / 2)}"}`,
      `{"a":"${'x'.repeat(megabytes)}"}`,
      `{"a":"${'x'.repeat(megabytes)}`,
      '"'.repeat(megabytes),
    ]
    for (const body of bodies) {
      const bytes = Buffer.from(body)
      const before = process.cpuUsage()
      scanObject(bytes)
      const { user, system } = process.cpuUsage(before)
      // Quadratic work would take minutes. The CPU's time, because other programs may be busy.
      assert.ok(user + system < 10_000_000, `${body.slice(0, 20)}… took too long`)
    }
  })
})

describe('a forwarded body', () => {
  it('has exactly the new fields and the kept fields', () => {
    const fronts = fc.dictionary(fc.string({ unit: anyCharacter }), fc.jsonValue({ maxDepth: 2 }), {
      maxKeys: 4,
      noNullPrototype: true,
    })
    fc.assert(
      fc.property(spellings, fronts, fc.func(fc.boolean()), fc.nat(300), ([value, text], front, keep, headroom) => {
        const bytes = behind(headroom, text)
        const { fields } = scanObject(bytes, headroom)
        const keeps = (name: string): boolean => keep(name) && !Object.hasOwn(front, name)
        const forwarded = forwardBody(bytes, headroom, fields, keeps, front).toString('utf8')
        const kept = Object.entries(JSON.parse(text) as object).filter(([name]) => keeps(name))
        assert.deepEqual(
          entriesOf(JSON.parse(forwarded) as object),
          entriesOf(Object.fromEntries([...Object.entries(JSON.parse(JSON.stringify(front)) as object), ...kept])),
        )
        assert.ok(kept.length <= Object.keys(value).length)
      }),
      { numRuns: 2000 },
    )
  })

  it('keeps numbers, escapes and order as the caller wrote them', () => {
    const text = '{"seed":12345678901234567890,"x":1.10,"drop":[1,{"a":","}],"messages":[{"content":"\\u00e9\\/"}]}'
    const bytes = behind(100, text)
    const { fields } = scanObject(bytes, 100)
    const forwarded = forwardBody(bytes, 100, fields, (name) => name !== 'drop', { model: 'm' }).toString('utf8')
    assert.equal(
      forwarded.replaceAll(' ', ''),
      '{"model":"m","seed":12345678901234567890,"x":1.10,"messages":[{"content":"\\u00e9\\/"}]}',
    )
  })

  it('is copied only when the new fields do not fit into the headroom', () => {
    const bytes = behind(64, '{"a":1}')
    const { fields } = scanObject(bytes, 64)
    const inPlace = forwardBody(bytes, 64, fields, () => true, { model: 'm' })
    assert.equal(inPlace.buffer, bytes.buffer)
    const tight = behind(4, '{"a":1}')
    const copied = forwardBody(tight, 4, scanObject(tight, 4).fields, () => true, { model: 'm' })
    assert.deepEqual(JSON.parse(copied.toString('utf8')), { model: 'm', a: 1 })
  })
})

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

function countOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return 1 + Object.values(value).reduce((sum: number, item) => sum + countOf(item), 0)
}
