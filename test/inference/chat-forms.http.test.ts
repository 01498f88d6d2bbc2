import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ChatStage } from '../support/chat-stage.ts'
import { sharedStage } from '../support/shared-stage.ts'
import { eventually, gate } from '../support/waiting.ts'

/** The other forms of a chat over real sockets: where they are, and that they are queued, limited and billed like a chat. */

const forms = {
  '/responses': { model: 'meta/test-8b', input: 'Hi', max_output_tokens: 50 },
  '/messages': { model: 'meta/test-8b', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 50 },
} as const

type Form = keyof typeof forms

function ask({ weir }: ChatStage, path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
  const address = path.startsWith('/v1') ? weir.base.replace('/api/v1', path) : weir.base + path
  return fetch(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': weir.key, ...headers },
    body: JSON.stringify(body),
  })
}

for (const form of Object.keys(forms) as Form[]) {
  describe(`POST ${form}`, () => {
    it('[A3] is also below /v1, with the headers and the query that clients send', async (t) => {
      const stage = await sharedStage(t)
      const headers = { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'any-2026-01-01' }
      const response = await ask(stage, `/v1${form}?beta=true`, forms[form], headers)
      assert.equal(response.status, 200, await response.text())
      assert.equal(response.headers.get('x-queue-wait-ms'), '0')
      assert.match(response.headers.get('x-ratelimit-remaining') ?? '', /^\d+$/)
      assert.equal((await stage.weir.ledger())[0]?.endpoint, form)
    })

    it('[A8] is silent while it waits in the queue, and answered in its turn', async (t) => {
      const { opened, open } = gate()
      const stage = await sharedStage(t, {
        limits: { max_concurrent_requests: 1 },
        script: { hold: { afterTokens: 1, until: opened } },
      })
      const first = ask(stage, form, { ...forms[form], stream: true })
      await stage.engine.arrived(1)
      let hasAnswered = false
      const second = ask(stage, form, { ...forms[form], stream: true }).finally(() => (hasAnswered = true))
      await eventually('the second waits', async () => {
        const status = await stage.weir.call('/queue/status')
        return ((await status.json()) as { data: { queue_depth: number }[] }).data[0]?.queue_depth === 1
      })
      await (await first).body?.getReader().read()
      assert.equal(hasAnswered, false)
      open()
      const response = await second
      assert.match(await response.text(), /message_stop|response\.completed/)
      assert.match(response.headers.get('x-queue-wait-ms') ?? '', /^[1-9]\d*$/)
    })

    it('[A7] ends at the limit, and bills no more, if the engine continues', async (t) => {
      const tokens = Array.from({ length: 200 }, (_, index) => ` word${index}`)
      const stage = await sharedStage(t, { script: { tokens } })
      const name = form === '/messages' ? 'max_tokens' : 'max_output_tokens'
      const response = await ask(stage, form, { ...forms[form], [name]: 20, stream: true })
      assert.match(await response.text(), /"stop_reason":"max_tokens"|"reason":"max_output_tokens"/)
      const [row] = await stage.weir.ledger()
      assert.ok(row && row.outputTokens <= 20, `${row?.outputTokens}`)
    })

    it('[A5] names models of other categories, like a chat', async (t) => {
      const stage = await sharedStage(t, { model: { categories: ['embedding'] } })
      const response = await ask(stage, form, forms[form])
      assert.equal(response.status, 400)
      assert.match(await response.text(), /Use \/api\/v1\/embeddings/)
    })
  })
}

describe('x-api-key', () => {
  it('[A3] is a key on every endpoint, and Authorization takes precedence', async (t) => {
    const stage = await sharedStage(t)
    const body = { model: 'meta/test-8b', messages: [{ role: 'user', content: 'Hi' }] }
    assert.equal((await ask(stage, '/chat/completions', body)).status, 200)
    const wrong = await ask(stage, '/chat/completions', body, { authorization: 'Bearer weir_wrong' })
    assert.equal(wrong.status, 401)
    const right = await ask(stage, '/chat/completions', body, {
      authorization: `Bearer ${stage.weir.key}`,
      'x-api-key': 'wrong',
    })
    assert.equal(right.status, 200)
    assert.equal((await ask(stage, '/messages', forms['/messages'], { 'x-api-key': '' })).status, 401)
  })
})

describe('a call that the forms with blocks cannot represent', () => {
  const piece = (index: number, text: string, head: object = {}, name?: string): object => ({
    tool_calls: [{ index, ...head, function: { name, arguments: text } }],
  })

  it('[A10] ends a stream with an error, like an engine that continues after the end of a call', async (t) => {
    const stage = await sharedStage(t, {
      script: {
        handle(_, response) {
          const deltas = [piece(0, '{}', { id: 'a' }, 'f'), piece(1, '{}', { id: 'b' }, 'g'), piece(0, '{"x":1}')]
          const events = deltas.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] }))
          const end = { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }
          response.writeHead(200, { 'content-type': 'text/event-stream' })
          response.end(
            [...events, end].map((event) => `data: ${JSON.stringify(event)}\n\n`).join('') + 'data: [DONE]\n\n',
          )
        },
      },
    })
    for (const form of Object.keys(forms) as Form[]) {
      const text = await (await ask(stage, form, { ...forms[form], stream: true })).text()
      assert.match(text, form === '/messages' ? /event: error\n/ : /event: response\.failed\n/)
      assert.doesNotMatch(text, /message_stop|response\.completed/)
    }
    assert.deepEqual(
      (await stage.weir.ledger()).map(({ outcome }) => outcome),
      ['engine_broke', 'engine_broke'],
    )
  })

  it('[A10] has arguments that are not an object as text, unless the limit cut them', async (t) => {
    for (const [text, finishReason, input] of [
      ["{'x': 1}", 'tool_calls', { INVALID_JSON: "{'x': 1}" }],
      ['[1]', 'stop', { INVALID_JSON: '[1]' }],
      [' ', 'tool_calls', {}],
      ['{"x":', 'length', {}],
      ['{"x":1}', 'stop', { x: 1 }],
    ] as const) {
      const stage = await sharedStage(t, {
        script: { toolCalls: [{ id: 'a', name: 'f', arguments: [text] }], finishReason },
      })
      const response = await ask(stage, '/messages', forms['/messages'])
      const { content, stop_reason: reason } = (await response.json()) as { content: object[]; stop_reason: string }
      assert.deepEqual(content, [{ type: 'tool_use', id: 'a', name: 'f', input }])
      assert.equal(reason, finishReason === 'length' ? 'max_tokens' : 'tool_use')
    }
  })
})
