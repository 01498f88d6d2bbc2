import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { clip } from '../support/audio-stage.ts'
import { fill, hostileStage, ROOM, type HostileStage } from '../support/hostile-stage.ts'
import { someOf } from '../support/long-run.ts'
import { everyAdminRoute, everyPublicRoute } from '../support/openapi.ts'
import { fieldsOf, sample, type Field, type Schema } from '../support/schema-samples.ts'
import { OPERATOR_TOKEN } from '../support/weir.ts'

/**
 * Bodies made from the schemas of all requests: texts of the largest size in every field, lists at their limit, deep
 * nesting, long names. None of them may hold up other callers, be it accepted or refused. A body may have 20 MB, so
 * `npm test` sends only some of each kind.
 */

/** The smallest valid request of each endpoint that takes JSON. */
const good: Readonly<Record<string, object>> = {
  '/chat/completions': { model: 'big/chat', messages: [{ role: 'user', content: 'Hi' }] },
  '/responses': { model: 'big/chat', input: [{ role: 'user', content: 'Hi' }] },
  '/messages': { model: 'big/chat', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] },
  '/messages/count_tokens': { model: 'big/chat', messages: [{ role: 'user', content: 'Hi' }] },
  '/completions': { model: 'big/chat', prompt: 'Hi' },
  '/embeddings': { model: 'big/embedder', input: 'Hi' },
  '/rerank': { model: 'big/reranker', query: 'q', documents: ['a'] },
  '/reranking': { model: 'big/ranker', query: { text: 'q' }, passages: [{ text: 'a' }] },
  '/images/generations': { model: 'big/painter', prompt: 'A weir' },
  // There is no such file, so this is refused.
  '/batches': { input_file_id: 'file-0', endpoint: '/v1/embeddings', completion_window: '24h' },
}

interface DescribedRequest {
  readonly method: string
  readonly path: string
  readonly access: string
  readonly contentType: string
  readonly schema: Schema
  readonly example: unknown
}

const requests: readonly DescribedRequest[] = [...everyPublicRoute(), ...everyAdminRoute()].flatMap(
  ({ method, path, access, operation }) => {
    if (!operation?.request) return []
    const schema: Schema = operation.request.schema
    return [{ method, path, access, ...operation.request, schema }]
  },
)
/** Routes with which a key manages others. */
const managesKeys = (path: string): boolean => path.startsWith('/api/v1/keys')
/** The path of an inference endpoint, below the base path. */
const endpoints = requests.flatMap(({ path, contentType, access, schema }) =>
  access === 'key' && path.startsWith('/api/v1/') && !managesKeys(path) && contentType === 'application/json'
    ? [{ path: path.slice('/api/v1'.length), schema }]
    : [],
)

/** What a text is filled with, as JSON writes it. Each takes another way through a parser, a counter or an expression. */
const pieces = ['é', '7', '_', '😀', '\\"', '\\u00e9', '\\ud83d', ' \\n', 'aA.']
/** What the rest of a body takes, at most. */
const AROUND = 3000
/** A form may have 262,144 bytes of text, and writes a line end as two. */
const FORM_TEXT = 170_000

/** Stands for the hostile text. */
const MARK = '\u0001'

/**
 * Requests whose items have a type that the endpoint reads, which a schema alone does not know. The hostile text is in what
 * it makes the prompt from.
 */
const meaningful: Readonly<Record<string, readonly object[]>> = {
  '/responses': [
    ...[
      { role: 'user', content: [{ type: 'input_text', text: MARK }] },
      { role: 'user', content: [{ type: 'input_image', image_url: MARK }] },
      { role: 'assistant', content: [{ type: 'refusal', refusal: MARK }] },
      { role: 'developer', content: [{ type: 'input_text', text: MARK }] },
      { type: 'reasoning', content: [{ type: 'reasoning_text', text: MARK }] },
      { type: 'function_call', call_id: 'c', name: 'f', namespace: 'n', arguments: MARK },
      { type: 'custom_tool_call', call_id: 'c', name: 'f', input: MARK },
      { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: MARK }] },
    ].map((item) => ({ input: [{ role: 'user', content: 'Hi' }, item] })),
    { tools: [{ type: 'function', name: 'f', description: MARK }] },
    { tools: [{ type: 'custom', name: 'f', format: { type: 'grammar', syntax: 'lark', definition: MARK } }] },
  ],
  '/messages': messages(),
  '/messages/count_tokens': messages(),
}

function messages(): readonly object[] {
  return [
    ...[
      { type: 'text', text: MARK },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: MARK } },
      { type: 'image', source: { type: 'url', url: MARK } },
      { type: 'document', source: { type: 'text', data: MARK } },
      { type: 'document', source: { type: 'content', content: [{ type: 'text', text: MARK }] } },
      { type: 'tool_result', tool_use_id: 'c', content: [{ type: 'text', text: MARK }] },
    ].map((block) => ({ messages: [{ role: 'user', content: [block] }] })),
    ...[
      { type: 'text', text: MARK },
      { type: 'thinking', thinking: MARK, signature: 's' },
      { type: 'tool_use', id: 'c', name: 'f', input: { a: MARK } },
    ].map((block) => ({
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: [block] },
        { role: 'user', content: 'Hi' },
      ],
    })),
    { system: [{ type: 'text', text: MARK }] },
  ]
}

/** The same for texts that have a maximum length, but a large one. */
const packed: Readonly<Record<string, object>> = {
  '/responses': { input: [{ type: 'reasoning', encrypted_content: MARK }] },
  '/messages': {
    messages: [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: [{ type: 'thinking', thinking: '', signature: MARK }] },
    ],
  },
}
const PACKED_LENGTH = 1_048_576

/** A body with this JSON in the place of a field. */
function bodyWith(path: string, marked: object, json: string): string {
  return JSON.stringify({ ...good[path], ...marked }).replace(JSON.stringify(MARK), () => json)
}

function isText({ type, anyOf, enum: values }: Schema): boolean {
  return type === 'string' || typeof values?.[0] === 'string' || (anyOf?.some(isText) ?? false)
}

function maxLengthOf({ maxLength, anyOf = [] }: Schema): number | undefined {
  return maxLength ?? anyOf.map(maxLengthOf).find((it) => it !== undefined)
}

/** All values in a value, itself included. */
function countOf(value: unknown): number {
  return typeof value === 'object' && value !== null
    ? Object.values(value).reduce<number>((sum, it) => sum + countOf(it), 1)
    : 1
}

/** Below the limits on the containers and the values of a body. */
const MOST_VALUES = 45_000

/** Every list of a schema at its limit, in as many copies of the lists around it as a body may have. */
function fullLists(schema: Schema, around: (value: unknown) => unknown): readonly unknown[] {
  const { anyOf = [], items, properties = {}, maxItems = Infinity } = schema
  const repeated = (value: unknown): unknown =>
    around(
      Array.from({ length: Math.max(1, Math.min(maxItems, Math.floor(MOST_VALUES / countOf(value)))) }, () => value),
    )
  return [
    ...anyOf.flatMap((option) => fullLists(option, around)),
    ...(items ? [repeated(largest(items)), ...fullLists(items, repeated)] : []),
    ...Object.entries(properties).flatMap(([name, property]) =>
      fullLists(property, (value) => around({ ...(sample(schema) as object), [name]: value })),
    ),
  ]
}

/** A small value that has every field. */
function largest(schema: Schema): unknown {
  const { anyOf, type, properties = {} } = schema
  if (anyOf) return largest(anyOf.at(-1) ?? {})
  if (type !== 'object') return sample(schema)
  return Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, sample(property)]))
}

/** Objects that a caller fills as it likes. */
const freeObjects: Readonly<Record<string, () => string>> = {
  'deep nesting': () => `{"a":[${Array.from({ length: 400 }, () => '['.repeat(90) + ']'.repeat(90)).join(',')}]}`,
  'many names': () => `{${Array.from({ length: 9900 }, (_, index) => `"é_${index}":"é"`).join(',')}}`,
  'long names': () => `{${['1', '2', '3', '4'].map((it) => `"${it}${fill('é', 4_000_000)}":"é"`).join(',')}}`,
  'a long text': () => `{"a":"${fill('é', ROOM - AROUND)}"}`,
}

function isFreeObject({ type, properties, anyOf }: Schema): boolean {
  const isOne = type === 'object' && Object.keys(properties ?? {}).length === 0
  return isOne || (anyOf?.some(isFreeObject) ?? false)
}

function listOf(count: number, make: (index: number) => object): readonly object[] {
  return Array.from({ length: count }, (_, index) => make(index))
}

/** A name that a chat does not take as it is. */
const oddName = (index: number): string => `${'é'.repeat(250)}${index}`

/** Lists at their limits, of items whose names have to be rewritten. */
const manyNames: Readonly<Record<string, readonly object[]>> = {
  '/responses': [
    {
      tools: listOf(128, (outer) => ({
        type: 'namespace',
        name: oddName(outer),
        tools: listOf(128, (inner) => ({ type: 'function', name: oddName(inner) })),
      })),
    },
    {
      input: listOf(10_000, (index) => ({
        type: 'function_call',
        call_id: 'é'.repeat(500),
        name: oddName(index),
        namespace: oddName(index),
        arguments: '{}',
      })),
    },
  ],
  '/messages': [
    {
      messages: listOf(20, (turn) => ({
        role: turn % 2 === 0 ? 'user' : 'assistant',
        content:
          turn % 2 === 0
            ? 'Hi'
            : listOf(1000, (index) => ({ type: 'tool_use', id: 'c', name: oddName(index), input: {} })),
      })),
    },
    { tools: listOf(128, (index) => ({ name: oddName(index), input_schema: {} })) },
  ],
}

let stage: HostileStage
let managingKey: string

before(async () => {
  const parameters = endpoints.flatMap(({ schema }) => Object.keys(schema.properties ?? {}))
  stage = await hostileStage([...new Set(parameters)])
  // The first requests of a process compile its code and load its tables, once.
  for (const [path, body] of Object.entries(good)) await stage.post(path, JSON.stringify(body))
  const created = await fetch(`${stage.weir.adminUrl}/admin/v1/keys`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${OPERATOR_TOKEN}` },
    body: JSON.stringify({ workspace: 'default', manage_keys: true }),
  })
  managingKey = ((await created.json()) as { key: string }).key
  await stage.calibrate()
})
after(() => stage.stop())

describe('a body with a hostile field does not delay other callers', () => {
  for (const [number, { path, schema }] of someOf([...endpoints.entries()], 3)) {
    const fields = fieldsOf(schema)
    const send = (field: Field, json: string): Promise<void> =>
      // No model has such a long name.
      stage.harmless(path, bodyWith(path, field.around(MARK), json), field.path === 'model' ? 404 : 200, 400)

    it(`texts of the largest size in every field of ${path}`, async () => {
      // A limited text is refused by its schema alone, so fields of one name are alike.
      const isLimited = ({ schema: own }: Field): boolean => own.enum !== undefined || maxLengthOf(own) !== undefined
      const texts = fields.filter((it) => isText(it.schema))
      const limited = new Map(texts.filter(isLimited).map((it) => [it.path.split('.').at(-1), it]))
      const bodies = [...limited.values(), ...texts.filter((it) => !isLimited(it))].flatMap((field, index) => {
        const piece = pieces[(number + index) % pieces.length] ?? ''
        return [...(isLimited(field) ? [piece] : new Set(['é', piece]))].map((it) => ({ field, piece: it }))
      })
      for (const { field, piece } of someOf(bodies, 1)) await send(field, `"${fill(piece, ROOM - AROUND)}"`)
    })

    it(`texts of the largest length in every field of ${path} that has one`, async () => {
      const bodies = fields.flatMap((field) => {
        const maxLength = isText(field.schema) ? maxLengthOf(field.schema) : undefined
        return maxLength === undefined ? [] : pieces.map((piece) => ({ field, maxLength, piece }))
      })
      for (const { field, maxLength, piece } of someOf(bodies, 2)) {
        const { length } = JSON.parse(`"${piece}"`) as string
        await send(field, `"${piece.repeat(Math.floor(maxLength / length))}"`)
      }
    })

    it(`texts of the largest size in every item that ${path} reads`, async () => {
      const bodies = (meaningful[path] ?? []).flatMap((marked, index) =>
        [...new Set(['é', pieces[index % pieces.length] ?? ''])].map((piece) => ({ marked, piece })),
      )
      for (const { marked, piece } of someOf(bodies, 1)) {
        await stage.harmless(path, bodyWith(path, marked, `"${fill(piece, ROOM - AROUND)}"`), 200, 400)
      }
    })

    it(`full lists in ${path}`, async () => {
      const bodies = Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
        fullLists(property, (it) => it).map((value) => ({ [name]: value })),
      )
      for (const body of someOf(bodies, 1)) {
        await stage.harmless(path, JSON.stringify({ ...good[path], ...body }), 200, 400)
      }
    })

    it(`objects of any shape in ${path}`, async () => {
      const bodies = fields
        .filter((it) => isFreeObject(it.schema))
        .flatMap((field) => Object.values(freeObjects).map((make) => ({ field, make })))
      for (const { field, make } of someOf(bodies, 1)) await send(field, make())
    })
  }

  for (const [path, bodies] of Object.entries(manyNames)) {
    it(`many names that ${path} rewrites`, async () => {
      for (const body of bodies) {
        await stage.harmless(path, JSON.stringify({ ...good[path], ...body }), 200, 400)
      }
    })
  }

  for (const [path, marked] of Object.entries(packed)) {
    it(`packed reasoning of the largest length in ${path}`, async () => {
      for (const piece of someOf(pieces, 1)) {
        const { length } = JSON.parse(`"${piece}"`) as string
        await stage.harmless(path, bodyWith(path, marked, `"${piece.repeat(PACKED_LENGTH / length)}"`), 200)
      }
    })
  }

  it('is sent to every endpoint', () => {
    assert.deepEqual(endpoints.map(({ path }) => path).sort(), Object.keys(good).sort())
  })
})

describe('a hostile form does not delay other callers', () => {
  const { schema } = requests.find(({ contentType }) => contentType.startsWith('multipart')) ?? assert.fail()
  for (const name of Object.keys(schema.properties ?? {}).filter((it) => it !== 'file')) {
    it(`texts of the largest size in ${name}`, async () => {
      for (const piece of someOf(pieces, 1)) {
        const form = new FormData()
        if (name !== 'model') form.set('model', 'big/listener')
        form.set('file', new Blob([Uint8Array.from(clip('adpcm.wav'))]), 'a.wav')
        form.set(name, `${fill(JSON.parse(`"${piece}"`) as string, FORM_TEXT)}a`)
        await stage.requireShortTurns(async () => {
          const headers = { authorization: `Bearer ${stage.weir.key}` }
          const init = { method: 'POST', headers, body: form }
          const response = await fetch(`${stage.weir.base}/audio/transcriptions`, init)
          assert.ok([400, 404].includes(response.status), await response.text())
        })
      }
    })
  }

  it('white space in its media type', () =>
    stage.requireShortTurns(async () => {
      const type = `multipart/form-data${' '.repeat(15_000)}x; boundary=b`
      const headers = { authorization: `Bearer ${stage.weir.key}`, 'content-type': type }
      const response = await fetch(`${stage.weir.base}/audio/transcriptions`, { method: 'POST', headers, body: '' })
      assert.equal(response.status, 415, await response.text())
    }))
})

describe("a hostile body of the operator's or the console's API, or from a key that manages others, does not delay other callers", () => {
  const own = requests.filter(({ access, path }) => access !== 'key' || managesKeys(path))
  for (const { method, path, schema, access, example } of someOf(own, 6)) {
    it(`${method} ${path}`, async () => {
      const base = access === 'operator' ? stage.weir.adminUrl : new URL(stage.weir.base).origin
      const headers = {
        'content-type': 'application/json',
        authorization: `Bearer ${access === 'key' ? managingKey : OPERATOR_TOKEN}`,
      }
      const size = access === 'operator' ? 1_000_000 : 60_000
      const bodies = [
        ...fieldsOf(schema).flatMap(({ around, schema: own }) =>
          isText(own) ? pieces.map((piece) => around(JSON.parse(`"${fill(piece, size)}"`))) : [],
        ),
        { [fill('é', size)]: 1 },
      ]
      for (const body of someOf(bodies, 1)) {
        const init = { method, headers, body: JSON.stringify({ ...(example as object), ...body }) }
        await stage.requireShortTurns(async () => {
          const response = await fetch(base + path.replaceAll(/\{\w+\+?\}/g, 'x'), init)
          const text = await response.text()
          assert.ok([400, 401, 403, 404, 413].includes(response.status), text.slice(0, 300))
          assert.ok(text.length < 2000, 'the answer does not repeat the body')
        })
      }
    })
  }
})
