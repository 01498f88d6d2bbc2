import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { linesIn, reached, sdkOf, submit } from '../support/batches.ts'
import { jsonStage } from '../support/json-stage.ts'

const model = 'meta/test-8b'
const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }
const noText = { max_completion_tokens: undefined, default_max_tokens: undefined, supported_parameters: [] }
const ranker = { ...noText, categories: ['reranker'], context_length: 100 }
const chat = { choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }], usage }

interface Endpoint {
  readonly url: string
  /** Of the engine. */
  readonly kind?: string
  readonly model?: object
  readonly body: object
  /** What the engine answers. */
  readonly engine: object
  /** A part of the answer. */
  readonly answer: object
}

const endpoints: readonly Endpoint[] = [
  {
    url: '/v1/completions',
    body: { prompt: 'Hi' },
    engine: { choices: [{ index: 0, text: 'there', finish_reason: 'stop' }], usage },
    answer: { object: 'text_completion', service_tier: 'batch', choices: [{ text: 'there' }] },
  },
  {
    url: '/v1/responses',
    body: { input: 'Hi' },
    engine: chat,
    answer: { object: 'response', service_tier: 'batch', output: [{ content: [{ text: 'Hi' }] }] },
  },
  {
    url: '/v1/messages',
    body: { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5 },
    engine: chat,
    answer: { type: 'message', content: [{ text: 'Hi' }], usage: { service_tier: 'batch' } },
  },
  {
    url: '/v1/embeddings',
    model: { ...noText, categories: ['embedding'] },
    body: { input: 'Hi' },
    engine: { data: [{ index: 0, embedding: [0.5] }], usage },
    answer: { object: 'list', data: [{ embedding: [0.5] }] },
  },
  {
    url: '/v1/rerank',
    model: { ...ranker, rerank_schema: 'documents' },
    body: { query: 'Hi', documents: ['a'] },
    engine: { results: [{ index: 0, relevance_score: 0.5 }], usage },
    answer: { results: [{ index: 0, relevance_score: 0.5 }] },
  },
  {
    url: '/v1/reranking',
    kind: 'nim',
    model: { ...ranker, rerank_schema: 'passages' },
    body: { query: { text: 'Hi' }, passages: [{ text: 'a' }] },
    engine: { rankings: [{ index: 0, logit: 0.5 }], usage },
    answer: { rankings: [{ index: 0, logit: 0.5 }] },
  },
]

describe('lines of a batch', () => {
  for (const { url, kind = 'openai', model: changes = {}, body, engine, answer } of endpoints) {
    it(`are run for ${url}`, async (t) => {
      const { weir, answer: answers } = await jsonStage(t, { model: changes, engine: { kind } })
      answers(() => engine)
      const client = sdkOf(weir)
      const line = (id: string) => ({ custom_id: id, method: 'POST', url, body: { model, ...body } })
      const batch = await reached(client, (await submit(client, [line('a'), line('b')], url)).id, 'completed', 'failed')
      assert.equal(batch.status, 'completed', JSON.stringify(batch.errors))
      const lines = await linesIn(client, batch.output_file_id)
      assert.deepEqual(
        lines.map((it) => it.custom_id),
        ['a', 'b'],
      )
      for (const { response } of lines) assert.partialDeepStrictEqual(response?.body, answer)
      const rows = await weir.ledger()
      assert.deepEqual(
        rows.map((row) => [row.endpoint, row.tier, row.inputTokens]),
        lines.map(() => [url.slice('/v1'.length), 'batch', 7]),
      )
    })
  }
})
