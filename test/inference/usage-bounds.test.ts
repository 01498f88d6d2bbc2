import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { parseCatalog } from '../../src/catalog/file.ts'
import { byteCollector } from '../../src/shared/byte-collector.ts'
import { deploymentsOf, type Deployment, type Model } from '../../src/catalog/model.ts'
import type { ApiError } from '../../src/shared/errors.ts'
import {
  estimatedUsage,
  streamedUsage,
  maximumCharge,
  CHAT_TEMPLATE_TOKENS,
  clampToHeld,
  clampUsage,
  heldUsage,
  inputBounds,
} from '../../src/inference/metering/usage-bounds.ts'
import type { AnswerHead, Job, Price } from '../../src/engines/job.ts'
import type { JsonBody } from '../../src/shared/json/json-body.ts'
import { noUsage, rate, type Usage } from '../../src/billing/rating/rating.ts'
import { likelyOutputTokens } from '../../src/shared/tokens/token-estimate.ts'
import { audioJob } from '../../src/inference/audio/job.ts'
import { anyCharacter } from '../support/any-character.ts'
import { dataUrl, png } from '../support/image-samples.ts'
import { runLength } from '../support/long-run.ts'
import { madeJob, parsedBody } from '../support/made-job.ts'

fc.configureGlobal({ seed: 1 })

const CONTEXT = 4000
const head: AnswerHead = { id: 'r', created: 1, model: 'meta/a' }

/** A request that the service accepted, and how its engine answers with counts of its own choice. */
interface Case {
  readonly job: Job
  /** The texts that the model reads, each with a context of its own. */
  readonly read: readonly string[]
  /** The usage that the service takes from the engine's answer. */
  reported(input: number, output: number): Promise<Usage | undefined>
}

function modelOf(categories: readonly string[], kind: string, more: object = {}): [Model, Deployment] {
  const entry = {
    id: 'meta/a',
    categories,
    context_length: CONTEXT,
    supported_parameters: ['n', 'best_of', 'suffix'],
    serverless: { engine: { kind, urls: ['http://127.0.0.1:1'] }, limits: {} },
    ...more,
  }
  const [model] = parseCatalog(JSON.stringify({ models: [entry] }), 'catalog.yaml', () => undefined)
  return [model!, deploymentsOf(model!)[0]!]
}

function bodyOf(value: object): JsonBody {
  return parsedBody(JSON.stringify({ model: 'meta/a', ...value }))
}

async function readAnswer({ answer }: Job, ...answers: readonly object[]): Promise<Usage | undefined> {
  assert.ok(answer.kind === 'whole')
  const bodies = answers.map((it) => {
    const body = byteCollector(1_000_000)
    body.push(Buffer.from(JSON.stringify(it)))
    return body
  })
  const read = await answer.read(
    bodies,
    head,
    bodies.map(() => ({})),
  )
  assert.ok(read, 'the answer is usable')
  return read.usage
}

const text = fc.oneof(
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }),
  fc.string({ unit: anyCharacter, minLength: 1, maxLength: 60 }),
  fc.nat(3000).map((length) => 'w'.repeat(length + 1)),
)
const texts = fc.array(text, { minLength: 1, maxLength: 8 })
const tokens = fc.oneof(fc.nat(200), fc.nat(100_000_000))
const several = fc.integer({ min: 1, max: 4 })

const chat = fc
  .record({ texts, n: several, maxTokens: several, stream: fc.boolean() })
  .map(({ texts: contents, n, maxTokens, stream }) => async (): Promise<Case> => {
    const messages = contents.map((content) => ({ role: 'user', content }))
    const body = bodyOf({ messages, n, max_tokens: maxTokens, stream })
    const job = await madeJob('/chat/completions', body, ...modelOf(['llm'], 'vllm'))
    const choices = Array.from({ length: n }, (_, index) => ({ index, finish_reason: 'stop' }))
    const reported = async (input: number, output: number): Promise<Usage | undefined> => {
      const usage = { prompt_tokens: input, completion_tokens: output }
      const whole = choices.map((choice) => ({ ...choice, message: { content: 'x' } }))
      if (job.answer.kind === 'whole') return readAnswer(job, { choices: whole, usage })
      const relay = job.answer.relay(head)
      const delta = (index: number): object => ({ choices: [{ index, delta: { content: 'x' } }] })
      for (const event of [{ choices, usage }, delta(0), delta(0), delta(0)]) {
        relay.push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
      }
      return streamedUsage(job, relay, 1).usage
    }
    return { job, read: [contents.join('')], reported }
  })

const completions = fc
  .record({ prompts: texts, n: several, more: fc.nat(2), maxTokens: several })
  .map(({ prompts, n, more, maxTokens }) => async (): Promise<Case> => {
    const body = bodyOf({ prompt: prompts, n, best_of: n + more, max_tokens: maxTokens })
    const job = await madeJob('/completions', body, ...modelOf(['llm'], 'openai'))
    const choices = Array.from({ length: prompts.length * n }, (_, index) => ({
      index,
      text: 'x',
      finish_reason: 'stop',
    }))
    return {
      job,
      read: prompts,
      reported: (input, output) =>
        readAnswer(job, { choices, usage: { prompt_tokens: input, completion_tokens: output } }),
    }
  })

const embeddings = texts.map((input) => async (): Promise<Case> => {
  const job = await madeJob('/embeddings', bodyOf({ input }), ...modelOf(['embedding'], 'openai'))
  const data = input.map((_, index) => ({ index, embedding: [0.5] }))
  return { job, read: input, reported: (count) => readAnswer(job, { data, usage: { prompt_tokens: count } }) }
})

const ranking = fc
  .record({ query: text, documents: texts, nvidia: fc.boolean() })
  .map((asked) => async (): Promise<Case> => {
    const { query, documents, nvidia } = asked
    const passages = documents.map((it) => ({ text: it }))
    const schema = { rerank_schema: nvidia ? 'passages' : 'documents' }
    const where = modelOf(['reranker'], 'nim', schema)
    const job = await (nvidia
      ? madeJob('/reranking', bodyOf({ query: { text: query }, passages, truncate: 'END' }), ...where)
      : madeJob('/rerank', bodyOf({ query, documents }), ...where))
    const rankings = documents.map((_, index) => ({ index, logit: 0.5 }))
    return {
      job,
      read: documents.map((it) => query + it),
      reported: (count) => readAnswer(job, { rankings, usage: { prompt_tokens: count } }),
    }
  })

const images = fc.record({ prompt: text, n: several, made: fc.nat(20) }).map((asked) => async (): Promise<Case> => {
  const { prompt, n, made } = asked
  const job = await madeJob('/images/generations', bodyOf({ prompt, n }), ...modelOf(['image'], 'openai'))
  const data = Array.from({ length: made + 1 }, () => ({ b64_json: 'AAAA' }))
  return { job, read: [prompt], reported: () => readAnswer(job, { data }) }
})

const speech = fc.nat(100_000_000).map((durationMs) => async (): Promise<Case> => {
  const file = { length: 1, read: async () => Buffer.alloc(1), open: () => [] } as never
  const form = { fields: new Map([['model', ['meta/a']]]), file }
  const measured = { durationMs, extension: 'wav', contentType: 'audio/wav', isClaimed: false }
  const limits = { token_budget: 100_000_000, max_concurrent_requests: 1 }
  const serverless = { engine: { kind: 'openai', urls: ['http://127.0.0.1:1'] }, limits }
  const where = modelOf(['audio'], 'openai', { serverless })
  const job = await audioJob('/audio/transcriptions', 'transcribe', form, ...where, async () => measured)
  return { job, read: [], reported: () => readAnswer(job, { text: 'x', duration: durationMs / 1000 }) }
})

/** Leaves out what the service refuses: texts that do not fit into the context. */
async function accepted(make: () => Promise<Case>): Promise<Case> {
  const made = await make().catch((error: ApiError) => assert.equal(error.code, 'context_length_exceeded'))
  fc.pre(made !== undefined)
  return made
}

const anyCase: fc.Arbitrary<() => Promise<Case>> = fc.oneof(chat, completions, embeddings, ranking, images, speech)

const perToken = fc.bigInt({ min: 0n, max: 10n ** 10n })
const anyPrice: fc.Arbitrary<Price> = fc
  .record(
    {
      inputPerToken: perToken,
      outputPerToken: perToken,
      cachedInputPerToken: fc.option(perToken),
      perImage: fc.option(perToken),
      perAudioMinute: fc.option(perToken),
    },
    { noNullPrototype: true },
  )
  .map((rates) => ({ version: 1, rates }))

describe('the amount that a spend limit reserves for a request', () => {
  it('is never less than what is billed without another reservation, whatever the request, the prices and the counts of the engine', async () => {
    await fc.assert(
      fc.asyncProperty(anyCase, anyPrice, tokens, tokens, tokens, async (made, price, input, output, cached) => {
        const { job, reported } = await accepted(made)
        const most = maximumCharge(job, price)
        const fromEngine = (await reported(input, output)) ?? estimatedUsage(job, likelyOutputTokens(output))
        for (const usage of [fromEngine, { ...fromEngine, cachedInputTokens: cached }]) {
          assert.ok(rate(clampToHeld(usage, job), price.rates) <= most)
          assert.ok(clampUsage(usage, job).inputTokens <= job.maxInputTokens)
        }
      }),
      { numRuns: runLength(300, 3000) },
    )
  })

  it('leaves room for a tokenizer that turns every byte into a token, in every context', async () => {
    await fc.assert(
      fc.asyncProperty(anyCase, async (made) => {
        const { job, read } = await accepted(made)
        const honest = read.reduce((sum, it) => sum + Math.min(CONTEXT, Buffer.byteLength(it) + SPECIAL_TOKENS), 0)
        assert.ok(heldUsage(job).inputTokens >= honest, `${heldUsage(job).inputTokens} < ${honest}`)
        assert.ok(heldUsage(job).inputTokens >= job.likelyInputTokens)
        assert.ok(job.maxInputTokens >= job.heldInputTokens)
        assert.equal(job.maxInputTokens, CONTEXT * read.length)
      }),
      { numRuns: runLength(300, 3000) },
    )
  })

  it('keeps the counts of an engine that reports plausible figures', () => {
    const job = { maxInputTokens: 100, heldInputTokens: 90, maxTokens: 10, media: { images: 2, audioMs: 3 } } as Job
    const possible: Usage = { inputTokens: 100, cachedInputTokens: 60, outputTokens: 10, images: 2, audioMs: 3 }
    assert.deepEqual(clampUsage(possible, job), possible)
    assert.deepEqual(clampUsage(noUsage, job), noUsage)
    const impossible = { inputTokens: 101, cachedInputTokens: 200, outputTokens: 11, images: 3, audioMs: 4 }
    assert.deepEqual(clampUsage(impossible, job), { ...possible, cachedInputTokens: 100 })
    assert.deepEqual(clampToHeld(impossible, job), { ...possible, inputTokens: 90, cachedInputTokens: 90 })
  })

  it('is a context for each text that is read, and no more than its bytes and a chat template', () => {
    const held = (...given: Parameters<typeof inputBounds>): number => inputBounds(...given).heldInputTokens
    assert.equal(held({ bytes: 1_000_000, contexts: 36 }, 1000), 36_000)
    assert.equal(held({ bytes: 100, contexts: 2 }, 1000), 612)
    assert.equal(held({ bytes: 100, contexts: 1, addedTokens: CHAT_TEMPLATE_TOKENS }, 100_000), 8100)
    assert.equal(held({ bytes: 100, contexts: 2 }, 100), 200)
    assert.equal(inputBounds({ bytes: 100, contexts: 2 }, 1000).maxInputTokens, 2000)
  })

  it('is a whole context for a chat with an image, which has few bytes and many pixels', async () => {
    const content = [{ type: 'image_url', image_url: { url: dataUrl('png', png()) } }]
    const body = bodyOf({ messages: [{ role: 'user', content }], max_tokens: 1 })
    const job = await madeJob('/chat/completions', body, ...modelOf(['llm', 'vision'], 'vllm'))
    assert.deepEqual([job.maxInputTokens, job.heldInputTokens], [CONTEXT, CONTEXT])
  })
})

/** The start and the end of a text, and what separates a query from a document. */
const SPECIAL_TOKENS = 4
