import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { ManifestModel } from '../contract.ts'
import { ggufFacts } from '../gguf-facts.ts'
import { ownModel } from '../own-model.ts'
import { llamaHost, type HostAnswer, type HostClient } from './host-client.ts'
import { CONTEXT, smallEncoder, splitEncoder, WIDTH } from './small-encoder.ts'

const query = 'what is the capital of france'
const documents = ['paris is the capital of france', 'a river has a weir', 'the river']
const words = [...new Set([query, ...documents].join(' ').split(' '))]

interface Ranked {
  readonly index: number
  readonly logit: number
}

const toPassage = (text: string): object => ({ text })

const slugs = { ranking: 'test/cross-encoder', embedding: 'test/encoder' }

function entryFor(use: keyof typeof slugs, bytes: number): ManifestModel {
  return {
    catalog: {
      id: slugs[use],
      aliases: [],
      name: 'Encoder',
      description: 'Small.',
      categories: [use === 'ranking' ? 'reranker' : 'embedding'],
      context_length: CONTEXT,
      max_completion_tokens: 1,
      supported_parameters: [],
      pricing: { input_per_million: '0.05' },
    },
    runtime: 'llama',
    loader: use === 'ranking' ? 'gguf-reranker' : 'gguf-embedding',
    license: 'Apache-2.0',
    delivery: 'pull',
    memoryBytes: 10_000_000,
    files: [{ role: 'model', path: `${use}.gguf`, bytes, sources: [] }],
  }
}

/** The runtime and the architecture are real. The weights are random, so no number is right or wrong. */
describe('GGUF encoders', () => {
  let directory: string
  let host: HostClient

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'weir-encoders-'))
    const models: ManifestModel[] = []
    for (const use of ['ranking', 'embedding'] as const) {
      const bytes = smallEncoder(words, use)
      await writeFile(join(directory, `${use}.gguf`), bytes)
      models.push(entryFor(use, bytes.length))
    }
    host = await llamaHost({ models, modelsDirectory: directory, socketDirectory: directory })
  })
  after(async () => {
    await host.close()
    await rm(directory, { recursive: true })
  })

  const post = (path: string, body: object): Promise<HostAnswer> =>
    host.post(path, { model: path === '/v1/embeddings' ? slugs.embedding : slugs.ranking, ...body })
  async function rankings(passages: readonly string[], more = {}): Promise<Ranked[]> {
    const { status, json } = await post('/v1/ranking', {
      query: { text: query },
      passages: passages.map(toPassage),
      ...more,
    })
    assert.equal(status, 200, JSON.stringify(json))
    return json.rankings
  }
  const logitsOf = async (passages: readonly string[], more = {}): Promise<number[]> =>
    (await rankings(passages, more)).toSorted((a, b) => a.index - b.index).map(({ logit }) => logit)

  it('score each document by its text, best first, and always the same', async () => {
    const ranked = await rankings([...documents, documents[0] ?? ''])
    assert.deepEqual(
      ranked,
      ranked.toSorted((a, b) => b.logit - a.logit || a.index - b.index),
    )
    const [first, second, third, firstAgain] = await logitsOf([...documents, documents[0] ?? ''])
    assert.equal(new Set([first, second, third]).size, 3)
    assert.equal(first, firstAgain)
    assert.deepEqual(await logitsOf(documents), [first, second, third])
  })

  it('give the same scores in both schemas, as logits and from 0 to 1, and count the tokens they read', async () => {
    const { status, json } = await post('/v1/rerank', { query, documents })
    assert.equal(status, 200, JSON.stringify(json))
    const ranked = await rankings(documents)
    assert.deepEqual(
      json.results.map((it: { index: number }) => it.index),
      ranked.map(({ index }) => index),
    )
    for (const [place, { logit }] of ranked.entries()) {
      const score = json.results[place].relevance_score
      assert.ok(Math.abs(score - 1 / (1 + Math.exp(-logit))) < 1e-9, `${score} for ${logit}`)
    }
    // The six words of the query three times, the words of the documents, and the special tokens around both.
    assert.equal(json.usage.prompt_tokens, 3 * 6 + 6 + 5 + 2 + 3 * 4)
  })

  it('refuse a pair that is too long, or cut the document on request', async () => {
    const long = 'river '.repeat(CONTEXT)
    const passages = ['the river', long]
    const { status, json } = await post('/v1/ranking', { query: { text: query }, passages: passages.map(toPassage) })
    assert.deepEqual([status, json.error.code], [400, 'context_length_exceeded'])
    const cut = await logitsOf(passages, { truncate: 'END' })
    assert.ok(cut.every((logit) => Number.isFinite(logit)))
    // A document that fits to the last token, beside the special tokens and the six words of the query, is not cut.
    const fitting = 'river '.repeat(CONTEXT - 10)
    assert.deepEqual(await logitsOf(['the river', fitting]), cut)
    const longQuery = { query: { text: long }, passages: [{ text: 'the river' }], truncate: 'END' }
    assert.equal((await post('/v1/ranking', longQuery)).json.error.code, 'context_length_exceeded')
    const limited = await post('/v1/rerank', { query, documents: ['river river', long], max_tokens_per_doc: 2 })
    const [one, other] = limited.json.results
    assert.equal(one.relevance_score, other.relevance_score)
  })

  it('run from a file of the operator’s, by its path', async () => {
    const model = `gguf-embedding@${CONTEXT}:${join(directory, 'embedding.gguf')}`
    const own = await host.post('/v1/embeddings', { model, input: ['the river'] })
    assert.equal(own.status, 200, JSON.stringify(own.json))
    const { json } = await post('/v1/embeddings', { input: ['the river'] })
    assert.deepEqual(own.json.data[0].embedding, json.data[0].embedding)
    const missing = await host.post('/v1/embeddings', { model: `${model}.absent.gguf`, input: ['the river'] })
    assert.equal(missing.json.error.code, 'model_not_configured')
  })

  it('run from a model that was split, by the path of its first part', async () => {
    const parts = ['x-00001-of-00002.gguf', 'x-00002-of-00002.gguf'].map((name) => join(directory, name))
    const model = `gguf-embedding@${CONTEXT}:${parts[0]}`
    assert.deepEqual(
      ownModel(model)?.files.map(({ path }) => path),
      parts,
    )
    const contents = splitEncoder(words, 'embedding')
    await writeFile(parts[0]!, contents[0])
    const absent = await host.post('/v1/embeddings', { model, input: ['the river'] })
    assert.equal(absent.json.error.code, 'model_not_configured', 'a part is missing')
    await writeFile(parts[1]!, contents[1])
    const { status, json } = await host.post('/v1/embeddings', { model, input: ['the river'] })
    assert.equal(status, 200, JSON.stringify(json))
    const whole = await post('/v1/embeddings', { input: ['the river'] })
    assert.deepEqual(json.data[0].embedding, whole.json.data[0].embedding)
    const facts = await ggufFacts(parts[0]!)
    const { weightBytes, category } = await ggufFacts(join(directory, 'embedding.gguf'))
    assert.deepEqual([facts.weightBytes, facts.category], [weightBytes, category])
  })

  it('give vectors of length one, and accept a text that fills the context to the last token', async () => {
    // Beside the special tokens at both ends.
    const input = ['the river', 'river '.repeat(CONTEXT - 2)]
    const { status, json } = await post('/v1/embeddings', { input })
    assert.equal(status, 200, JSON.stringify(json))
    for (const { embedding } of json.data) {
      assert.equal(embedding.length, WIDTH)
      assert.ok(Math.abs(Math.hypot(...embedding) - 1) < 1e-4)
    }
    assert.equal(json.usage.prompt_tokens, 4 + CONTEXT)
    const tooLong = await post('/v1/embeddings', { input: ['river '.repeat(CONTEXT - 1)] })
    assert.deepEqual([tooLong.status, tooLong.json.error.code], [400, 'context_length_exceeded'])
  })
})
