import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { parseCatalog } from '../../src/catalog/file.ts'
import type { Model } from '../../src/catalog/model.ts'
import { ApiError } from '../../src/shared/errors.ts'
import { byteCollector } from '../../src/shared/byte-collector.ts'
import type { AnswerHead, EngineRequest, StreamRelay, WholeAnswer } from '../../src/engines/job.ts'
import { noUsage } from '../../src/billing/rating/rating.ts'
import { chatRequestSchema } from '../../src/inference/chat/schema.ts'
import { completionsRequestSchema } from '../../src/inference/completions/schema.ts'
import { imagesRequestSchema } from '../../src/inference/images/schema.ts'
import type { RequestFacts } from '../../src/inference/request/prepared-request.ts'
import { jsonEndpoints, type InferenceParts } from '../../src/inference/routes/json-endpoints.ts'
import { parsedBody, plainFacts } from '../support/made-job.ts'
import { answerCases, requestCases, type ModelName } from '../support/translation-cases.ts'

/**
 * What an engine gets for a request: every call with its path and its body, and the terms that the queue and the ledger
 * get. And what a caller gets for an engine's answer. test/fixtures/translations.jsonl has both as they should be.
 * WEIR_WRITE_TRANSLATIONS=1 writes it again after an intended change.
 */
const file = new URL('../fixtures/translations.jsonl', import.meta.url)

const parameters = [
  ...new Set(
    [chatRequestSchema, completionsRequestSchema, imagesRequestSchema].flatMap(({ properties }) =>
      Object.keys(properties),
    ),
  ),
  'dimensions',
]
const engineKinds: Readonly<Record<ModelName, object>> = {
  openai: { kind: 'openai' },
  vllm: { kind: 'vllm' },
  llamacpp: { kind: 'llamacpp' },
  python: { kind: 'llamacpp_python' },
  tei: { kind: 'tei' },
  nim: { kind: 'nim' },
  plain: { kind: 'openai', model: 'engine-name' },
  small: { kind: 'openai' },
  none: { kind: 'tei' },
}
const settings: Partial<Record<ModelName, object>> = {
  plain: { categories: ['llm'], supported_parameters: [] },
  small: { context_length: 200, max_completion_tokens: 100, default_max_tokens: 50 },
  none: { categories: ['llm'] },
}
const models = new Map(
  (Object.keys(engineKinds) as ModelName[]).map((name): [ModelName, Model] => {
    const entry = {
      id: `test/${name}`,
      categories: ['llm', 'vision', 'embedding', 'reranker', 'image'],
      rerank_schema: 'documents',
      context_length: 10_000,
      max_completion_tokens: 1000,
      default_max_tokens: 500,
      supported_parameters: parameters,
      serverless: { engine: { urls: ['http://127.0.0.1:1'], ...engineKinds[name] }, limits: { token_budget: 1e6 } },
      ...settings[name],
    }
    const [model] = parseCatalog(JSON.stringify({ models: [entry] }), 'catalog.yaml', () => undefined)
    return [name, model ?? assert.fail(name)]
  }),
)

async function bytesOf(body: EngineRequest['body']): Promise<string> {
  if (Buffer.isBuffer(body)) return body.toString()
  const pieces: Buffer[] = []
  for await (const piece of body?.open() ?? []) pieces.push(Buffer.from(piece))
  const whole = Buffer.concat(pieces)
  assert.equal(body?.length, whole.length)
  return whole.toString()
}

async function callOf(call: EngineRequest): Promise<object> {
  const { body, ifSilent, fallback, ...rest } = call
  return {
    ...rest,
    body: JSON.parse(await bytesOf(body)) as unknown,
    ...(ifSilent ? { ifSilent: await callOf(ifSilent) } : {}),
    ...(fallback ? { hasFallback: true } : {}),
  }
}

function refusalOf(error: unknown): object {
  if (!(error instanceof ApiError)) throw error
  const { code, param, message, tokens } = error
  return { refused: { code, param, message, ...(tokens ? { tokens } : {}) } }
}

/** The job of a request, and what its answer needs; or what is still missing. */
function prepared(path: string, name: ModelName, body: object, facts: Partial<RequestFacts> = {}) {
  const endpoint = jsonEndpoints.find((it) => it.path === path) ?? assert.fail(path)
  const model = models.get(name) ?? assert.fail(name)
  const deployment = model.serverless ?? assert.fail(name)
  const request = parsedBody(JSON.stringify({ model: model.id, ...body }))
  const made = endpoint.prepare(request, model, deployment, { ...plainFacts, ...facts })
  if ('missing' in made) return made
  const { needs = {} } = made.plan as { needs?: object }
  return { job: endpoint.makeJob(made, model, deployment, { files: undefined } as InferenceParts, 'acme'), needs }
}

async function requestOutcome(path: string, name: ModelName, body: object, facts: Partial<RequestFacts>) {
  try {
    const made = prepared(path, name, body, facts)
    if ('missing' in made) return made
    const { calls, answer, model: _model, deployment: _deployment, ...terms } = made.job
    const needs = Object.entries(made.needs).map(([at, it]) => [at, it instanceof Map ? [...it] : it])
    return {
      ...terms,
      calls: await Promise.all(calls.map(callOf)),
      answer: answer.kind,
      needs: Object.fromEntries(needs),
    }
  } catch (error) {
    return refusalOf(error)
  }
}

const head: AnswerHead = { id: 'id', created: 7, model: 'test/shown' }

async function answerOutcome(path: string, name: ModelName, body: object, answers: readonly (object | string)[]) {
  const made = prepared(path, name, body)
  assert.ok('job' in made)
  const { answer } = made.job
  try {
    return answer.kind === 'streamed'
      ? streamOutcome(answer.relay(head), answers.filter((it) => typeof it === 'string').join(''))
      : await wholeOutcome(answer, answers)
  } catch (error) {
    return refusalOf(error)
  }
}

function streamOutcome(relay: StreamRelay, text: string): object {
  const idle = relay.idle?.() ?? ''
  const relayed = relay.push(Buffer.from(text))
  const reported = relay.reportedUsage()
  const isComplete = relay.isComplete()
  const end = isComplete
    ? relay.closing(reported ?? { ...noUsage, inputTokens: 1, outputTokens: 1 })
    : relay.failure(new ApiError('upstream_error', 'It broke.'))
  return {
    text: Buffer.from(idle + relayed + end, 'latin1')
      .toString()
      .split('\n'),
    states: [
      isComplete,
      relay.isDone(),
      relay.isBroken(),
      relay.isPastLimit(),
      relay.deltaCount(),
      relay.deltasSinceReport(),
    ],
    reported: reported ?? null,
  }
}

async function wholeOutcome(answer: WholeAnswer, answers: readonly (object | string)[]): Promise<object> {
  const bodies = answers.map((it) => {
    const body = byteCollector(1_000_000)
    body.push(Buffer.from(JSON.stringify(it)))
    return body
  })
  const parsed = await answer.read(bodies, head, [])
  if (!parsed) return { isAnswer: false }
  const { usage, outputBytes, render, ...more } = parsed
  const rendered = render(usage ?? { ...noUsage, inputTokens: 1, outputTokens: 1 })
  const text = typeof rendered === 'string' ? rendered : Buffer.concat([rendered].flat()).toString()
  return { ...more, usage: usage ?? null, outputBytes: outputBytes(), body: JSON.parse(text) as unknown }
}

const isWriting = process.env['WEIR_WRITE_TRANSLATIONS'] === '1'
const lines = isWriting ? [] : readFileSync(file, 'utf8').trimEnd().split('\n')
const expected = new Map(lines.map((line) => JSON.parse(line) as [string, unknown]))
const seen: [string, unknown][] = []

async function assertExpected(name: string, made: Promise<object>): Promise<void> {
  const outcome = JSON.parse(JSON.stringify(await made)) as unknown
  seen.push([name, outcome])
  if (!isWriting) assert.deepEqual(outcome, expected.get(name))
}

describe('a request', () => {
  for (const { path, model, what, body, facts } of requestCases()) {
    it(`to ${path} is forwarded to the engine or refused as recorded: ${what} (${model})`, () =>
      assertExpected(`${path} ${model}: ${what}`, requestOutcome(path, model, body, facts)))
  }
})

describe('a parameter that is null', () => {
  const bases: Readonly<Record<string, object>> = {
    '/chat/completions': { messages: [{ role: 'user', content: 'Hello' }], n: 2 },
    '/messages': { messages: [{ role: 'user', content: 'Hello' }], max_tokens: 9 },
    '/responses': { input: 'Hello' },
    '/completions': { prompt: ['Once', 'Twice'] },
    '/embeddings': { input: 'Hello' },
    '/rerank': { query: 'q', documents: ['a', 'b'] },
    '/reranking': { query: { text: 'q' }, passages: [{ text: 'a' }] },
    '/images/generations': { prompt: 'A cat' },
  }
  // Everything but what counts the bytes that were sent.
  const ofEngine = async (path: string, model: ModelName, body: object): Promise<object> => {
    const { calls, cost, maxTokens, needs, answer, refused } = (await requestOutcome(path, model, body, {})) as Record<
      string,
      unknown
    >
    return { calls, cost, maxTokens, needs, answer, refused }
  }
  for (const [path, base] of Object.entries(bases)) {
    it(`counts as missing: ${path}`, async () => {
      const { request } = jsonEndpoints.find((it) => it.path === path) ?? assert.fail(path)
      const optional = Object.keys(request.properties).filter((name) => !(name in base) && name !== 'model')
      assert.ok(optional.length > 0)
      const models: readonly ModelName[] = ['openai', ...(path.endsWith('completions') ? (['llamacpp'] as const) : [])]
      for (const model of models) {
        const without = await ofEngine(path, model, base)
        assert.equal((without as { refused: unknown }).refused, undefined)
        for (const name of optional)
          assert.deepEqual(await ofEngine(path, model, { ...base, [name]: null }), without, name)
      }
    })
  }

  it('counts as missing, in an answer too', async () => {
    const results = { results: [0, 1].map((index) => ({ index, relevance_score: 0.5 })) }
    for (const name of ['top_n', 'return_documents', 'max_tokens_per_doc']) {
      const body = { query: 'q', documents: ['a', 'b'] }
      const without = await answerOutcome('/rerank', 'openai', body, [results])
      assert.deepEqual(await answerOutcome('/rerank', 'openai', { ...body, [name]: null }, [results]), without, name)
    }
  })
})

describe('an answer', () => {
  for (const { path, model, what, body, answers } of answerCases()) {
    it(`of ${path} is translated or rejected as recorded: ${what} (${model})`, () =>
      assertExpected(`answer of ${path} ${model}: ${what}`, answerOutcome(path, model, body, answers)))
  }

  it('is one of those that are listed, each once', () => {
    if (isWriting) writeFileSync(file, seen.map((it) => `${JSON.stringify(it)}\n`).join(''))
    assert.equal(new Set(seen.map(([name]) => name)).size, seen.length)
    if (!isWriting) assert.equal(expected.size, seen.length)
  })
})
