import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import OpenAI from 'openai'
import { maximumCharge } from '../../src/inference/metering/usage-bounds.ts'
import { memorySpending } from '../../src/workspaces/spend-limits/memory.ts'
import type { Job } from '../../src/engines/job.ts'
import { sydneyMonth } from '../../src/shared/money/sydney-time.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import type { UsageStore } from '../../src/billing/usage/usage-store.ts'
import { refusalOf, stageConfig } from '../support/chat-stage.ts'
import { commandLine } from '../support/command-line.ts'
import { dataUrl, png } from '../support/image-samples.ts'
import { jsonStage, type JsonStage } from '../support/json-stage.ts'
import { sharedStage } from '../support/shared-stage.ts'
import { eventually, gate } from '../support/waiting.ts'

/** One cent per output token, so that every request costs whole cents. */
const expensive = { input_per_million: '0', output_per_million: '10000' }
const PER_TOKEN = 10_000_000_000n

describe('a hard spend limit', () => {
  it('refuses requests that could exceed it, with an error that SDKs do not retry', async (t) => {
    const { weir, engine } = await sharedStage(t, { model: { pricing: expensive } })
    engine.script = { tokens: ['a', 'b'] }
    const set = await weir.admin('PATCH', `/admin/v1/workspaces/${weir.workspace}`, { spend_limit: '0.05' })
    assert.equal(((await set.json()) as { spend_limit: string }).spend_limit, '0.05')
    assert.equal((await weir.chat({ max_tokens: 2 })).status, 200)
    const { status, code, type, retryAfter, message } = await refusalOf(await weir.chat({ max_tokens: 4 }))
    assert.deepEqual([status, code, type, retryAfter], [402, 'spend_limit_exceeded', 'billing_error', null])
    assert.match(message, /A\$0\.05 .*A\$0\.02 is spent.*A\$0\.04/)
    const answer = await weir.chat({ max_tokens: 3 })
    assert.equal(answer.status, 200, 'a request within the limit is served')
    assert.deepEqual([answer.headers.get('x-spend-limit'), answer.headers.get('x-spend-used')], ['0.05', '0.04'])

    const calls = engine.calls.length
    let attempts = 0
    const client = new OpenAI({
      baseURL: weir.base,
      apiKey: weir.key,
      maxRetries: 5,
      fetch: (...args) => {
        attempts++
        return fetch(...args)
      },
    })
    const completion = client.chat.completions.create({
      model: 'meta/test-8b',
      max_tokens: 2,
      messages: [{ role: 'user', content: 'Hi' }],
    })
    await assert.rejects(completion, (error: InstanceType<typeof OpenAI.APIError>) => error.status === 402)
    assert.deepEqual([attempts, engine.calls.length], [1, calls])
    assert.equal((await weir.ledger()).length, 2, 'refused requests leave no row')
  })

  it('[S1] accepts a small request for which the whole context would not fit, and is not exceeded if the engine counts more', async (t) => {
    const { weir } = await sharedStage(t, {
      // One cent per input token. The limit is less than a third of the context.
      model: { pricing: { input_per_million: '10000', output_per_million: '0' }, context_length: 100_000 },
      script: { promptTokens: 20_000 },
    })
    await weir.admin('PATCH', `/admin/v1/workspaces/${weir.workspace}`, { spend_limit: '300' })
    const statuses: number[] = []
    for (let request = 0; request < 3; request++) statuses.push((await weir.chat({ max_tokens: 5 })).status)
    assert.deepEqual(statuses, [200, 200, 402])
    const rows = (await weir.ledger()).toSorted((one, other) => other.inputTokens - one.inputTokens)
    assert.deepEqual(
      rows.map(({ inputTokens, estimated }) => [inputTokens === 20_000, estimated]),
      [
        [true, false],
        [false, true],
      ],
    )
    // What was held for the second one: a token for each byte, and a chat template.
    assert.ok(rows[1] && rows[1].inputTokens > 8000 && rows[1].inputTokens < 8300, `${rows[1]?.inputTokens}`)
    assert.ok(rows.reduce((sum, { amount }) => sum + amount, 0n) <= 300n * 10n ** 12n)
  })

  it('[S1] is not exceeded by concurrent requests, because each reserves its maximum cost', async (t) => {
    const { opened, open } = gate()
    const { weir, engine } = await sharedStage(t, {
      model: { pricing: expensive },
      limits: { max_concurrent_requests: 50, max_queue_depth: 100 },
      script: { tokens: ['a', 'b', 'c', 'd'], hold: { afterTokens: 0, until: opened } },
    })
    await weir.admin('PATCH', `/admin/v1/workspaces/${weir.workspace}`, { spend_limit: '0.22' })
    // Each may cost four cents, and does, so only five fit.
    const requests = Array.from({ length: 40 }, () => weir.chat({ max_tokens: 4 }))
    await engine.arrived(5)
    open()
    const statuses = (await Promise.all(requests)).map(({ status }) => status)
    assert.deepEqual([statuses.filter((it) => it === 200).length, statuses.filter((it) => it === 402).length], [5, 35])
    const rows = await weir.ledger()
    assert.equal(
      rows.reduce((sum, { amount }) => sum + amount, 0n),
      20n * PER_TOKEN,
    )
    // Reservations that were not used are free again: two cents are left.
    engine.script = { tokens: ['a', 'b'] }
    assert.equal((await weir.chat({ max_tokens: 2 })).status, 200)
    assert.equal((await weir.chat({ max_tokens: 1 })).status, 402)
  })
})

describe('a hard spend limit reserves the maximum cost of one request', () => {
  /** One cent per input token. The engine counts a token for each byte that the model reads. */
  const byInput = { input_per_million: '10000', output_per_million: '0' }
  const bytesOf = (text: string): number => Buffer.byteLength(text)
  /** A text that may well have a token for each of its bytes. */
  const symbols = (count: number): string => '☃'.repeat(count)
  const roomy = { token_budget: 10_000_000 }

  /** The engine's answer is billed in full when it is within the limit, and never called when it might not be. */
  async function requireHeld(stage: JsonStage, path: string, body: object, costCents: number): Promise<void> {
    const { weir, engine, post } = stage
    const limit = async (cents: number): Promise<void> => {
      await weir.admin('PATCH', `/admin/v1/workspaces/${weir.workspace}`, { spend_limit: (cents / 100).toFixed(2) })
    }
    await limit(costCents - 1)
    assert.equal((await refusalOf(await post(path, body))).code, 'spend_limit_exceeded')
    assert.equal(engine.calls.length, 0)
    await limit(100 * costCents)
    assert.equal((await post(path, body)).status, 200)
    const [row] = await weir.ledger()
    assert.equal(row?.amount, BigInt(costCents) * PER_TOKEN)
  }

  const reranker = {
    categories: ['reranker'],
    max_completion_tokens: undefined,
    default_max_tokens: undefined,
    supported_parameters: [],
    pricing: byInput,
  }

  it('for a query that is read with every document', async (t) => {
    const stage = await jsonStage(t, { limits: roomy, model: { ...reranker, rerank_schema: 'documents' } })
    const query = symbols(333)
    const documents = Array.from({ length: 20 }, (_, index) => `document ${index}`)
    const read = documents.reduce((sum, text) => sum + bytesOf(query) + bytesOf(text), 0)
    stage.answer(() => ({
      results: documents.map((_, index) => ({ index, relevance_score: 0.5 })),
      usage: { prompt_tokens: read },
    }))
    await requireHeld(stage, '/rerank', { query, documents }, read)
  })

  it('for a query that is read with every passage', async (t) => {
    const model = { ...reranker, rerank_schema: 'passages' }
    const stage = await jsonStage(t, { limits: roomy, engine: { kind: 'nim' }, model })
    const query = { text: symbols(333) }
    const passages = Array.from({ length: 20 }, (_, index) => ({ text: `passage ${index}` }))
    const read = passages.reduce((sum, { text }) => sum + bytesOf(query.text) + bytesOf(text), 0)
    stage.answer(() => ({
      rankings: passages.map((_, index) => ({ index, logit: 0.5 })),
      usage: { prompt_tokens: read },
    }))
    await requireHeld(stage, '/reranking', { query, passages }, read)
  })

  it('for several prompts, each of which may fill the context', async (t) => {
    const context_length = 1000
    const stage = await jsonStage(t, {
      limits: roomy,
      model: { context_length, max_completion_tokens: 500, pricing: byInput },
    })
    const prompt = Array.from({ length: 36 }, () => symbols(300))
    const read = prompt.reduce((sum, text) => sum + bytesOf(text), 0)
    stage.answer(() => ({
      object: 'text_completion',
      choices: prompt.map((_, index) => ({ index, text: '.', logprobs: null, finish_reason: 'stop' })),
      usage: { prompt_tokens: read, completion_tokens: 36 },
    }))
    await requireHeld(stage, '/completions', { prompt, max_tokens: 10 }, read)
  })

  it('for many texts to embed', async (t) => {
    const model = { categories: ['embedding'], max_completion_tokens: undefined, default_max_tokens: undefined }
    const stage = await jsonStage(t, {
      limits: roomy,
      model: { ...model, supported_parameters: [], pricing: byInput },
    })
    const input = Array.from({ length: 50 }, (_, index) => `text ${index} `.repeat(40))
    const read = input.reduce((sum, text) => sum + bytesOf(text), 0)
    stage.answer(() => ({
      data: input.map((_, index) => ({ object: 'embedding', index, embedding: [0.5] })),
      usage: { prompt_tokens: read },
    }))
    await requireHeld(stage, '/embeddings', { input }, read)
  })

  it('for an image, which may fill the context however few bytes it has', async (t) => {
    const context_length = 20_000
    const stage = await jsonStage(t, {
      limits: roomy,
      model: { categories: ['llm', 'vision'], context_length, pricing: byInput },
    })
    stage.engine.script = { promptTokens: 16_384 }
    const image = { type: 'image_url', image_url: { url: dataUrl('png', png({ width: 4000, height: 4000 })) } }
    const messages = [{ role: 'user', content: [image] }]
    await requireHeld(stage, '/chat/completions', { messages, max_tokens: 10 }, 16_384)
  })
})

describe('a price that rises while a request waits in the queue', () => {
  it('is reserved before the request is served, and refuses it if there is no room', async (t) => {
    const { opened, open } = gate()
    const pricing = { input_per_million: '0', output_per_million: '1000' }
    const { weir, engine } = await sharedStage(t, {
      model: { pricing },
      limits: { max_concurrent_requests: 1 },
      script: { tokens: ['a'], hold: { afterTokens: 0, until: opened } },
    })
    // A tenth of a cent for each token now, and a cent later.
    await weir.admin('PATCH', `/admin/v1/workspaces/${weir.workspace}`, { spend_limit: '0.05' })
    const first = weir.chat({ max_tokens: 1 })
    await engine.arrived(1)
    const waiting = [weir.chat({ max_tokens: 10 }), weir.chat({ max_tokens: 2 })]
    await eventually('two wait', async () => {
      const { data } = (await (await weir.call('/queue/status')).json()) as { data: { queue_depth: number }[] }
      return data[0]?.queue_depth === 2
    })
    weir.writeConfig(
      stageConfig([engine.url], { model: { pricing: expensive }, limits: { max_concurrent_requests: 1 } }),
    )
    assert.equal((await weir.reload()).status, 200)
    open()
    const [dear, cheap] = await Promise.all(waiting)
    assert.equal((await first).status, 200)
    const { status, code, message } = await refusalOf(dear!)
    assert.deepEqual([status, code], [402, 'spend_limit_exceeded'])
    assert.match(message, /this request may cost up to A\$0\.10/)
    assert.equal(cheap?.status, 200)
    assert.deepEqual(
      (await weir.ledger()).map(({ amount }) => amount),
      [PER_TOKEN / 10n, PER_TOKEN],
    )
  })
})

describe('a soft spend limit', () => {
  it('is reported in a header and in the metrics, and refuses nothing', async (t) => {
    const { weir } = await sharedStage(t, { model: { pricing: expensive } })
    const options = ['--config', weir.configFile, '--data', weir.dataDir, '--json']
    const set = await commandLine(['workspaces', 'set', weir.workspace, '--spend-limit', '0.03', '--soft', ...options])
    assert.equal(set.json()['spend_limit_kind'], 'soft')
    assert.equal(
      (await weir.chat({})).headers.get('x-spend-alert'),
      'soft limit reached',
      'starting with the request that reaches it',
    )
    const over = await weir.chat({})
    assert.deepEqual([over.status, over.headers.get('x-spend-alert')], [200, 'soft limit reached'])
    const metrics = await (await weir.admin('GET', '/metrics')).text()
    assert.match(metrics, new RegExp(`weir_spend_limits_reached_total\\{workspace="${weir.workspace}"\\} 1`))
    const cleared = await commandLine(['workspaces', 'set', weir.workspace, '--spend-limit', 'none', ...options])
    assert.equal(cleared.json()['spend_limit'], null)
    assert.equal((await weir.chat({})).headers.get('x-spend-limit'), null)
  })

  it('is rejected if it is not an amount from 0 to A$1,000,000', async (t) => {
    const { weir } = await sharedStage(t)
    for (const limit of ['-1', 'much', '1e3', '10000000']) {
      const response = await weir.admin('PATCH', `/admin/v1/workspaces/${weir.workspace}`, { spend_limit: limit })
      assert.equal((await refusalOf(response)).param, 'spend_limit', limit)
    }
    const buyer = await weir.admin('PATCH', `/admin/v1/workspaces/${weir.workspace}`, {
      buyer: { abn: '51 824 753 557' },
    })
    assert.equal((await refusalOf(buyer)).param, 'buyer.abn')
  })
})

describe('the amount spent', () => {
  const workspace = { id: 'ws', name: 'w', spendLimit: { amount: 100n, isSoft: false } } as Workspace

  it('is read from the ledger at the start, and resets with each month in Sydney', async () => {
    const { to } = sydneyMonth(Date.UTC(2026, 10, 15))
    let now = to - 1
    const usageSums = async ({ from }: { from: number }) => (from < to ? [{ group: 'ws', amount: 60n }] : [])
    const store = { usageSums } as unknown as UsageStore
    const reached: bigint[] = []
    const spending = await memorySpending(
      store,
      { now: () => now, monotonic: () => 0 },
      { limitReached: (_it, spent) => reached.push(spent) },
    )
    await assert.rejects(spending.hold(workspace, 41n), /spend limit/)
    const first = await spending.hold(workspace, 40n)
    await assert.rejects(first.raise(41n), /spend limit/)
    await first.raise(30n)
    first.settle(40n)
    first.settle(40n)
    await first.raise(1000n)
    assert.deepEqual([await spending.spent('ws'), reached], [100n, [100n]])
    now = to
    assert.equal(await spending.spent('ws'), 0n)
    const second = await spending.hold(workspace, 100n)
    await assert.rejects(spending.hold(workspace, 1n), /spend limit/)
    second.settle(100n)
    assert.deepEqual(reached, [100n, 100n], 'the limit is reported once in each month')
  })

  it('never exceeds what was reserved: the most of everything, and cached input at its rate if that is higher', () => {
    const price = {
      version: 1,
      rates: {
        inputPerToken: 2n,
        outputPerToken: 3n,
        cachedInputPerToken: 5n,
        perImage: 7n,
        perAudioMinute: 60_000n,
      },
    }
    const job = { heldInputTokens: 42, maxTokens: 10, media: { images: 2, audioMs: 3 } } as Job
    assert.equal(maximumCharge(job, price), 42n * 5n + 30n + 14n + 3n)
  })
})
