import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import OpenAI from 'openai'
import { maximumCharge } from '../../src/core/money/maximum-charge.ts'
import { openSpending } from '../../src/billing/spending.ts'
import type { Job } from '../../src/core/job.ts'
import { sydneyMonth } from '../../src/core/money/sydney-time.ts'
import type { Workspace } from '../../src/ports/accounts.ts'
import type { UsageStore } from '../../src/ports/usage.ts'
import { chatStage, refusalOf } from '../support/chat-stage.ts'
import { cli } from '../support/cli.ts'
import { gate } from '../support/waiting.ts'

/** A cent a token, so that a request comes to whole cents. */
const dear = { input_per_million: '0', output_per_million: '10000' }
const PER_TOKEN = 10_000_000_000n

describe('a hard spend limit', () => {
  it('refuses what could go beyond it, with an error that SDKs do not retry', async (t) => {
    const { weir, engine } = await chatStage(t, { model: { pricing: dear } })
    engine.script = { tokens: ['a', 'b'] }
    const set = await weir.admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: '0.05' })
    assert.equal(((await set.json()) as { spend_limit: string }).spend_limit, '0.05')
    assert.equal((await weir.chat({ max_tokens: 2 })).status, 200)
    const { status, code, type, retryAfter, message } = await refusalOf(await weir.chat({ max_tokens: 4 }))
    assert.deepEqual([status, code, type, retryAfter], [402, 'spend_limit_exceeded', 'billing_error', null])
    assert.match(message, /A\$0\.05 .*A\$0\.02 are spent.*A\$0\.04/)
    const answer = await weir.chat({ max_tokens: 3 })
    assert.equal(answer.status, 200, 'what fits is served')
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
    const asked = client.chat.completions.create({
      model: 'meta/test-8b',
      max_tokens: 2,
      messages: [{ role: 'user', content: 'Hi' }],
    })
    await assert.rejects(asked, (error: InstanceType<typeof OpenAI.APIError>) => error.status === 402)
    assert.deepEqual([attempts, engine.calls.length], [1, calls])
    assert.equal((await weir.ledger()).length, 2, 'what was refused leaves no row')
  })

  it('is not overdrawn by many at once: each holds what it may come to', async (t) => {
    const { opened, open } = gate()
    const { weir, engine } = await chatStage(t, {
      model: { pricing: dear },
      limits: { max_concurrent_requests: 50, max_queue_depth: 100 },
      script: { tokens: ['a', 'b', 'c', 'd'], hold: { afterTokens: 0, until: opened } },
    })
    await weir.admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: '0.22' })
    // Each may come to four cents and does: five fit.
    const asked = Array.from({ length: 40 }, () => weir.chat({ max_tokens: 4 }))
    await engine.arrived(5)
    open()
    const statuses = (await Promise.all(asked)).map(({ status }) => status)
    assert.deepEqual([statuses.filter((it) => it === 200).length, statuses.filter((it) => it === 402).length], [5, 35])
    const rows = await weir.ledger()
    assert.equal(
      rows.reduce((sum, { amount }) => sum + amount, 0n),
      20n * PER_TOKEN,
    )
    // What was held and not needed is free again: two cents are left.
    engine.script = { tokens: ['a', 'b'] }
    assert.equal((await weir.chat({ max_tokens: 2 })).status, 200)
    assert.equal((await weir.chat({ max_tokens: 1 })).status, 402)
  })
})

describe('a soft spend limit', () => {
  it('is told of in a header, in the figures and in the log, and refuses nothing', async (t) => {
    const { weir } = await chatStage(t, { model: { pricing: dear } })
    const where = ['--config', weir.configFile, '--data', weir.dataDir, '--json']
    const set = await cli(['workspaces', 'set', 'default', '--spend-limit', '0.03', '--soft', ...where])
    assert.equal(set.json()['spend_limit_kind'], 'soft')
    assert.equal(
      (await weir.chat({})).headers.get('x-spend-alert'),
      'soft limit reached',
      'from the request that reaches it',
    )
    const over = await weir.chat({})
    assert.deepEqual([over.status, over.headers.get('x-spend-alert')], [200, 'soft limit reached'])
    const metrics = await (await weir.admin('GET', '/metrics')).text()
    assert.match(metrics, /weir_spend_limits_reached_total\{workspace="default"\} 1/)
    const cleared = await cli(['workspaces', 'set', 'default', '--spend-limit', 'none', ...where])
    assert.equal(cleared.json()['spend_limit'], null)
    assert.equal((await weir.chat({})).headers.get('x-spend-limit'), null)
  })

  it('is refused where it is no amount', async (t) => {
    const { weir } = await chatStage(t)
    for (const limit of ['-1', 'much', '1e3', '10000000']) {
      const response = await weir.admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: limit })
      assert.equal((await refusalOf(response)).param, 'spend_limit', limit)
    }
    const buyer = await weir.admin('PATCH', '/admin/v1/workspaces/default', { buyer: { abn: '51 824 753 557' } })
    assert.equal((await refusalOf(buyer)).param, 'buyer.abn')
  })
})

describe('what has been spent', () => {
  const workspace = { id: 'ws', name: 'w', spendLimit: { amount: 100n, isSoft: false } } as Workspace

  it('is read from the ledger at the start, and begins anew with each month in Sydney', async () => {
    const { to } = sydneyMonth(Date.UTC(2026, 10, 15))
    let now = to - 1
    const store = { usageSums: async () => [{ group: 'ws', amount: 60n }] } as unknown as UsageStore
    const told: bigint[] = []
    const spending = await openSpending(
      store,
      { now: () => now, monotonic: () => 0 },
      { limitReached: (_it, spent) => told.push(spent) },
    )
    assert.throws(() => spending.hold(workspace, 41n), /spend limit/)
    const first = spending.hold(workspace, 40n)
    first.settle(40n)
    first.settle(40n)
    assert.deepEqual([spending.spent('ws'), told], [100n, [100n]])
    now = to
    assert.equal(spending.spent('ws'), 0n)
    spending.hold(workspace, 100n)
    assert.throws(() => spending.hold(workspace, 1n), /spend limit/)
  })

  it('never comes to more than was held: a token is a byte at least', () => {
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
    const job = {
      model: { contextLength: 100 },
      maxTokens: 10,
      media: { images: 2, audioMs: 3 },
      calls: [{ body: Buffer.alloc(40) }, { body: Buffer.alloc(2) }],
    } as unknown as Job
    assert.equal(maximumCharge(job, price), 42n * 5n + 30n + 14n + 3n)
    assert.equal(
      maximumCharge({ ...job, calls: [{ path: '', contentType: '', body: Buffer.alloc(1000) }] }, price),
      100n * 5n + 30n + 14n + 3n,
    )
  })
})
