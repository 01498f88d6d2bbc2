import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { refusalOf, type StageOptions } from '../support/chat-stage.ts'
import { jsonStage, type JsonStage } from '../support/json-stage.ts'
import { rawClient, rawPost } from '../support/raw-client.ts'
import type { EngineCallSeen } from '../support/scripted-engine.ts'

const embedder = {
  categories: ['embedding'],
  context_length: 100,
  max_completion_tokens: undefined,
  default_max_tokens: undefined,
  supported_parameters: ['dimensions'],
  pricing: { input_per_million: '0.02' },
}

interface Embeddings {
  readonly object: string
  readonly data: readonly { readonly object: string; readonly index: number; readonly embedding: number[] | string }[]
  readonly model: string
  readonly usage: { readonly prompt_tokens: number; readonly total_tokens: number }
}

/** A vector that identifies its text. */
function vectorOf(text: string): number[] {
  return [text.length, text.codePointAt(0) ?? 0, 0.5]
}

function base64(vector: readonly number[]): string {
  return Buffer.from(Float32Array.from(vector).buffer).toString('base64')
}

/** Answers like an OpenAI-compatible server, with two tokens per text. */
function embed(call: EngineCallSeen): Embeddings {
  const texts = call.body['input'] as string[]
  const inBase64 = call.body['encoding_format'] === 'base64'
  return {
    object: 'list',
    data: texts.map((text, index) => {
      const vector = vectorOf(text)
      return { object: 'embedding', index, embedding: inBase64 ? base64(vector) : vector }
    }),
    model: 'engine-name',
    usage: { prompt_tokens: 2 * texts.length, total_tokens: 2 * texts.length },
  }
}

async function stage(t: TestContext, options: StageOptions = {}): Promise<JsonStage> {
  const made = await jsonStage(t, { ...options, model: { ...embedder, ...options.model } })
  made.answer(embed)
  return made
}

async function vectorsOf(response: Response): Promise<unknown[]> {
  const { data } = (await response.json()) as Embeddings
  return data.map(({ embedding }) => embedding)
}

describe('embeddings', () => {
  it('[E4] are one vector for each text, in order, as numbers', async (t) => {
    const { post, engine } = await stage(t)
    const response = await post('/embeddings', { input: ['one', 'three'] })
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('x-queue-wait-ms'), '0')
    assert.deepEqual(await response.json(), {
      object: 'list',
      data: [
        { object: 'embedding', index: 0, embedding: vectorOf('one') },
        { object: 'embedding', index: 1, embedding: vectorOf('three') },
      ],
      model: 'meta/test-8b',
      usage: { prompt_tokens: 4, total_tokens: 4 },
    })
    assert.deepEqual(engine.calls[0]?.body, {
      model: 'engine-name',
      input: ['one', 'three'],
      encoding_format: 'float',
    })
  })

  it('[E4, C3] accept one text, a short id, null for absent fields, and unknown fields', async (t) => {
    const { post, engine } = await stage(t)
    const response = await post('/embeddings', {
      model: 'test-8b',
      input: 'one',
      dimensions: null,
      user: 'u',
      color: 1,
    })
    assert.deepEqual(await vectorsOf(response), [vectorOf('one')])
    assert.deepEqual(engine.calls[0]?.body, { model: 'engine-name', input: ['one'], encoding_format: 'float' })
  })

  it('[E4] are little-endian float32 in base64 if the caller requests it', async (t) => {
    const { post, engine } = await stage(t)
    const response = await post('/embeddings', { input: ['one', 'three'], encoding_format: 'base64' })
    assert.deepEqual(await vectorsOf(response), [base64(vectorOf('one')), base64(vectorOf('three'))])
    assert.equal(engine.calls[0]?.body['encoding_format'], 'base64')
  })

  it('[E4] are converted when the engine supports only the other encoding', async (t) => {
    const { post, answer } = await stage(t)
    answer((call) => embed({ ...call, body: { ...call.body, encoding_format: 'float' } }))
    const asked = await post('/embeddings', { input: ['one', 'three'], encoding_format: 'base64' })
    assert.deepEqual(await vectorsOf(asked), [base64(vectorOf('one')), base64(vectorOf('three'))])
    answer((call) => embed({ ...call, body: { ...call.body, encoding_format: 'base64' } }))
    const other = await post('/embeddings', { input: ['one', 'three'], encoding_format: 'float' })
    assert.deepEqual(await vectorsOf(other), [vectorOf('one'), vectorOf('three')])
  })

  it('[E4] are put in order by their index, in both encodings', async (t) => {
    const { post, answer } = await stage(t)
    answer((call) => ({ ...embed(call), data: embed(call).data.toReversed() }))
    for (const encoding_format of ['float', 'base64']) {
      const response = await post('/embeddings', { input: ['a', 'bb', 'ccc'], encoding_format })
      assert.deepEqual(
        await vectorsOf(response),
        ['a', 'bb', 'ccc'].map(vectorOf).map((it) => (encoding_format === 'float' ? it : base64(it))),
      )
    }
  })

  it('[E4] accept token ids of cl100k_base, as one list or several', async (t) => {
    const { post, engine } = await stage(t)
    await post('/embeddings', { input: [15339, 1917] })
    await post('/embeddings', { input: [[15339, 1917], [15339]] })
    assert.deepEqual(
      engine.calls.map(({ body }) => body['input']),
      [['hello world'], ['hello world', 'hello']],
    )
    const refusal = await refusalOf(await post('/embeddings', { input: [[15339], [199_999]] }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'invalid_value', 'input[1]'])
  })

  it('[E4, L4] have the requested dimensions if the model supports it, and are refused otherwise', async (t) => {
    const { post, engine } = await stage(t)
    assert.equal((await post('/embeddings', { input: 'one', dimensions: 3 })).status, 200)
    assert.equal(engine.calls[0]?.body['dimensions'], 3)
    const other = await stage(t, { model: { supported_parameters: [] } })
    const refusal = await refusalOf(await other.post('/embeddings', { input: 'one', dimensions: 3 }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'unsupported_parameter', 'dimensions'])
    assert.equal(other.engine.calls.length, 0)
  })
})

describe('a batch', () => {
  it('[E4] is split at the engine’s limit into calls one after the other, and joined again', async (t) => {
    const { post, answer, engine, weir } = await stage(t, {
      engine: { kind: 'tei' },
      limits: { max_concurrent_requests: 1 },
    })
    answer((call) => (call.body['inputs'] as string[]).map(vectorOf))
    const input = Array.from({ length: 70 }, (_, index) => `${'x'.repeat(index)}.`)
    const response = await post('/embeddings', { input })
    assert.deepEqual(await vectorsOf(response), input.map(vectorOf))
    assert.deepEqual(
      engine.calls.map(({ body }) => (body['inputs'] as string[]).length),
      [32, 32, 6],
    )
    assert.equal(engine.maxRunning, 1)
    assert.equal((await weir.ledger()).length, 1)
  })

  it('[E4] has the usage of all its calls', async (t) => {
    const { post, engine, weir } = await stage(t, { engine: { kind: 'tei' } })
    engine.script = {
      handle(call, response) {
        const texts = call.body['inputs'] as string[]
        response.writeHead(200, { 'x-compute-tokens': String(texts.length * 3) })
        response.end(JSON.stringify(texts.map(vectorOf)))
      },
    }
    const response = await post('/embeddings', { input: Array.from({ length: 40 }, () => 'one') })
    const { usage } = (await response.json()) as Embeddings
    assert.deepEqual(usage, { prompt_tokens: 120, total_tokens: 120 })
    const [row] = await weir.ledger()
    assert.deepEqual([row?.inputTokens, row?.outputTokens, row?.estimated], [120, 0, false])
  })

  it('[E4] of 2048 texts is accepted, and one more is refused', async (t) => {
    const { post, engine } = await stage(t)
    const input = Array.from({ length: 2048 }, (_, index) => `text ${index}`)
    const response = await post('/embeddings', { input, encoding_format: 'base64' })
    assert.deepEqual(await vectorsOf(response), input.map(vectorOf).map(base64))
    assert.equal(engine.calls.length, 1)
    const refusal = await refusalOf(await post('/embeddings', { input: [...input, 'more'] }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'invalid_value', 'input'])
  })

  it('that fails in the middle is an error, and costs nothing', async (t) => {
    const { post, engine, weir } = await stage(t, { engine: { kind: 'tei' } })
    engine.script = (call) =>
      (call.body['inputs'] as string[]).length === 32
        ? { handle: (_, response) => void response.end(JSON.stringify(Array.from({ length: 32 }, () => [1]))) }
        : { refuse: { status: 500, body: {} } }
    const refusal = await refusalOf(await post('/embeddings', { input: Array.from({ length: 40 }, () => 'one') }))
    assert.deepEqual([refusal.status, refusal.code], [502, 'upstream_error'])
    const [row] = await weir.ledger()
    assert.deepEqual([row?.outcome, row?.amount], ['engine_failed', 0n])
  })
})

for (const encoding of ['base64', 'float']) {
  describe(`a large batch of embeddings in ${encoding}`, () => {
    const input = Array.from({ length: 300 }, (_, index) => `text ${index}`)
    const large = { input, encoding_format: encoding }
    const inEncoding = (vector: number[]): number[] | string => (encoding === 'base64' ? base64(vector) : vector)
    const firstOf = (embedding: number[] | string): number | undefined =>
      typeof embedding === 'string' ? Buffer.from(embedding, 'base64').readFloatLE(0) : embedding[0]
    /** 300 vectors of 512 numbers: 830 KB in base64, 1.4 MB as numbers. */
    const answerTo = (call: EngineCallSeen): string => {
      const answer = embed(call)
      const data = answer.data.map((it) => ({
        ...it,
        embedding: inEncoding(Array.from({ length: 512 }, () => it.index + 0.25)),
      }))
      return JSON.stringify({ ...answer, data })
    }
    const head = { 'content-type': 'application/json' }

    it('[E4] is forwarded while it arrives', { timeout: 30_000 }, async (t) => {
      const { post, engine, weir } = await stage(t)
      const seen = Promise.withResolvers<void>()
      engine.script = {
        async handle(call, response) {
          const answer = answerTo(call)
          response.writeHead(200, head).write(answer.slice(0, 300_000))
          await seen.promise
          response.end(answer.slice(300_000))
        },
      }
      const response = await post('/embeddings', large)
      let text = ''
      const decoder = new TextDecoder()
      for await (const chunk of response.body ?? []) {
        text += decoder.decode(chunk, { stream: true })
        if (text.length > 250_000) seen.resolve()
      }
      const { data, usage, model, object } = JSON.parse(text) as Embeddings
      assert.deepEqual([object, model], ['list', 'meta/test-8b'])
      assert.deepEqual(usage, { prompt_tokens: 600, total_tokens: 600 })
      assert.deepEqual(
        data.map(({ index, embedding }) => [index, firstOf(embedding)]),
        input.map((_, index) => [index, index + 0.25]),
      )
      const [row] = await weir.ledger()
      assert.deepEqual([row?.outcome, row?.inputTokens, row?.estimated], ['completed', 600, false])
    })

    const breaks: readonly [string, (answer: string) => string][] = [
      ['breaks off', (answer) => answer.slice(0, 500_000)],
      ['changes its format', (answer) => answer.replace('"index":200', '"index": 200')],
      ['has one too few', (answer) => answer.replace(/,\{[^{]*"index":299[^}]*\}/, '')],
      ['ends in another way', (answer) => `${answer.slice(0, -1)}]`],
    ]
    for (const [what, change] of breaks) {
      it(`[E4] that ${what} is cut off, and costs nothing`, async (t) => {
        const { post, engine, weir } = await stage(t)
        engine.script = {
          handle(call, response) {
            const answer = answerTo(call)
            const changed = change(answer)
            assert.notEqual(changed, answer)
            response.writeHead(200, head)
            if (what === 'breaks off') response.write(changed, () => response.destroy())
            else response.end(changed)
          },
        }
        const response = await post('/embeddings', large)
        assert.equal(response.status, 200)
        await assert.rejects(response.text())
        const [row] = await weir.ledger()
        assert.deepEqual([row?.outcome, row?.amount], ['engine_failed', 0n])
      })
    }

    it(
      '[E4] pauses the engine while the caller does not read, and resumes it afterwards',
      { timeout: 60_000 },
      async (t) => {
        const { engine, weir } = await stage(t)
        const numbers = inEncoding(Array.from({ length: encoding === 'base64' ? 5000 : 3000 }, () => 0.123456))
        let total = 0
        let sent = 0
        engine.script = {
          async handle(call, response) {
            const answer = embed(call)
            const data = answer.data.map((it) => ({ ...it, embedding: numbers }))
            const bytes = Buffer.from(JSON.stringify({ ...answer, data }))
            total = bytes.length
            response.writeHead(200, head)
            for (; sent < total; sent += 65_536) {
              if (!response.write(bytes.subarray(sent, sent + 65_536))) await once(response, 'drain')
            }
            response.end()
          },
        }
        const caller = await rawClient(weir.base)
        const many = {
          ...large,
          model: 'meta/test-8b',
          input: Array.from({ length: 2048 }, (_, index) => `text ${index}`),
        }
        caller.send(rawPost('/api/v1/embeddings', weir.key, many))
        await caller.sees('200 OK')
        caller.socket.pause()
        for (let before = -1; before !== sent; await sleep(250)) before = sent
        assert.ok(sent < total, `${sent} of ${total}`)
        caller.socket.resume()
        await caller.sees('"total_tokens":4096}}')
        assert.ok(sent >= total)
        caller.leave()
      },
    )

    it('[E4] in another format is read as a whole, and converted to ours', async (t) => {
      const { post, engine } = await stage(t)
      engine.script = { handle: (call, response) => void response.end(answerTo(call).replaceAll('":', '": ')) }
      const response = await post('/embeddings', large)
      const text = await response.text()
      assert.equal(response.headers.get('content-length'), String(text.length))
      const { data } = JSON.parse(text) as Embeddings
      assert.deepEqual(
        data.map(({ index }) => index),
        input.map((_, index) => index),
      )
    })
  })
}

describe('an invalid embeddings request', () => {
  const wrong: readonly [string, object, string, string][] = [
    ['no input', {}, 'missing_required_parameter', 'input'],
    ['an empty text', { input: '' }, 'invalid_value', 'input'],
    ['an empty text among others', { input: ['one', ''] }, 'invalid_value', 'input[1]'],
    ['no texts', { input: [] }, 'invalid_value', 'input'],
    ['an empty list of ids', { input: [[1], []] }, 'invalid_value', 'input[1]'],
    ['a number among texts', { input: ['one', 2] }, 'invalid_type', 'input[1]'],
    ['a negative id', { input: [-1] }, 'invalid_value', 'input[0]'],
    ['an object', { input: { text: 'one' } }, 'invalid_type', 'input'],
    ['another encoding', { input: 'one', encoding_format: 'int8' }, 'invalid_value', 'encoding_format'],
    ['no dimensions', { input: 'one', dimensions: 0 }, 'invalid_value', 'dimensions'],
  ]
  for (const [what, body, code, param] of wrong) {
    it(`[E4] ${what}: ${code} (${param})`, async (t) => {
      const { post, engine } = await stage(t)
      const refusal = await refusalOf(await post('/embeddings', body))
      assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, code, param])
      assert.equal(engine.calls.length, 0)
    })
  }

  it('[E12] with a text larger than the context is refused with its index; many that fit are accepted', async (t) => {
    const { post } = await stage(t)
    const long = 'river '.repeat(400)
    const refusal = await refusalOf(await post('/embeddings', { input: ['one', long] }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'context_length_exceeded', 'input'])
    assert.match(refusal.message, /maximum context length is 100 tokens, but input 1 /)
    const response = await post('/embeddings', { input: Array.from({ length: 50 }, () => 'river '.repeat(20)) })
    assert.equal(response.status, 200)
  })

  it('[E12] that the engine finds too long is refused with the parameter input', async (t) => {
    const { post, engine } = await stage(t)
    engine.script = { refuse: { status: 400, body: { error: { message: 'maximum context length is 512 tokens' } } } }
    const refusal = await refusalOf(await post('/embeddings', { input: 'one' }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'context_length_exceeded', 'input'])
  })

  it('[C6] for a model of another category is refused, and the message names its endpoint', async (t) => {
    const { post } = await stage(t, { model: { categories: ['llm'], supported_parameters: [] } })
    const refusal = await refusalOf(await post('/embeddings', { input: 'one' }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'wrong_endpoint', 'model'])
    assert.match(refusal.message, /\/api\/v1\/chat\/completions/)
  })
})

describe('an engine that does not return what was requested', () => {
  const item = { object: 'embedding', index: 0, embedding: [1] }
  const answers: readonly [string, unknown][] = [
    ['fewer vectors', { data: [item] }],
    ['more vectors', { data: [item, { ...item, index: 1 }, { ...item, index: 2 }] }],
    ['the first twice', { data: [item, item] }],
    [
      'the second twice',
      {
        data: [
          { ...item, index: 1 },
          { ...item, index: 1 },
        ],
      },
    ],
    ['an index out of range', { data: [item, { ...item, index: 4_000_000_000 }] }],
    ['no numbers', { data: [item, { ...item, index: 1, embedding: ['x'] }] }],
    ['an empty vector', { data: [item, { ...item, index: 1, embedding: [] }] }],
    ['no base64', { data: [item, { ...item, index: 1, embedding: '"},{"x":"' }] }],
    ['half a number', { data: [item, { ...item, index: 1, embedding: 'AAA=' }] }],
    ['something else', { results: [] }],
    ['no object', []],
  ]
  for (const encoding_format of ['float', 'base64']) {
    for (const [what, body] of answers) {
      it(`[E4] ${what} instead of ${encoding_format}: 502, and no bill`, async (t) => {
        const { post, answer, weir } = await stage(t)
        answer(() => body)
        const response = await post('/embeddings', { input: ['one', 'two'], encoding_format })
        const refusal = await refusalOf(response)
        assert.deepEqual([refusal.status, refusal.code, refusal.retryAfter], [502, 'upstream_error', '2'])
        const [row] = await weir.ledger()
        assert.deepEqual([row?.outcome, row?.amount], ['engine_failed', 0n])
      })
    }
  }

  it('[E4] has its usage estimated when the reported one is impossible', async (t) => {
    const { post, answer, weir } = await stage(t)
    answer((call) => ({ ...embed(call), usage: { prompt_tokens: -1 } }))
    const response = await post('/embeddings', { input: 'A weir in a river.' })
    const { usage } = (await response.json()) as Embeddings
    const [row] = await weir.ledger()
    assert.equal(row?.estimated, true)
    assert.deepEqual(usage, { prompt_tokens: row.inputTokens, total_tokens: row.inputTokens })
    assert.ok(row.inputTokens > 0)
  })
})
