import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { engineKinds } from '../../src/catalog/model.ts'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { dialects } from '../../src/engines/dialects/index.ts'
import { clip } from '../support/audio-stage.ts'
import { roomyLimits } from '../support/chat-stage.ts'
import { modelEntry, readEvents, startWeir, type TestWeir } from '../support/weir.ts'
import { fixtureServer, type FixtureCall, type FixtureServer } from './fixture-server.ts'

/**
 * One suite for every kind of server: the real service in front of a server that accepts exactly the requests
 * in fixtures/dialects and gives exactly their answers. The README there names the source of each format.
 */
interface Fixture {
  /** The server and version whose answers were captured. The others were written from documentation and source. */
  readonly captured?: string
  /** The path of the server's API, /v1 by default. */
  readonly base?: string
  readonly ask: { readonly endpoint: string; readonly body?: object; readonly form?: Readonly<Record<string, string>> }
  readonly calls: readonly FixtureCall[]
  /** Of the answer to the caller, 200 by default. */
  readonly status?: number
  /** With `test/model` as the model, `…` as the request id and 0 as the time. For a stream, its events. */
  readonly answer: unknown
  readonly ledger: Partial<LedgerRow>
}

/** Weir's own engine host is tested with real models, in test/models. */
const kinds = engineKinds.filter((kind) => kind !== 'embedded')

const operations: Readonly<Record<string, string>> = {
  '/chat/completions': 'chat',
  '/completions': 'completions',
  '/embeddings': 'embeddings',
  '/rerank': 'ranking',
  '/reranking': 'ranking',
  '/images/generations': 'images',
  '/audio/transcriptions': 'speech',
  '/audio/translations': 'speech',
}

const textParameters = [
  'temperature',
  'seed',
  'stop',
  'n',
  'logprobs',
  'top_logprobs',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'response_format',
]
const speechParameters = ['language', 'response_format', 'timestamp_granularities']
const textPrices = { input_per_million: '0.20', output_per_million: '0.60', cached_input_per_million: '0.05' }

const folder = new URL('../fixtures/dialects/', import.meta.url)

function fixturesOf(kind: string): readonly { name: string; fixture: Fixture }[] {
  const files = readdirSync(new URL(`${kind}/`, folder))
    .filter((file) => file.endsWith('.json'))
    .toSorted()
  return files.map((file) => ({
    name: file.replace('.json', ''),
    fixture: JSON.parse(readFileSync(new URL(`${kind}/${file}`, folder), 'utf8')) as Fixture,
  }))
}

let server: FixtureServer
let weir: TestWeir

/** One model with every capability, for each kind and each reranking endpoint. */
function entry(kind: string, schema: 'documents' | 'passages'): object {
  const [base = '/v1'] = fixturesOf(kind).map(({ fixture }) => fixture.base)
  return modelEntry([], {
    id: `${schema}/${kind}`,
    aliases: [],
    categories: ['llm', 'embedding', 'reranker', 'image', 'audio'],
    rerank_schema: schema,
    supported_parameters: [...textParameters, 'steps', 'negative_prompt', ...speechParameters],
    pricing: { ...textPrices, per_image: '0.04', per_audio_minute: '0.006' },
    serverless: { engine: { kind, urls: [server.url + base], model: 'engine-name' }, limits: roomyLimits },
  })
}

before(async () => {
  server = await fixtureServer()
  weir = await startWeir({
    rate_limit: { requests_per_minute: 100_000 },
    models: kinds.flatMap((kind) => [entry(kind, 'documents'), entry(kind, 'passages')]),
  })
})
after(async () => {
  await weir.stop()
  await server.close()
})

function send({ endpoint, body, form }: Fixture['ask'], model: string): Promise<Response> {
  if (!form) {
    const headers = { 'content-type': 'application/json' }
    return weir.call(endpoint, { method: 'POST', headers, body: JSON.stringify({ ...body, model }) })
  }
  const data = new FormData()
  for (const [name, value] of Object.entries({ ...form, model })) data.append(name, value)
  data.append('file', new Blob([new Uint8Array(clip('flac.ogg'))]), 'speech.ogg')
  return weir.call(endpoint, { method: 'POST', body: data })
}

/** The answer, with the parts that vary between requests checked and replaced. */
function comparable(answer: unknown, model: string, requestId: string): unknown {
  if (typeof answer !== 'object' || answer === null) return answer
  const copy: Record<string, unknown> = { ...answer }
  if ('created' in copy && Math.abs(Number(copy['created']) - Date.now() / 1000) < 60) copy['created'] = 0
  if (copy['model'] === model) copy['model'] = 'test/model'
  if (typeof copy['id'] === 'string') copy['id'] = copy['id'].replace(requestId, '…')
  return copy
}

async function run(kind: string, fixture: Fixture): Promise<LedgerRow> {
  const model = `${fixture.ask.endpoint === '/reranking' ? 'passages' : 'documents'}/${kind}`
  server.expect(fixture.calls, new URL(`${kind}/`, folder))
  const response = await send(fixture.ask, model)
  const isStream = Array.isArray(fixture.answer)
  const parts = isStream ? await readEvents(response) : [await response.text()]
  server.verify()
  assert.equal(response.status, fixture.status ?? 200, parts[0])
  const requestId = response.headers.get('x-request-id') ?? ''
  // The server of llama-cpp-python refuses ids that are not UUIDs.
  const idOfCall = kind === 'llamacpp_python' ? undefined : requestId
  assert.deepEqual(server.requestIds, Array(fixture.calls.length).fill(idOfCall))
  const seen = parts.map((text) => comparable(text === '[DONE]' ? text : JSON.parse(text), model, requestId))
  const row = (await weir.ledger()).find((it) => it.requestId === requestId)
  assert.ok(row, 'a row in the ledger')
  assert.deepEqual(isStream ? seen : seen[0], withEstimate(fixture, row))
  for (const [name, value] of Object.entries(fixture.ledger)) assert.equal(row[name as keyof LedgerRow], value, name)
  return row
}

/** When a server does not count tokens, Weir estimates them, and the answer shows what is billed. */
function withEstimate({ answer, ledger }: Fixture, { inputTokens }: LedgerRow): unknown {
  // A stream's fixture has the estimate in its last event.
  if (!ledger.estimated || Array.isArray(answer)) return answer
  assert.ok(inputTokens > 0)
  return { ...(answer as object), usage: { prompt_tokens: inputTokens, total_tokens: inputTokens } }
}

for (const kind of kinds) {
  describe(`a server of kind ${kind}`, () => {
    for (const { name, fixture } of fixturesOf(kind)) {
      it(`${name}: ${fixture.ask.endpoint}`, async () => void (await run(kind, fixture)))
    }

    it('has a fixture for each operation', () => {
      const seen = new Set(fixturesOf(kind).map(({ fixture }) => operations[fixture.ask.endpoint]))
      assert.deepEqual(seen, new Set(Object.keys(dialects[kind])))
    })
  })
}

describe('cached input', () => {
  it('[M5] reaches the caller, the ledger and the bill, wherever the server reports it', async () => {
    const billed = new Set<string>()
    for (const kind of kinds) {
      for (const { fixture } of fixturesOf(kind)) {
        if (!fixture.ledger.cachedInputTokens) continue
        const { inputTokens, cachedInputTokens, outputTokens, amount } = await run(kind, fixture)
        const picoAud =
          (inputTokens - cachedInputTokens) * 200_000 + cachedInputTokens * 50_000 + outputTokens * 600_000
        assert.equal(amount, BigInt(picoAud), `${kind} ${fixture.ask.endpoint}`)
        billed.add(kind)
      }
    }
    assert.deepEqual([...billed], ['openai', 'vllm', 'sglang', 'llamacpp'])
  })
})
