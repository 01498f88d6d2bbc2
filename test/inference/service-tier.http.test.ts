import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { byteCollector } from '../../src/shared/byte-collector.ts'
import { chatAnswer, chatStream } from '../../src/inference/chat/answer.ts'
import type { GenerationOptions } from '../../src/inference/generation/generation-options.ts'
import { response } from '../../src/inference/responses/answer.ts'
import { noUsage } from '../../src/billing/rating/rating.ts'
import { refusalOf, type ChatStage } from '../support/chat-stage.ts'
import { sharedStage } from '../support/shared-stage.ts'
import { gate } from '../support/waiting.ts'

const messages = [{ role: 'user', content: 'Hi' }]
const model = 'meta/test-8b'
const bodies: Readonly<Record<string, object>> = {
  '/chat/completions': { model, messages },
  '/completions': { model, prompt: 'Hi' },
  '/responses': { model, input: 'Hi' },
  '/messages': { model, messages, max_tokens: 5 },
}

const ask = ({ weir }: ChatStage, path: string, body: object): Promise<Response> =>
  weir.call(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

describe('service_tier', () => {
  it('auto and default are the same as none, on each endpoint', async (t) => {
    const stage = await sharedStage(t)
    for (const [path, body] of Object.entries(bodies)) {
      const usual = path === '/messages' ? 'standard_only' : 'default'
      for (const tier of [undefined, null, 'auto', usual]) {
        const answer = await ask(stage, path, { ...body, service_tier: tier })
        const { service_tier: named, usage } = (await answer.json()) as {
          service_tier?: string
          usage: { service_tier?: string }
        }
        assert.deepEqual([answer.status, named], [200, path === '/responses' ? 'default' : undefined])
        assert.equal(usage.service_tier, path === '/messages' ? 'standard' : undefined)
      }
    }
    assert.ok((await stage.weir.ledger()).every(({ tier }) => tier === 'default'))
  })

  it('[E1] any other value is refused with the list of those that are allowed', async (t) => {
    const stage = await sharedStage(t)
    for (const [path, body] of Object.entries(bodies)) {
      for (const tier of ['priority', 'batch', '', 5]) {
        const { status, param, message } = await refusalOf(await ask(stage, path, { ...body, service_tier: tier }))
        assert.deepEqual([status, path === '/messages' ? 'service_tier' : param], [400, 'service_tier'])
        assert.match(message, path === '/messages' ? /auto.*standard_only/ : /auto.*default.*flex/)
      }
    }
    assert.equal((await stage.weir.ledger()).length, 0)
  })

  it('[E1] flex is refused for a model that sells no idle capacity', async (t) => {
    const stage = await sharedStage(t)
    for (const path of ['/chat/completions', '/completions', '/responses']) {
      const refusal = await refusalOf(await ask(stage, path, { ...bodies[path], service_tier: 'flex' }))
      assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'unsupported_value', 'service_tier'])
      assert.match(refusal.message, /meta\/test-8b sells no idle capacity/)
    }
  })

  it('flex has the batch price, and both the answer and the row name it', async (t) => {
    const pricing = { input_per_million: '0.20', output_per_million: '0.40', batch: '0.5' }
    const stage = await sharedStage(t, { model: { pricing } })
    for (const stream of [false, true]) {
      const answer = await ask(stage, '/chat/completions', {
        ...bodies['/chat/completions'],
        stream,
        service_tier: 'flex',
      })
      const text = await answer.text()
      assert.deepEqual([answer.status, text.includes('"service_tier":"flex"')], [200, true], text)
    }
    const whole = (await (
      await ask(stage, '/responses', { ...bodies['/responses'], service_tier: 'flex' })
    ).json()) as { service_tier: string }
    assert.equal(whole.service_tier, 'flex')
    const streamed = await ask(stage, '/responses', { ...bodies['/responses'], stream: true, service_tier: 'flex' })
    const tiers = [...(await streamed.text()).matchAll(/"service_tier":"(\w+)"/g)].map(([, tier]) => tier)
    assert.deepEqual(new Set(tiers), new Set(['flex']))
    const rows = await stage.weir.ledger()
    assert.equal(rows.length, 4)
    for (const { tier, inputTokens, outputTokens, amount } of rows) {
      assert.deepEqual([tier, amount], ['flex', BigInt(inputTokens) * 100_000n + BigInt(outputTokens) * 200_000n])
    }
    assert.ok(stage.engine.calls.every(({ body }) => !('service_tier' in body)))
    const listed = (await (await stage.weir.call('/models')).json()) as {
      data: { id: string; pricing: { batch: unknown } }[]
    }
    assert.deepEqual(listed.data.find(({ id }) => id === model)?.pricing.batch, {
      per_million_tokens: { input: '0.10', output: '0.20', cached_input: null },
    })
  })

  it('flex is refused with its own code if too many wait, or there is no idle capacity for too long', async (t) => {
    const pricing = { input_per_million: '0.20', batch: '0.5' }
    const busy = { max_concurrent_requests: 1, flex: { max_wait_ms: 1 } }
    for (const [limits, expected] of [
      [busy, /had no idle capacity for 1 ms/],
      [{ ...busy, batch: { max_queue_depth: 0 } }, /Too many requests wait for idle capacity/],
    ] as const) {
      const stage = await sharedStage(t, { model: { pricing }, limits })
      const held = gate()
      stage.engine.script = { hold: { afterTokens: 0, until: held.opened } }
      const online = stage.weir.chat({})
      await stage.engine.arrived(1)
      const body = { ...bodies['/chat/completions'], service_tier: 'flex' }
      const { message, retryAfter, ...refusal } = await refusalOf(await ask(stage, '/chat/completions', body))
      assert.deepEqual(refusal, {
        status: 429,
        code: 'no_idle_capacity',
        type: 'rate_limit_error',
        param: 'service_tier',
      })
      assert.match(message, expected)
      assert.ok(Number(retryAfter) >= 2 && Number(retryAfter) <= 8)
      held.open()
      assert.equal((await online).status, 200)
    }
  })

  it('flex fits into a spend limit that has no room for the normal price', async (t) => {
    const pricing = { input_per_million: '2', output_per_million: '4', batch: '0.5' }
    const stage = await sharedStage(t, { model: { pricing } })
    const { admin, workspace } = stage.weir
    // The reservation is for 8,000 tokens and more, because a chat template may add as many.
    const limit = { spend_limit: '0.012', spend_limit_kind: 'hard' }
    assert.equal((await admin('PATCH', `/admin/v1/workspaces/${workspace}`, limit)).status, 200)
    const body = { ...bodies['/chat/completions'], max_tokens: 5 }
    const refused = await refusalOf(await ask(stage, '/chat/completions', body))
    assert.deepEqual([refused.status, refused.code], [402, 'spend_limit_exceeded'])
    assert.equal((await ask(stage, '/chat/completions', { ...body, service_tier: 'flex' })).status, 200)
  })
})

describe('an answer on idle capacity', () => {
  const head = { id: 'r1', created: 7, model: 'meta/x', tier: 'flex' } as const
  const options: GenerationOptions = {
    includeUsage: true,
    limit: { maxTokens: 100, choices: 1, generated: 1, tokenizer: undefined },
  }

  it('names its tier, whole and in each event', async () => {
    const answer = chatAnswer(false, options)
    assert.ok(answer.kind === 'whole')
    const body = byteCollector(1_000_000)
    const choice = { index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }
    body.push(Buffer.from(JSON.stringify({ choices: [choice] })))
    const tierIn = async (it: typeof head | Omit<typeof head, 'tier'>): Promise<unknown> => {
      const parsed = await answer.read([body], it, [])
      return (JSON.parse(String(parsed?.render(noUsage))) as { service_tier?: string }).service_tier
    }
    const { tier: _, ...usual } = head
    assert.deepEqual([await tierIn(head), await tierIn(usual)], ['flex', undefined])

    const relay = chatStream(head, options)
    const piece = { choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: 'stop' }] }
    const text = relay.push(Buffer.from(`data: ${JSON.stringify(piece)}\n\ndata: [DONE]\n\n`)) + relay.closing(noUsage)
    const events = text.split('\n\n').filter((it) => it.startsWith('data: {'))
    assert.ok(events.length > 1)
    for (const event of events) {
      assert.equal((JSON.parse(event.slice(6)) as { service_tier?: string }).service_tier, 'flex', event)
    }
  })

  it('names its tier in the form of /responses', () => {
    const settings = { service_tier: 'default' }
    assert.equal((response(head, { settings }) as typeof settings).service_tier, 'flex')
  })
})
