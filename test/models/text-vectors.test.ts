import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { rankingQueries } from './ranking-queries.ts'
import { startService, type ModelService } from './service.ts'

const embeddingModel = 'sentence-transformers/all-minilm-l6-v2'

describe('embeddings and reranking', () => {
  let service: ModelService
  before(async () => {
    service = await startService(embeddingModel)
  })
  after(() => service.close())

  const embed = async (input: string | string[], more: object = {}) => {
    const { status, json, text } = await service.post('/embeddings', { model: embeddingModel, input, ...more })
    assert.equal(status, 200, text)
    return json
  }

  it('puts paraphrases closer together than unrelated texts', async () => {
    const { data } = await embed([
      'A man is eating food.',
      'Somebody is having a meal.',
      'The stock market fell sharply today.',
    ])
    const [a, b, c] = data.map((item: { embedding: number[] }) => item.embedding)
    assert.ok(cosine(a, b) > cosine(a, c) + 0.2, `${cosine(a, b)} against ${cosine(a, c)}`)
    assert.equal(a.length, 384)
    assert.ok(Math.abs(cosine(a, a) - 1) < 1e-4)
  })

  it('gives the same vector alone and in a batch, in input order', async () => {
    const texts = Array.from(
      { length: 20 },
      (_, index) => `Sentence ${index} ${'with some more words '.repeat(index % 5)}`,
    )
    const batch = await embed(texts)
    const alone = await embed(texts[13] ?? '')
    assert.deepEqual(batch.data[13].embedding, alone.data[0].embedding)
    assert.deepEqual(
      batch.data.map((item: { index: number }) => item.index),
      [...texts.keys()],
    )
    assert.ok(batch.usage.prompt_tokens > alone.usage.prompt_tokens)
  })

  it('gives the same numbers as base64', async () => {
    const floats = (await embed('hello')).data[0].embedding as number[]
    const base64 = Buffer.from((await embed('hello', { encoding_format: 'base64' })).data[0].embedding, 'base64')
    const decoded = floats.map((_, index) => base64.readFloatLE(index * 4))
    assert.deepEqual(decoded, floats)
  })

  it('refuses text beyond the context, and sizes it does not have', async () => {
    const long = await service.post('/embeddings', { model: embeddingModel, input: 'word '.repeat(600) })
    assert.equal(long.json.error.code, 'context_length_exceeded')
    assert.match(long.json.error.message, /maximum context length/)
    const cut = await service.post('/embeddings', { model: embeddingModel, input: 'x', dimensions: 10 })
    assert.equal(cut.json.error.code, 'unsupported_parameter')
  })

  it('ranks the right document first on a set of 20 queries, in both schemas', async () => {
    for (const { query, right, wrong } of rankingQueries) {
      const documents = [...wrong.slice(0, 1), right, ...wrong.slice(1)]
      const reranked = await service.post('/rerank', { model: 'weir/minilm-rerank', query, documents })
      const scores = reranked.json.results.map((result: { relevance_score: number }) => result.relevance_score)
      assert.deepEqual(
        scores,
        [...scores].sort((a: number, b: number) => b - a),
      )
      assert.ok(scores.every((score: number) => score >= 0 && score <= 1))
      assert.equal(documents[reranked.json.results[0].index], right, query)
      const ranked = await service.post('/reranking', {
        model: 'weir/minilm-ranking',
        query: { text: query },
        passages: documents.map((text) => ({ text })),
      })
      assert.equal(documents[ranked.json.rankings[0].index], right, query)
    }
  })

  it('cuts or refuses long passages on request, and obeys top_n', async () => {
    const request = {
      model: 'weir/minilm-ranking',
      query: { text: 'Where do rivers flow?' },
      passages: [{ text: 'Rivers carry water to the sea. '.repeat(100) }, { text: 'Fire burns wood.' }],
    }
    assert.equal((await service.post('/reranking', request)).json.error.code, 'context_length_exceeded')
    const cut = await service.post('/reranking', { ...request, truncate: 'END', top_n: 1 })
    assert.deepEqual(
      cut.json.rankings.map((ranking: { index: number }) => ranking.index),
      [0],
    )
  })
})

function cosine(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0)
}
