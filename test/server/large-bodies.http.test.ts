import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, describe, it } from 'node:test'
import { refusalOf } from '../support/chat-stage.ts'
import { dataUrl, png } from '../support/image-samples.ts'
import { rawChat, rawClient } from '../support/raw-client.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

/**
 * A body above half a MiB is read in another thread. Its caller must not notice: each request is sent twice, once with a
 * long text that makes it large.
 */

/** More than is read in the main thread. */
const LONG = 'word '.repeat(150_000)
const texts = { small: 'word', large: LONG } as const

let weir: TestWeir
let engine: ScriptedEngine
const images = createServer((_, response) => void response.end(png()))
let imageUrl = ''

before(async () => {
  engine = await scriptedEngine()
  await new Promise<void>((resolve) => images.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(images.address() as AddressInfo).port}`
  imageUrl = `http://${host}/cat.png`
  const entry = (id: string, categories: string[], changes: object = {}): object =>
    modelEntry([], {
      id,
      aliases: [],
      categories,
      context_length: 10_000_000,
      max_completion_tokens: 10_000_000,
      serverless: {
        engine: { kind: 'openai', urls: [engine.url], model: 'engine-name' },
        limits: { token_budget: 100_000_000, max_concurrent_requests: 8 },
      },
      ...changes,
    })
  weir = await startWeir({
    rate_limit: { requests_per_minute: 100_000 },
    images: { allowed_hosts: [host], max_bytes: 1_000_000 },
    models: [
      entry('meta/chat', ['llm', 'vision']),
      entry('meta/narrow', ['llm'], { context_length: 1000, max_completion_tokens: 100, default_max_tokens: 100 }),
      entry('meta/embedder', ['embedding']),
    ],
  })
})
after(async () => {
  images.close()
  await weir.stop()
  await engine.close()
})
beforeEach(() => {
  engine.script = {}
  engine.calls.length = 0
})

function post(path: string, body: object | string): Promise<Response> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${weir.key}` }
  return fetch(weir.base + path, {
    method: 'POST',
    headers,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

const chat = (content: unknown, more: object = {}): object => ({
  model: 'meta/chat',
  messages: [{ role: 'user', content }],
  ...more,
})

/** The messages that the engine got. */
function sent(): unknown {
  return engine.calls.at(-1)?.body['messages'] ?? assert.fail('the engine was not asked')
}

for (const [size, text] of Object.entries(texts)) {
  describe(`a ${size} body`, () => {
    it('reaches the engine as it was sent, whole or streamed, in every form of a chat', async () => {
      for (const stream of [false, true]) {
        for (const [path, body] of [
          ['/chat/completions', chat(text)],
          ['/messages', { ...chat(text), max_tokens: 10 }],
          ['/responses', { model: 'meta/chat', input: text }],
        ] as const) {
          const response = await post(path, { ...body, stream })
          const answer = await response.text()
          assert.equal(response.status, 200, answer.slice(0, 300))
          assert.match(answer, /Hello/)
          assert.deepEqual(sent(), [{ role: 'user', content: text }])
        }
      }
    })

    it('may have images given by URL', async () => {
      const parts = [
        { type: 'text', text },
        { type: 'image_url', image_url: { url: imageUrl } },
      ]
      const response = await post('/chat/completions', chat(parts))
      assert.equal(response.status, 200, await response.text())
      const inlined = { type: 'image_url', image_url: { url: dataUrl('png', png()) } }
      assert.deepEqual(sent(), [{ role: 'user', content: [parts[0], inlined] }])
      const elsewhere = { ...parts[1], image_url: { url: 'http://elsewhere.example/cat.png' } }
      const refusal = await refusalOf(await post('/chat/completions', chat([parts[0], elsewhere])))
      assert.deepEqual([refusal.code, refusal.param], ['unsupported_content', 'messages[0].content[1]'])
    })

    it('may have token ids to embed', async () => {
      // "Hello world", and something that makes the body large.
      const input = [9906, 1917]
      engine.script = {
        handle: (_, response) =>
          void response.end(JSON.stringify({ data: [{ index: 0, embedding: [0.5] }], usage: { prompt_tokens: 2 } })),
      }
      const response = await post('/embeddings', { model: 'meta/embedder', input, strange: text })
      assert.equal(response.status, 200, await response.text())
      assert.deepEqual(engine.calls.at(-1)?.body['input'], ['Hello world'])
      const wrong = await refusalOf(await post('/embeddings', { model: 'meta/embedder', input: [[1], [100_300]] }))
      assert.deepEqual([wrong.code, wrong.param], ['invalid_value', 'input[1]'])
    })

    it('can be counted', async () => {
      const response = await post('/messages/count_tokens', chat(text))
      const { input_tokens: tokens } = (await response.json()) as { input_tokens: number }
      assert.ok(tokens > text.length / 10 && tokens < text.length + 4, `${tokens} tokens`)
    })

    const refusals: readonly [
      what: string,
      body: object | string,
      status: number,
      code: string,
      param: string | null,
    ][] = [
      ['is not JSON', `{"model":"meta/chat","messages":["${text}" 1]}`, 400, 'invalid_json', null],
      ['repeats a field', `{"model":"meta/chat","a":"${text}","a":1}`, 400, 'invalid_json', null],
      ['is nested too deeply', `{"model":"meta/chat","a":"${text}","b":${'['.repeat(101)}`, 400, 'invalid_json', null],
      ['names no model', { messages: [{ role: 'user', content: text }] }, 400, 'missing_required_parameter', 'model'],
      ['names an unknown model', chat(text, { model: 'none/such' }), 404, 'model_not_found', 'model'],
      ['is for another endpoint', chat(text, { model: 'meta/embedder' }), 400, 'wrong_endpoint', 'model'],
      [
        'has a wrong value',
        chat([{ type: 'text', text: 1 }], { a: text }),
        400,
        'invalid_type',
        'messages[0].content[0].text',
      ],
      ['does not fit', chat(LONG, { model: 'meta/narrow' }), 400, 'context_length_exceeded', 'messages'],
    ]
    for (const [what, body, status, code, param] of refusals) {
      it(`is refused if it ${what}`, async () => {
        const refusal = await refusalOf(await post('/chat/completions', body))
        assert.deepEqual([refusal.status, refusal.code, refusal.param], [status, code, param])
        assert.equal(engine.calls.length, 0)
      })
    }

    it('is refused in the stream if it requests one that can show errors', async () => {
      const response = await post('/responses', { model: 'meta/narrow', input: LONG, stream: true, metadata: {} })
      assert.deepEqual(
        [response.status, response.headers.get('content-type')],
        [200, 'text/event-stream; charset=utf-8'],
      )
      assert.match(await response.text(), /response\.failed[^]*context_length_exceeded/)
    })
  })
}

describe('large bodies', () => {
  it('are read one after the other, and not for callers that have disconnected', async () => {
    const left = await Promise.all(Array.from({ length: 4 }, () => rawClient(weir.base)))
    for (const client of left) client.send(rawChat(weir.key, chat(LONG, { model: 'none/such' })))
    for (const client of left.slice(1)) client.leave()
    const answers = await Promise.all(
      Array.from({ length: 4 }, (_, index) => post('/chat/completions', chat(`${LONG}${index}`))),
    )
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200, 200],
    )
    await eventually('the one that stayed has its answer', () => left[0]?.received.includes('model_not_found') ?? false)
    left[0]?.leave()
    const asked = engine.calls.map(({ body }) => (body['messages'] as { content: string }[])[0]?.content.at(-1))
    assert.deepEqual(new Set(asked), new Set(['0', '1', '2', '3']), 'each has its own text')
  })
})
