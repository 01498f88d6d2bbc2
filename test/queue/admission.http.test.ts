import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { chatStage, refusalOf, stageConfig, type ChatStage, type StageOptions } from '../support/chat-stage.ts'
import { chargeOf, laneHolds, laneOf } from '../support/lane.ts'
import { rawChat, rawClient } from '../support/raw-client.ts'
import { gate, within, type Gate } from '../support/waiting.ts'
import { modelEntry } from '../support/weir.ts'

/** The rules of the queue as callers see them, one at a time. */

interface HeldStage extends ChatStage {
  /** One for each call of the engine, in order of arrival. A call is answered when its gate opens. */
  readonly gates: readonly Gate[]
}

/** A stage whose engine answers a call only when the test opens its gate. */
async function heldStage(t: TestContext, limits: object, options: StageOptions = {}): Promise<HeldStage> {
  const gates = Array.from({ length: 8 }, gate)
  let calls = 0
  const script = () => ({ hold: { afterTokens: 0, until: gates[calls++]?.opened ?? Promise.resolve() } })
  // Before the stage is stopped, because stopping waits for the engine.
  t.after(() => gates.forEach(({ open }) => open()))
  const stage = await chatStage(t, { ...options, limits: { max_concurrent_requests: 1, ...limits }, script })
  return { ...stage, gates }
}

/** The content of each call of the engine, in order of arrival. */
function asked({ engine }: ChatStage): string[] {
  return engine.calls.map(({ body }) => (body['messages'] as { content: string }[])[0]?.content ?? '')
}

const say = (content: string): object => ({ messages: [{ role: 'user', content }] })

describe('a model with room', () => {
  it('[Q1] admits a request at once, and charges its input and max_tokens until the engine has ended', async (t) => {
    const { weir, engine, gates } = await heldStage(t, { max_concurrent_requests: 2, token_budget: 1000 })
    const answer = weir.chat({ ...say('Tell me of the weir.'), max_tokens: 100 })
    await engine.arrived(1)
    const busy = await laneOf(weir)
    assert.equal(busy.in_flight_requests, 1)
    assert.equal(busy.queue_depth, 0)
    assert.equal(busy.committed_tokens, chargeOf('Tell me of the weir.', 100))
    assert.equal(busy.available_budget, 1000 - busy.committed_tokens)

    gates[0]?.open()
    const response = await answer
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('x-queue-wait-ms'), '0')
    await response.text()
    assert.equal((await laneOf(weir)).committed_tokens, 0)
  })
})

describe('a busy model', () => {
  it('[Q2][Q5] serves waiting requests in the order of arrival, each as soon as there is room', async (t) => {
    const stage = await heldStage(t, {})
    const { weir, engine, gates } = stage
    const answers: Promise<Response>[] = []
    for (const [position, name] of ['first', 'second', 'third'].entries()) {
      answers.push(weir.chat(say(name)))
      await laneHolds(weir, 1, position)
    }
    assert.deepEqual(asked(stage), ['first'])
    await sleep(100)

    for (const [position, answer] of answers.entries()) {
      await engine.arrived(position + 1)
      gates[position]?.open()
      const response = await answer
      assert.equal(response.status, 200)
      const waitMs = Number(response.headers.get('x-queue-wait-ms'))
      if (position === 0) assert.equal(waitMs, 0)
      else assert.ok(waitMs >= 100 && waitMs < 5000, `waited ${waitMs} ms`)
    }
    assert.deepEqual(asked(stage), ['first', 'second', 'third'])
  })

  it('[Q2] lets no request past a head that does not fit, however small', async (t) => {
    const stage = await heldStage(t, { max_concurrent_requests: 8, token_budget: 1000 })
    const { weir, engine, gates } = stage
    const running = weir.chat({ ...say('running'), max_tokens: 500 })
    await laneHolds(weir, 1, 0)
    const large = weir.chat({ ...say('large'), max_tokens: 700 })
    await laneHolds(weir, 1, 1)
    const small = weir.chat({ ...say('small'), max_tokens: 1 })
    await laneHolds(weir, 1, 2)
    assert.deepEqual(asked(stage), ['running'])

    gates[0]?.open()
    await engine.arrived(3)
    assert.deepEqual(asked(stage), ['running', 'large', 'small'])
    for (const { open } of gates) open()
    for (const answer of [running, large, small]) assert.equal((await answer).status, 200)
  })

  for (const stream of [false, true]) {
    it(`[Q3] sends nothing to a waiting caller: not a byte${stream ? ' of a stream' : ''}`, async (t) => {
      const { weir, gates } = await heldStage(t, {})
      const running = weir.chat({})
      await laneHolds(weir, 1, 0)
      const client = await rawClient(weir.base)
      client.send(rawChat(weir.key, { stream }))
      await laneHolds(weir, 1, 1)
      await sleep(1500)
      assert.equal(client.received, '')
      assert.equal(client.isClosed, false)

      gates[0]?.open()
      await running
      gates[1]?.open()
      await client.sees(stream ? 'data: [DONE]' : 'chat.completion')
      assert.match(client.received, /^HTTP\/1\.1 200 OK\r\n/)
      assert.match(client.received, /\r\nX-Queue-Wait-Ms: \d+\r\n/)
      client.leave()
    })
  }

  it('[Q4] refuses a request at once when the queue is at its depth', async (t) => {
    const { weir, engine, gates } = await heldStage(t, { max_queue_depth: 1 })
    const running = weir.chat({})
    await laneHolds(weir, 1, 0)
    const waiting = weir.chat({})
    await laneHolds(weir, 1, 1)

    const startedAt = performance.now()
    const refusal = await refusalOf(await weir.chat({}))
    assert.ok(performance.now() - startedAt < 1000, 'at once')
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [429, 'queue_full', 'model'])
    assert.equal(refusal.type, 'rate_limit_error')
    const retryAfter = Number(refusal.retryAfter)
    assert.ok(Number.isInteger(retryAfter) && retryAfter >= 2 && retryAfter <= 8, `Retry-After ${retryAfter}`)

    for (const { open } of gates) open()
    for (const answer of [running, waiting]) assert.equal((await answer).status, 200)
    assert.equal(engine.calls.length, 2)
    assert.equal((await weir.ledger()).length, 2)
  })

  it('[Q6] refuses a request after the maximum wait, and not before', async (t) => {
    const { weir, engine, gates } = await heldStage(t, { max_wait_ms: 400 })
    const running = weir.chat({})
    await laneHolds(weir, 1, 0)
    const startedAt = performance.now()
    const refusal = await refusalOf(await weir.chat({}))
    const waitedMs = performance.now() - startedAt
    assert.deepEqual([refusal.status, refusal.code, refusal.retryAfter], [503, 'model_overloaded', '5'])
    assert.equal(refusal.type, 'server_error')
    assert.ok(waitedMs >= 400 && waitedMs < 1400, `after ${waitedMs} ms`)
    await laneHolds(weir, 1, 0)

    gates[0]?.open()
    assert.equal((await running).status, 200)
    assert.equal(engine.calls.length, 1)
    assert.equal((await weir.ledger()).length, 1)
  })

  it('[Q7] has four limits, and a larger max_tokens is harder to admit', async (t) => {
    const limits = { token_budget: 1000, max_concurrent_requests: 8, max_queue_depth: 1, max_wait_ms: 300 }
    const { weir, engine, gates } = await heldStage(t, limits)
    const running = weir.chat({ max_tokens: 600 })
    await laneHolds(weir, 1, 0)
    // A small request fits into the rest of the budget, so it does not wait.
    const small = weir.chat({ max_tokens: 300 })
    await laneHolds(weir, 2, 0)
    // The same request with a larger max_tokens has to wait, and takes the only place in the queue.
    const large = weir.chat({ max_tokens: 600 })
    await laneHolds(weir, 2, 1)
    assert.equal((await refusalOf(await weir.chat({ max_tokens: 1 }))).code, 'queue_full')
    assert.equal((await refusalOf(await large)).code, 'model_overloaded')
    // A request that is larger than the whole budget could never be admitted, so it is refused at once.
    const refusal = await refusalOf(await weir.chat({ max_tokens: 1000 }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'token_budget_exceeded', 'max_tokens'])

    for (const { open } of gates) open()
    for (const answer of [running, small]) assert.equal((await answer).status, 200)
    assert.equal(engine.calls.length, 2)
  })

  it('[Q8] shows its state to callers with access, without queueing them', async (t) => {
    const lonely = modelEntry([], { id: 'acme/hidden', aliases: [], visible_to: ['acme'] })
    const bare = modelEntry([], { id: 'meta/bare', aliases: [], serverless: { limits: { token_budget: 5000 } } })
    const limits = { token_budget: 2000, max_queue_depth: 3, max_wait_ms: 9000 }
    const { weir, engine, gates } = await heldStage(t, limits)
    const config = stageConfig([engine.url], { limits: { max_concurrent_requests: 1, ...limits } }) as {
      models: object[]
    }
    weir.writeConfig({ ...config, models: [...config.models, bare, { ...lonely, serverless: {} }] })
    assert.equal((await weir.reload()).status, 200)
    const answers = [weir.chat({ ...say('one'), max_tokens: 50 }), weir.chat({ ...say('two'), max_tokens: 50 })]
    await laneHolds(weir, 1, 1)

    const response = await weir.call('/queue/status')
    assert.equal(response.headers.get('x-queue-wait-ms'), null)
    const committed = chargeOf('one', 50)
    const idle = { object: 'queue.status', in_flight_requests: 0, committed_tokens: 0, queue_depth: 0 }
    const defaults = { max_concurrent_requests: 32, max_queue_depth: 256, max_wait_ms: 120_000 }
    assert.deepEqual(await response.json(), {
      object: 'list',
      data: [
        {
          object: 'queue.status',
          model: 'meta/test-8b',
          in_flight_requests: 1,
          committed_tokens: committed,
          available_budget: 2000 - committed,
          queue_depth: 1,
          limits: { max_concurrent_requests: 1, ...limits },
        },
        { ...idle, model: 'meta/bare', available_budget: 5000, limits: { ...defaults, token_budget: 5000 } },
      ],
    })
    for (const { open } of gates) open()
    for (const answer of answers) assert.equal((await answer).status, 200)
  })
})

describe('a model without an engine', () => {
  it('[Q9] answers model_not_configured, and when to retry', async (t) => {
    const { weir } = await chatStage(t, { model: { serverless: {} } })
    const refusal = await refusalOf(await weir.chat({}))
    assert.deepEqual(
      [refusal.status, refusal.code, refusal.param, refusal.retryAfter],
      [503, 'model_not_configured', 'model', '10'],
    )
  })
})

describe('a caller that leaves the queue', () => {
  it('[Q2] makes room at once, never reaches the engine, and is charged nothing', async (t) => {
    const stage = await heldStage(t, { max_queue_depth: 2 })
    const { weir, engine, gates } = stage
    const running = weir.chat(say('running'))
    await laneHolds(weir, 1, 0)
    const leaver = await rawClient(weir.base)
    leaver.send(rawChat(weir.key, say('leaver')))
    await laneHolds(weir, 1, 1)
    const patient = weir.chat(say('patient'))
    await laneHolds(weir, 1, 2)

    leaver.leave()
    await laneHolds(weir, 1, 1)
    const late = weir.chat(say('late'))
    await laneHolds(weir, 1, 2)
    for (const { open } of gates) open()
    for (const answer of [running, patient, late]) assert.equal((await answer).status, 200)
    assert.deepEqual(asked(stage), ['running', 'patient', 'late'])
    assert.equal(engine.calls.length, 3)
    assert.equal((await weir.ledger()).length, 3)
    await laneHolds(weir, 0, 0)
  })
})

describe('limits that change while the service runs', () => {
  const before = { token_budget: 5000, max_concurrent_requests: 2, max_queue_depth: 8, max_wait_ms: 20_000 }

  async function change({ weir, engine }: ChatStage, limits: object): Promise<void> {
    weir.writeConfig(stageConfig([engine.url], { limits: { ...before, ...limits } }))
    assert.equal((await weir.reload()).status, 200)
  }

  it('[Q7][C9] evict no request when they are lowered', async (t) => {
    const stage = await heldStage(t, before)
    const { weir, engine, gates } = stage
    const answers = ['one', 'two', 'three', 'four'].map((name) => weir.chat(say(name)))
    await laneHolds(weir, 2, 2)
    await change(stage, { max_concurrent_requests: 1, max_queue_depth: 1, max_wait_ms: 100, token_budget: 400 })

    // Four requests exceed every new limit. All stay, well past the new maximum wait.
    await sleep(300)
    await laneHolds(weir, 2, 2)
    assert.equal((await refusalOf(await weir.chat(say('five')))).code, 'queue_full')
    // One of two ends. The lane is now at its limit, so the next request waits for the other.
    gates[0]?.open()
    await laneHolds(weir, 1, 2)
    await sleep(50)
    assert.equal(engine.calls.length, 2)
    for (const { open } of gates) open()
    for (const answer of await Promise.all(answers)) assert.equal(answer.status, 200)
    assert.equal(engine.calls.length, 4)
    await laneHolds(weir, 0, 0)
  })

  it('[Q7][C9] admit waiting requests at once when they are raised', async (t) => {
    const stage = await heldStage(t, before)
    const { weir, engine, gates } = stage
    const answers = ['one', 'two', 'three', 'four'].map((name) => weir.chat(say(name)))
    await laneHolds(weir, 2, 2)
    await change(stage, { max_concurrent_requests: 4 })
    await within(2000, 'all four are with the engine', engine.arrived(4))
    for (const { open } of gates) open()
    for (const answer of await Promise.all(answers)) assert.equal(answer.status, 200)
  })
})
