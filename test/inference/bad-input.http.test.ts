import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import * as fc from 'fast-check'
import { roomyLimits } from '../support/chat-stage.ts'
import { runLength } from '../support/long-run.ts'
import { publicDocument, type ApiDocument } from '../support/openapi.ts'
import { fieldsOf, outOfBounds, wrongTypes, type Field, type Schema } from '../support/schema-samples.ts'
import { scriptedEngine, type EngineCallSeen, type Script, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

/**
 * Sends wrong values for every field of every JSON endpoint in the OpenAPI document. The answer is never a 5xx or a
 * hang, and always has the one error format with the right parameter. The test runner itself fails on an unhandled
 * rejection. SEED=… repeats a run.
 */
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31)
const RUNS = runLength(1, 12)
const HANG_MS = 10_000

/** Its file is uploaded before the tests. */
const goodBatch = { input_file_id: '', endpoint: '/v1/embeddings', completion_window: '24h' }

/** The smallest valid request of each endpoint. */
const good: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  '/chat/completions': { model: 'bad/chat', messages: [{ role: 'user', content: 'Hi' }] },
  '/responses': { model: 'bad/chat', input: [{ role: 'user', content: 'Hi' }] },
  '/messages': { model: 'bad/chat', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] },
  '/completions': { model: 'bad/chat', prompt: 'Hi' },
  '/embeddings': { model: 'bad/embedder', input: 'Hi' },
  '/rerank': { model: 'bad/reranker', query: 'q', documents: ['a', 'b'] },
  '/reranking': { model: 'bad/ranker', query: { text: 'q' }, passages: [{ text: 'a' }] },
  '/images/generations': { model: 'bad/painter', prompt: 'A weir' },
  '/messages/count_tokens': { model: 'bad/chat', messages: [{ role: 'user', content: 'Hi' }] },
  '/batches': goodBatch,
}

/** Needed before the service runs, to name the tests. A test below compares it with the served document. */
const schemas = schemasOf(publicDocument())

function schemasOf({ paths }: ApiDocument): Readonly<Record<string, Schema>> {
  const found = Object.entries(paths).flatMap(([path, { post }]) => {
    // A key is managed with a strict body, which refuses unknown fields: test/workspaces/key-limits.http.test.ts.
    if (path === '/keys') return []
    const schema = post?.requestBody?.content['application/json']?.schema
    return schema ? [[path, schema as Schema] as const] : []
  })
  return Object.fromEntries(found)
}

let engine: ScriptedEngine
let weir: TestWeir

before(async () => {
  engine = await scriptedEngine()
  engine.script = honestAnswer
  const entry = (id: string, categories: string[], kind = 'openai', changes: object = {}): object =>
    modelEntry([], {
      id,
      aliases: [],
      categories,
      supported_parameters: [
        ...new Set(Object.values(schemas).flatMap(({ properties }) => Object.keys(properties ?? {}))),
      ],
      pricing: { input_per_million: '0.20', output_per_million: '0.60', per_image: '0.04' },
      serverless: {
        engine: { kind, urls: [engine.url], model: 'engine-name' },
        limits: { ...roomyLimits, token_budget: 10_000_000 },
      },
      ...changes,
    })
  weir = await startWeir({
    rate_limit: { requests_per_minute: 10_000_000 },
    models: [
      entry('bad/chat', ['llm', 'vision']),
      entry('bad/embedder', ['embedding']),
      entry('bad/reranker', ['reranker'], 'openai', { rerank_schema: 'documents' }),
      entry('bad/ranker', ['reranker'], 'nim', { rerank_schema: 'passages' }),
      entry('bad/painter', ['image']),
    ],
  })
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new Blob([JSON.stringify({ custom_id: 'a' })]), 'in.jsonl')
  const uploaded = await weir.call('/files', { method: 'POST', body: form })
  goodBatch.input_file_id = ((await uploaded.json()) as { id: string }).id
})
after(async () => {
  await weir.stop()
  await engine.close()
})

/** An engine that always answers correctly, so that anything that goes wrong is Weir's fault. */
function honestAnswer(call: EngineCallSeen): Script {
  const { input, documents, passages, prompt } = call.body as Record<string, unknown[]>
  const choice = (_: unknown, index: number): object => ({ index, text: 'a', finish_reason: 'stop' })
  const answer =
    // Several texts have a choice each. An array of numbers is one text in tokens.
    (Array.isArray(prompt) && typeof prompt[0] !== 'number' ? { choices: prompt.map(choice) } : undefined) ??
    (input && { data: input.map((_, index) => ({ index, embedding: [0.5] })) }) ??
    (documents && { results: documents.map((_, index) => ({ index, relevance_score: 0.5 })) }) ??
    (passages && { rankings: passages.map((_, index) => ({ index, logit: 0 })) })
  return answer ? { handle: (_, response) => void response.end(JSON.stringify(answer)) } : {}
}

async function send(path: string, body: string | Buffer<ArrayBuffer>): Promise<{ status: number; text: string }> {
  const response = await weir.call(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
    signal: AbortSignal.timeout(HANG_MS),
  })
  return { status: response.status, text: await response.text() }
}

function sendWith(path: string, changes: Readonly<Record<string, unknown>>): ReturnType<typeof send> {
  return send(path, JSON.stringify({ ...good[path], ...changes }))
}

interface Refusal {
  readonly message?: unknown
  readonly error: {
    readonly message: string
    readonly type: string
    readonly param: string | null
    readonly code: string
  }
}

/** The fields of an error's body, where an API has its own. */
const shapes: Readonly<Record<string, readonly string[]>> = {
  '/rerank': ['message', 'error'],
  '/messages': ['type', 'error', 'request_id'],
  '/messages/count_tokens': ['type', 'error', 'request_id'],
}

/** Checks the error format of a caller's mistake. */
function refusal(path: string, { status, text }: { status: number; text: string }): Refusal['error'] {
  assert.ok(status >= 400 && status < 500, `${status}: ${text.slice(0, 300)}`)
  const body = JSON.parse(text) as Refusal
  assert.deepEqual(Object.keys(body), shapes[path] ?? ['error'])
  assert.deepEqual(Object.keys(body.error).toSorted(byName), ['code', 'message', 'param', 'type'])
  const { message, type, param, code } = body.error
  assert.ok(message !== '' && typeof message === 'string')
  const ownTypes: Readonly<Record<number, string>> = { 404: 'not_found_error', 413: 'request_too_large' }
  const expected = path.startsWith('/messages') ? ownTypes[status] : undefined
  assert.equal(type, expected ?? 'invalid_request_error')
  assert.equal(typeof code, 'string')
  assert.ok(param === null || typeof param === 'string')
  return body.error
}

const byName = (one: string, other: string): number => one.localeCompare(other)

/** The parameter itself or, if the value has parts, one of them. */
function requireParam(param: string | null, place: string, value: unknown): void {
  const isPart = typeof value === 'object' && (param?.startsWith(`${place}[`) || param?.startsWith(`${place}.`))
  assert.ok(param === place || isPart, `param is ${param}, not ${place}, for ${JSON.stringify(value).slice(0, 100)}`)
}

function check<Values extends [unknown, ...unknown[]]>(
  property: fc.IAsyncProperty<Values>,
  runs = RUNS,
): Promise<void> {
  return fc.assert(property, { seed, numRuns: runs })
}

for (const [path, schema] of Object.entries(schemas)) {
  describe(`bad input to ${path}`, () => {
    for (const field of fieldsOf(schema)) {
      const { path: place, schema: node, isRequired, around } = field
      // One test for all values of a field: the service answers faster than the test runner starts a test.
      it(`${place} of another type, out of bounds, null, missing, or anything at all`, async () => {
        const refusalOf = async (value: unknown): Promise<Refusal['error']> => {
          const refused = refusal(path, await sendWith(path, around(value)))
          requireParam(refused.param, place, value)
          return refused
        }
        await check(
          fc.asyncProperty(wrongTypes(node), async (value) => {
            const { code } = await refusalOf(value)
            assert.match(code, /^(invalid_type|invalid_value|missing_required_parameter|unsupported_content)$/)
          }),
        )
        for (const value of alternativesOf(node).flatMap(outOfBounds)) {
          const { code } = await refusalOf(value)
          if (value !== '') assert.notEqual(code, 'model_not_found', 'a name that is too long is not looked up')
        }
        await expectNull(path, field)
        if (isRequired && !place.endsWith(']')) {
          const { param, code } = refusal(path, await sendWith(path, around(undefined)))
          assert.deepEqual([code, param], ['missing_required_parameter', place])
        }
        await check(
          fc.asyncProperty(fc.jsonValue({ maxDepth: 4 }), async (value) => {
            const answer = await sendWith(path, around(value))
            if (answer.status !== 200) refusal(path, answer)
          }),
        )
      })
    }

    it('unknown fields are ignored, and not passed on', () =>
      check(
        fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })), async (unknown) => {
          const strange = Object.fromEntries(Object.entries(unknown).map(([name, value]) => [`x-${name}`, value]))
          engine.calls.length = 0
          assert.equal((await sendWith(path, strange)).status, 200)
          const forwarded = Object.keys(engine.calls[0]?.body ?? {})
          assert.deepEqual(
            forwarded.filter((name) => name.startsWith('x-')),
            [],
          )
        }),
      ))

    it('a body that is not a JSON object', () =>
      check(
        fc.asyncProperty(fc.oneof(fc.string(), fc.json(), fc.constant('')), async (text) => {
          fc.pre(!isObject(text))
          const { code, param } = refusal(path, await send(path, text))
          assert.deepEqual([code, param], ['invalid_json', null])
        }),
        3 * RUNS,
      ))

    it('a body that is truncated anywhere, or is not valid UTF-8', async () => {
      const bytes = Buffer.from(JSON.stringify(good[path]))
      for (let length = 1; length < bytes.length; length += 3) {
        assert.equal(refusal(path, await send(path, Buffer.from(bytes.subarray(0, length)))).code, 'invalid_json')
        const broken = Buffer.from(bytes)
        broken[length] = 0xff
        assert.equal(refusal(path, await send(path, broken)).code, 'invalid_json')
      }
    })

    it('a number too large for a float, and a field given twice', async () => {
      const text = JSON.stringify(good[path])
      for (const name of Object.keys(schema.properties ?? {})) {
        const rest = text.slice(0, -1)
        const huge = refusal(path, await send(path, `${withoutField(rest, path, name)},"${name}":1e999}`))
        if (huge.code !== 'invalid_json') requireParam(huge.param, name, 1)
        const twice = refusal(path, await send(path, `${rest},"${name}":null,"${name}":null}`))
        assert.equal(twice.code, 'invalid_json')
      }
    })

    it('values that are very deep or very long, wherever they are', async () => {
      const rest = JSON.stringify(good[path]).slice(0, -1)
      const deep = '['.repeat(100_000) + ']'.repeat(100_000)
      const crowd = `[${'0,'.repeat(300_000)}0]`
      for (const name of ['strange', ...Object.keys(schema.properties ?? {}).slice(0, 3)]) {
        for (const value of [deep, crowd]) {
          const answer = await send(path, `${withoutField(rest, path, name)},"${name}":${value}}`)
          // The body of a batch has little in it, so its limit is lower.
          assert.equal(refusal(path, answer).code, path === '/batches' ? 'request_too_large' : 'invalid_json')
        }
      }
    })

    it('a body over the limit', async () => {
      const answer = await sendWith(path, { strange: 'x'.repeat(21 * 2 ** 20) })
      assert.deepEqual([answer.status, refusal(path, answer).code], [413, 'request_too_large'])
    })

    it('the endpoint still works after all this', async () => {
      assert.equal((await sendWith(path, {})).status, 200)
    })
  })
}

describe('the generated tests', () => {
  it('cover every endpoint of the served document that accepts JSON', async (t) => {
    t.diagnostic(`SEED=${seed}`)
    const served = (await (await weir.call('/openapi.json', { key: null })).json()) as ApiDocument
    assert.deepEqual(schemasOf(served), schemas)
    assert.deepEqual(Object.keys(schemas), Object.keys(good))
  })
})

function alternativesOf(schema: Schema): readonly Schema[] {
  return schema.anyOf ? schema.anyOf.flatMap(alternativesOf) : [schema]
}

/** null means absent, so it is refused only for required fields. */
async function expectNull(path: string, { path: place, isRequired, around }: Field): Promise<void> {
  const answer = await sendWith(path, around(null))
  if (!isRequired && answer.status === 200) return
  const { param, code } = refusal(path, answer)
  if (isRequired) requireParam(param, place, null)
  else assert.notEqual(code, 'invalid_type')
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/** The valid request without one field, and without its closing brace. */
function withoutField(rest: string, path: string, name: string): string {
  if (!(name in (good[path] ?? {}))) return rest
  const { [name]: _, ...others } = good[path] ?? {}
  return JSON.stringify(others).slice(0, -1)
}
