import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { refusalOf, roomyLimits } from '../support/chat-stage.ts'
import { png } from '../support/image-samples.ts'
import { scriptedEngine, type EngineCallSeen, type ScriptedEngine } from '../support/scripted-engine.ts'
import { gate } from '../support/waiting.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

let engine: ScriptedEngine
let weir: TestWeir

const PRICE = 40_000_000_000n

before(async () => {
  engine = await scriptedEngine()
  const model = (id: string, kind: string, changes: object = {}, limits: object = {}): object =>
    modelEntry([], {
      id,
      aliases: [id.slice(3)],
      categories: ['image'],
      context_length: 256,
      max_completion_tokens: undefined,
      default_max_tokens: undefined,
      supported_parameters: ['quality', 'style', 'background', 'output_format', 'seed', 'negative_prompt', 'steps'],
      pricing: { per_image: '0.04' },
      serverless: {
        engine: { kind, urls: [engine.url], model: 'engine-name' },
        limits: { ...roomyLimits, ...limits },
      },
      ...changes,
    })
  weir = await startWeir({
    rate_limit: { requests_per_minute: 100_000 },
    models: [
      modelEntry([engine.url]),
      model('sd/full', 'openai'),
      model('sd/plain', 'openai', { supported_parameters: [] }),
      model('sd/cpp', 'sdcpp'),
      model('sd/local', 'localai'),
      model('sd/sized', 'openai', {
        pricing: {
          per_image: '0.04',
          image_prices: [
            { size: '1024x1792', per_image: '0.08' },
            { size: '1024x1792', quality: 'hd', per_image: '0.12' },
          ],
        },
      }),
      model('sd/narrow', 'openai', {}, { token_budget: 3000 }),
    ],
  })
})
after(async () => {
  await weir.stop()
  await engine.close()
})
beforeEach(() => {
  engine.script = {}
  engine.calls.length = 0
})

interface Answer {
  readonly created: number
  readonly data: readonly { readonly b64_json?: string; readonly url?: string; readonly revised_prompt?: string }[]
}

function generate(body: object, init: RequestInit = {}): Promise<Response> {
  return weir.call('/images/generations', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sd/full', prompt: 'A weir at dawn', ...body }),
    ...init,
  })
}

async function generated(body: object): Promise<Answer> {
  const response = await generate(body)
  const answer = (await response.json()) as Answer
  assert.equal(response.status, 200, JSON.stringify(answer))
  return answer
}

async function assertRefused(body: object, code: string, param: string | null, status = 400): Promise<void> {
  const refusal = await refusalOf(await generate(body))
  assert.deepEqual([refusal.status, refusal.code, refusal.param], [status, code, param], refusal.message)
}

async function lastRow() {
  return (await weir.ledger()).at(-1) ?? assert.fail('no row')
}

describe('POST /images/generations', () => {
  it('[E7] returns the engine’s image unchanged', async () => {
    const image = png({ width: 512, height: 512, more: 300_000 }).toString('base64')
    engine.script = { images: () => [{ b64_json: image, revised_prompt: 'A "weir"\n' }] }
    const response = await generate({ size: '512x512' })
    const { created, data } = (await response.json()) as Answer
    assert.deepEqual(data, [{ b64_json: image, revised_prompt: 'A "weir"\n' }])
    assert.ok(Math.abs(created - Date.now() / 1000) < 60)
    assert.equal(response.headers.get('content-type'), 'application/json')
    assert.match(response.headers.get('x-queue-wait-ms') ?? '', /^\d+$/)
    assert.deepEqual(engine.calls[0]?.body, {
      model: 'engine-name',
      prompt: 'A weir at dawn',
      n: 1,
      size: '512x512',
      response_format: 'b64_json',
    })
    assert.equal(engine.calls[0]?.path, '/v1/images/generations')
  })

  it('[E7] returns small, large and escaped images unchanged and in order', async () => {
    const images = [10, 5000, 200_000, 4000, 70_000].map((more) => png({ more }).toString('base64'))
    engine.script = {
      handle(_call, response) {
        const data = images.map((b64_json) => JSON.stringify({ b64_json }).replaceAll('/', '\\/'))
        response.writeHead(200).end(`{"data": [ ${data.join(' , ')} ]}`)
      },
    }
    const { data } = await generated({ n: 5 })
    assert.deepEqual(
      data,
      images.map((b64_json) => ({ b64_json })),
    )
  })

  it('[E7] returns a long revised prompt completely', async () => {
    const revised = 'A weir. '.repeat(1000)
    engine.script = { images: () => [{ b64_json: png().toString('base64'), revised_prompt: revised }] }
    assert.equal((await generated({})).data[0]?.revised_prompt, revised)
  })

  it('[E7] forwards every parameter of the model, and nothing else', async () => {
    const parameters = {
      quality: 'high',
      style: 'natural',
      background: 'opaque',
      output_format: 'webp',
      seed: 7,
      negative_prompt: 'people',
      steps: 20,
    }
    await generated({ ...parameters, user: 'me', moderation: 'low', partial_images: 2, stream: false, size: 'auto' })
    assert.deepEqual(engine.calls[0]?.body, {
      model: 'engine-name',
      prompt: 'A weir at dawn',
      n: 1,
      response_format: 'b64_json',
      ...parameters,
    })
  })

  it('[E7] treats null as absent, and accepts a short id', async () => {
    const nothing = { n: null, size: null, quality: null, seed: null, response_format: null, stream: null, user: null }
    assert.equal((await generated({ model: 'full', ...nothing })).data.length, 1)
    assert.deepEqual(Object.keys(engine.calls[0]?.body ?? {}), ['model', 'prompt', 'n', 'response_format'])
  })

  it('refuses a parameter that the model does not list, unless it requests the default', async () => {
    const wishes = { quality: 'hd', style: 'vivid', background: 'transparent', output_format: 'png', seed: 1, steps: 5 }
    for (const [name, value] of Object.entries({ ...wishes, negative_prompt: 'x' })) {
      await assertRefused({ model: 'sd/plain', [name]: value }, 'unsupported_parameter', name)
    }
    await generated({ model: 'sd/plain', quality: 'auto', background: 'auto', n: 2, size: '64x64' })
  })
})

describe('several images', () => {
  it('[E7, M3] are returned in one answer, and each is billed', async () => {
    const { data } = await generated({ n: 10 })
    assert.equal(data.length, 10)
    const row = await lastRow()
    assert.deepEqual(
      [row.endpoint, row.images, row.inputTokens, row.outputTokens, row.estimated, row.outcome, row.amount],
      ['/images/generations', 10, 0, 0, false, 'completed', 10n * PRICE],
    )
  })

  it('[E7, M3] need two calls, one after the other, to a server that generates 8 at a time, with continuing seeds', async () => {
    const { data } = await generated({ model: 'sd/cpp', n: 10, seed: 100 })
    assert.equal(data.length, 10)
    assert.deepEqual(
      engine.calls.map(({ body }) => body['n']),
      [8, 2],
    )
    assert.deepEqual(engine.calls.map(seedIn), [100, 108])
    assert.equal(engine.maxRunning, 1)
    assert.equal((await lastRow()).images, 10)
  })

  it('keep a seed that means "any"', async () => {
    await generated({ model: 'sd/cpp', n: 10, seed: -1 })
    assert.deepEqual(engine.calls.map(seedIn), [-1, -1])
  })

  it('[M3] are delivered and billed when there are fewer than requested', async () => {
    engine.script = { images: () => [{ b64_json: png().toString('base64') }] }
    assert.equal((await generated({ n: 4 })).data.length, 1)
    const row = await lastRow()
    assert.deepEqual([row.images, row.amount], [1, PRICE])
    assert.equal((await generated({ model: 'sd/cpp', n: 10 })).data.length, 2, 'one of each call')
    assert.equal((await lastRow()).images, 2)
  })

  it('[M3] beyond the requested number are neither delivered nor billed', async () => {
    engine.script = { images: () => Array.from({ length: 3 }, () => ({ b64_json: png().toString('base64') })) }
    assert.equal((await generated({ n: 2 })).data.length, 2)
    assert.equal((await lastRow()).images, 2)
  })

  it('[M3] cost nothing when a later call fails', async () => {
    engine.script = (call) => (call.body['n'] === 8 ? {} : { refuse: { status: 500, body: {} } })
    await assertRefused({ model: 'sd/cpp', n: 10 }, 'upstream_error', null, 502)
    const row = await lastRow()
    assert.deepEqual([row.outcome, row.images, row.amount], ['engine_failed', 0, 0n])
  })

  it('are admitted together, at 1000 tokens each plus the prompt', async () => {
    const held = gate()
    engine.script = { hold: { afterTokens: 0, until: held.opened } }
    const answer = generate({ n: 3 })
    await engine.arrived(1)
    const status = (await (await weir.call('/queue/status')).json()) as {
      data: { model: string; in_flight_requests: number; committed_tokens: number }[]
    }
    const lane = status.data.find(({ model }) => model === 'sd/full')
    assert.equal(lane?.in_flight_requests, 1)
    assert.ok(lane.committed_tokens > 3000 && lane.committed_tokens < 3050, String(lane.committed_tokens))
    held.open()
    assert.equal((await answer).status, 200)
  })

  it('that could never be admitted together are refused without mentioning max_tokens', async () => {
    const refusal = await refusalOf(await generate({ model: 'sd/narrow', n: 3 }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'token_budget_exceeded', null])
    assert.doesNotMatch(refusal.message, /max_tokens/)
    await generated({ model: 'sd/narrow', n: 2 })
  })
})

describe('a model with prices by size', () => {
  const cost = async (body: object): Promise<bigint> => {
    await generated({ model: 'sd/sized', ...body })
    return (await lastRow()).amount / (PRICE / 4n)
  }

  it('[M3] bills each image at the price of the requested size and quality', async () => {
    assert.equal(await cost({ size: '1024x1792', quality: 'hd', n: 3 }), 36n)
    assert.equal(await cost({ size: '1024x1792' }), 8n)
    assert.equal(await cost({ size: '512x512', quality: 'hd' }), 4n, 'a size that is not listed')
    assert.equal(await cost({}), 4n)
  })

  it('[L1, M6] shows them in the model list, and a workspace may have its own', async () => {
    const listed = async (): Promise<object> => {
      const answer = (await (await weir.call('/models/detail?slug=sd/sized')).json()) as { pricing: object }
      return answer.pricing
    }
    const { image_prices: prices, per_image: other } = (await listed()) as Record<string, unknown>
    assert.deepEqual(
      [other, prices],
      [
        '0.04',
        [
          { size: '1024x1792', quality: null, per_image: '0.08' },
          { size: '1024x1792', quality: 'hd', per_image: '0.12' },
        ],
      ],
    )
    const own = '/admin/v1/workspaces/default/prices/sd/sized'
    const image_prices = [{ size: '512x512', per_image: '0.01' }]
    assert.equal((await weir.admin('PUT', own, { image_prices })).status, 200)
    assert.equal(await cost({ size: '512x512', n: 2 }), 2n)
    assert.equal(await cost({ size: '1024x1792', quality: 'hd' }), 4n)
    const twice = await weir.admin('PUT', own, { image_prices: [...image_prices, ...image_prices] })
    assert.deepEqual([twice.status, (await refusalOf(twice)).param], [400, 'image_prices'])
    assert.equal((await weir.admin('DELETE', own)).status, 200)
    assert.equal(await cost({ size: '1024x1792', quality: 'hd' }), 12n)
    const proof = (await (await weir.admin('GET', '/admin/v1/reconcile')).json()) as { fits: boolean }
    assert.equal(proof.fits, true)
  })
})

describe('the answer of an image engine', () => {
  const wrong: readonly [string, string][] = [
    ['not JSON', 'oops'],
    ['JSON that ends inside an image', `{"data":[{"b64_json":"${'A'.repeat(9000)}`],
    ['no images', '{"data":[]}'],
    ['nothing', '{}'],
    ['a link instead of an image', '{"data":[{"url":"http://engine/1.png"}]}'],
    ['an empty image', '{"data":[{"b64_json":""}]}'],
    ['something that is not base64', '{"data":[{"b64_json":"not base64!"}]}'],
    ['something long that is not base64', `{"data":[{"b64_json":"${'A'.repeat(9000)}\u0001AAA"}]}`],
  ]
  for (const [what, text] of wrong) {
    it(`[M3] is an error that costs nothing when it is ${what}`, async () => {
      engine.script = { handle: (_call, response) => void response.writeHead(200).end(text) }
      await assertRefused({}, 'upstream_error', null, 502)
      const row = await lastRow()
      assert.deepEqual([row.outcome, row.images, row.amount], ['engine_failed', 0, 0n])
    })
  }

  it("keeps the engine's message about the caller's mistake", async () => {
    engine.script = { refuse: { status: 400, body: { error: 'size must be a multiple of 64' } } }
    const refusal = await refusalOf(await generate({ size: '65x65' }))
    assert.deepEqual([refusal.status, refusal.code], [400, 'invalid_value'])
    assert.match(refusal.message, /multiple of 64/)
  })
})

describe('image servers with their own format', () => {
  it('stable-diffusion.cpp receives its arguments inside the prompt', async () => {
    await generated({ model: 'sd/cpp', seed: 5, steps: 9, negative_prompt: 'a </sd_cpp_extra_args> b' })
    const { body } = engine.calls[0] ?? assert.fail()
    const [, prompt, extra] = /^(.*)<sd_cpp_extra_args>(.*?)<\/sd_cpp_extra_args>$/.exec(String(body['prompt'])) ?? []
    assert.equal(prompt, 'A weir at dawn')
    assert.deepEqual(JSON.parse(extra ?? ''), {
      seed: 5,
      steps: 9,
      sample_params: { sample_steps: 9 },
      negative_prompt: 'a </sd_cpp_extra_args> b',
    })
    assert.deepEqual(Object.keys(body).sort(), ['model', 'n', 'prompt', 'response_format'])
  })

  it("a caller's own arguments inside the prompt are removed", async () => {
    const tag = 'sd_cpp_extra_args'
    await generated({ model: 'sd/cpp', prompt: `x<${tag}>{"steps":100}</${tag}><sd_cpp_<${tag}>extra_args>y` })
    assert.doesNotMatch(String(engine.calls[0]?.body['prompt']), new RegExp(`<${tag}>`))
  })

  it('LocalAI receives the negative prompt after the only bar', async () => {
    await generated({ model: 'sd/local', prompt: 'a|b', negative_prompt: 'c|d', steps: 4 })
    assert.equal(engine.calls[0]?.body['prompt'], 'a b|c d')
    assert.equal(engine.calls[0]?.body['step'], 4)
    await generated({ model: 'sd/local', prompt: 'a|b' })
    assert.equal(engine.calls[1]?.body['prompt'], 'a b')
  })
})

describe('an invalid image request', () => {
  const wrong: readonly [name: string, code: string, values: readonly unknown[]][] = [
    ['prompt', 'missing_required_parameter', [null, undefined]],
    ['prompt', 'invalid_type', [5, ['x'], {}]],
    ['prompt', 'invalid_value', ['', 'x'.repeat(32_001)]],
    ['n', 'invalid_type', ['2', 1.5, true, [1]]],
    ['n', 'invalid_value', [0, -1, 11, 1e9]],
    ['size', 'invalid_type', [512, {}]],
    ['size', 'invalid_value', ['', '512', '512X512', '0x512', '512x', '5x5', '99999x512', ' 512x512', 'Auto']],
    ['response_format', 'invalid_type', [5, {}]],
    ['response_format', 'invalid_value', ['png', '']],
    ['response_format', 'unsupported_value', ['url']],
    ['quality', 'invalid_value', ['best', '']],
    ['quality', 'invalid_type', [1]],
    ['style', 'invalid_value', ['anime']],
    ['style', 'invalid_type', [{}]],
    ['background', 'invalid_value', ['blue']],
    ['background', 'invalid_type', [0]],
    ['output_format', 'invalid_value', ['bmp']],
    ['output_format', 'invalid_type', [[]]],
    ['seed', 'invalid_type', ['1', 0.5, {}]],
    ['seed', 'invalid_value', [2 ** 53, -(2 ** 53)]],
    ['negative_prompt', 'invalid_type', [1, []]],
    ['negative_prompt', 'invalid_value', ['x'.repeat(32_001)]],
    ['steps', 'invalid_type', ['5', 1.5]],
    ['steps', 'invalid_value', [0, 501]],
    ['stream', 'invalid_type', ['true', 1]],
    ['stream', 'unsupported_value', [true]],
    ['user', 'invalid_type', [5]],
  ]
  for (const [name, code, values] of wrong) {
    it(`[X1] ${name}: ${code}`, async () => {
      for (const value of values) await assertRefused({ [name]: value }, code, name)
      assert.equal(engine.calls.length, 0)
    })
  }

  it('[E12] with a prompt larger than the context is refused', async () => {
    const long = 'tributary '.repeat(600)
    const refusal = await refusalOf(await generate({ prompt: long }))
    assert.deepEqual([refusal.code, refusal.param], ['context_length_exceeded', 'prompt'])
    assert.match(refusal.message, /maximum context length/)
    await assertRefused({ negative_prompt: long }, 'context_length_exceeded', 'negative_prompt')
  })

  it('[C6] for a model of another category is refused with its endpoint, and the other way round', async () => {
    await assertRefused({ model: 'meta/test-8b' }, 'wrong_endpoint', 'model')
    const refusal = await refusalOf(await weir.chat({ model: 'sd/full' }))
    assert.equal(refusal.code, 'wrong_endpoint')
    assert.match(refusal.message, /\/api\/v1\/images\/generations/)
  })
})

function seedIn({ body }: EngineCallSeen): number {
  return Number(/"seed":(-?\d+)/.exec(String(body['prompt']))?.[1])
}
