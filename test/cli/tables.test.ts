import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { modelsText } from '../../src/catalog/commands/models.ts'
import { ownPricesText } from '../../src/billing/prices/commands/prices.ts'
import { usageTable } from '../../src/billing/usage/commands/usage.ts'
import { workspaceText } from '../../src/workspaces/commands/workspaces.ts'
import { plainView } from '../support/terminal.ts'
import { sampleRow } from '../support/ledger-samples.ts'

/** What a person sees on a terminal of 80 columns. */
const narrow = plainView(80)

function assertShows(shown: string, expected: string): void {
  assert.equal(shown, expected)
  for (const line of shown.split('\n')) assert.ok(line.length <= 80, `too wide: ${line}`)
}

describe('on a terminal of 80 columns', () => {
  it('weir models list shows kinds, states and prices, each in its own unit', () => {
    const model = {
      name: '',
      aliases: [],
      modes: [],
      endpoints: [],
      context_length: 1,
      engine: null,
      received_bytes: null,
      problem: null,
    }
    const local = { ...model, state: 'ready', size_mb: 24, received_bytes: 24_000_000 } as const
    const tokens = { input_per_million: '0.20', output_per_million: '0.60', cached_input_per_million: '0.05' }
    const none = { input_per_million: '0.00', output_per_million: '0.00' }
    const data = [
      {
        ...model,
        id: 'meta/llama-3.1-8b-instruct',
        categories: ['llm'],
        state: 'remote',
        size_mb: null,
        pricing: tokens,
      },
      { ...local, id: 'qwen/qwen3-8b', categories: ['llm'], state: 'not downloaded', size_mb: 5030, pricing: tokens },
      {
        ...local,
        id: 'thenlper/gte-small',
        categories: ['embedding'],
        pricing: { ...none, input_per_million: '0.03' },
      },
      { ...local, id: 'weir/starter-image', categories: ['image'], pricing: { ...none, per_image: '0.001' } },
      { ...local, id: 'openai/whisper-tiny', categories: ['audio'], pricing: { ...none, per_audio_minute: '0.006' } },
      { ...local, id: 'qwen/qwen3-4b', categories: ['llm'], state: 'paused', size_mb: 2400, pricing: tokens },
      { ...local, id: 'a/b', categories: ['llm'], state: 'failed', problem: 'no route', pricing: tokens },
      { ...model, id: 'meta/free', categories: ['llm'], state: 'no engine', size_mb: null, pricing: none },
    ] as const
    assertShows(
      modelsText(data, narrow),
      `MODEL                       KIND       STATE             SIZE  A$ PER 1M
meta/llama-3.1-8b-instruct  llm        remote               -  0.20 / 0.60
qwen/qwen3-8b               llm        not downloaded  5.0 GB  0.20 / 0.60
thenlper/gte-small          embedding  ready            24 MB  0.03
weir/starter-image          image      ready            24 MB  0.001/image
openai/whisper-tiny         audio      ready            24 MB  0.006/min
qwen/qwen3-4b               llm        paused, 1%      2.4 GB  0.20 / 0.60
a/b                         llm        failed           24 MB  0.20 / 0.60
meta/free                   llm        no engine            -  free

Prices exclude GST: input / output per 1M tokens, or the unit that is named.
a/b could not be downloaded: no route
Download a model with: weir models pull qwen/qwen3-8b`,
    )
  })

  it('weir usage shows amounts in A$, times in Sydney, and the request ids that weir usage correct needs', () => {
    const settledAt = Date.UTC(2026, 10, 15, 22, 3, 12)
    const none = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, images: 0, audioMs: 0, estimated: false }
    const row = (id: string, model: string, usage: object) => ({
      ...sampleRow(id.padEnd(32, '0')),
      ...none,
      model,
      settledAt,
      outcome: 'completed' as const,
      ...usage,
    })
    const chat = { inputTokens: 12_500, cachedInputTokens: 500, outputTokens: 128, amount: 2_501_800_000n }
    const rows = [
      row('a', 'meta/llama-3.1-405b-instruct-fp8', chat),
      row('b', 'sd/images', { images: 2, amount: 80_000_000_000n }),
      row('c', 'openai/whisper', {
        audioMs: 63_200,
        amount: 0n,
        outcome: 'caller_left',
        httpStatus: 499,
        estimated: true,
      }),
      row('d', 'meta/llama', {
        amount: 0n,
        outcome: 'engine_failed',
        httpStatus: 400,
        errorCode: 'context_length_exceeded',
      }),
      row('e', 'meta/llama', { amount: 0n, outcome: 'interrupted', httpStatus: null }),
    ]
    assertShows(
      usageTable(rows, narrow),
      `TIME (SYDNEY)        MODEL          USAGE                                   COST
2026-11-16 09:03:12  meta/llama-3…  12,500 (500 cached) in, 128 out  A$0.0025018
  a0000000000000000000000000000000
2026-11-16 09:03:12  sd/images      2 images                         A$0.0800000
  b0000000000000000000000000000000
2026-11-16 09:03:12  openai/whisp…  63.2 s                           A$0.0000000
  c0000000000000000000000000000000  caller_left (499), estimated
2026-11-16 09:03:12  meta/llama     nothing                          A$0.0000000
  d0000000000000000000000000000000  engine_failed (400 context_length_exceeded)
2026-11-16 09:03:12  meta/llama     nothing                          A$0.0000000
  e0000000000000000000000000000000  interrupted

5 rows, A$0.0825018 excluding GST`,
    )
  })

  it('weir prices list has a line for each price', () => {
    const chat = { input_per_million: '0.15', output_per_million: '0.30', cached_input_per_million: '0.05' }
    const images = { per_image: '0.04', image_prices: [{ size: '1024x1792', quality: 'hd', per_image: '0.12' }] }
    assertShows(
      ownPricesText(
        [
          { model: 'meta/llama-3.1-8b-instruct', pricing: chat },
          { model: 'sd/images', pricing: images },
        ],
        narrow,
      ),
      `MODEL                       PRICES (EXCLUDING GST)
meta/llama-3.1-8b-instruct  A$0.15 in, A$0.05 cached, A$0.30 out per 1M
sd/images                   A$0.04 per image
                            A$0.12 per 1024x1792 hd image`,
    )
    assertShows(ownPricesText([], narrow), 'No prices of its own: the list prices apply.')
  })

  it('weir workspaces show has limits, the buyer and the time of creation', () => {
    const workspace = {
      id: 'ws_e5d8976e16644490a7343f0c',
      name: 'acme',
      requests_per_minute: 1200,
      tokens_per_minute: null,
      spend_limit: '500.00',
      spend_limit_kind: 'hard' as const,
      buyer: { name: 'Acme Pty Ltd', abn: '51824753556', address: null, purchase_order: 'PO-4711', email: null },
      created: '2026-11-15T22:03:12.345Z',
    }
    assertShows(
      workspaceText(workspace, narrow),
      `name         acme
id           ws_e5d8976e16644490a7343f0c
rate limit   1,200 requests per minute
spend limit  A$500.00 a month, hard
buyer        Acme Pty Ltd
ABN          51 824 753 556
order        PO-4711
created      2026-11-16 09:03 (Sydney)`,
    )
  })
})
