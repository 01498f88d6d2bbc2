import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { messageTokens, sumOf, textTokens, type TokenEstimate } from '../../src/shared/tokens/token-estimate.ts'
import { chatStage, refusalOf, roomyLimits } from '../support/chat-stage.ts'
import { rawClient } from '../support/raw-client.ts'
import { scriptedEngine, type EngineCallSeen, type ScriptedEngine } from '../support/scripted-engine.ts'
import { gate } from '../support/waiting.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

const everyParameter = [
  'temperature',
  'top_p',
  'frequency_penalty',
  'presence_penalty',
  'logprobs',
  'top_logprobs',
  'logit_bias',
  'seed',
  'n',
  'stop',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'response_format',
  'top_k',
  'min_p',
  'repetition_penalty',
  'reasoning_effort',
  'chat_template_kwargs',
]

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const pngUrl = `data:image/png;base64,${png.toString('base64')}`
const hello = [{ role: 'user', content: 'Hi' }]
const weather = { type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } }

let engine: ScriptedEngine
let weir: TestWeir
let images: Server
let imageRequests: string[] = []
let imagesAt = ''

before(async () => {
  images = createServer((request, response) => {
    imageRequests.push(request.url ?? '')
    if (request.url === '/cat.png') response.writeHead(200, { 'content-type': 'text/plain' }).end(png)
    else if (request.url === '/moved.png') response.writeHead(302, { location: '/cat.png' }).end()
    else if (request.url === '/page.png') response.writeHead(200, { 'content-type': 'image/png' }).end('<html></html>')
    else response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => images.listen(0, '127.0.0.1', resolve))
  imagesAt = `127.0.0.1:${(images.address() as AddressInfo).port}`
  engine = await scriptedEngine()
  const small = { engine: { kind: 'openai', urls: [engine.url] }, limits: { ...roomyLimits, token_budget: 1000 } }
  weir = await startWeir({
    server: { port: 0, admin_port: 0, drain_ms: 500, max_body_bytes: 200_000 },
    rate_limit: { requests_per_minute: 100_000 },
    images: { allowed_hosts: [imagesAt, imagesAt.replace('127.0.0.1', 'localhost')] },
    models: [
      modelEntry([engine.url], { supported_parameters: everyParameter }),
      modelEntry([engine.url], { id: 'meta/plain', aliases: [], supported_parameters: [] }),
      modelEntry([engine.url], { id: 'meta/eyes', aliases: [], categories: ['llm', 'vision'] }),
      modelEntry([engine.url], { id: 'meta/embed', aliases: [], categories: ['embedding'] }),
      modelEntry([engine.url], { id: 'meta/small', aliases: [], serverless: small }),
    ],
  })
})

after(async () => {
  await weir.stop()
  await engine.close()
  images.close()
})

beforeEach(() => {
  engine.script = {}
  imageRequests = []
})

function lastCall(): EngineCallSeen {
  const call = engine.calls.at(-1)
  assert.ok(call)
  return call
}

/** Sends a request that must be accepted, and returns what the engine received. */
async function forwarded(body: object): Promise<Record<string, unknown>> {
  const response = await weir.chat(body)
  assert.equal(response.status, 200, await response.clone().text())
  await response.text()
  return lastCall().body
}

async function assertRefused(body: object, code: string, param: string | null): Promise<void> {
  const calls = engine.calls.length
  const response = await weir.chat(body)
  const text = await response.clone().text()
  const refusal = await refusalOf(response)
  assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, code, param], text)
  assert.equal(refusal.type, 'invalid_request_error')
  assert.equal(refusal.retryAfter, null)
  assert.notEqual(refusal.message, '')
  assert.deepEqual(Object.keys((JSON.parse(text) as { error: object }).error).sort(), [
    'code',
    'message',
    'param',
    'type',
  ])
  assert.equal(engine.calls.length, calls, 'the engine was called')
}

async function sendRaw(body: string | Buffer, headers: Record<string, string> = {}): Promise<Response> {
  return weir.call('/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : new Uint8Array(body),
  })
}

const message = (changes: object): object => ({ messages: [{ role: 'user', content: 'Hi', ...changes }] })
const part = (it: unknown): object => message({ content: [it] })
const toolCall = (changes: object): object => ({
  messages: [
    ...hello,
    {
      role: 'assistant',
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' }, ...changes }],
    },
  ],
})

describe('chat requests that are refused, and their messages', () => {
  const missing = 'missing_required_parameter'
  const type = 'invalid_type'
  const value = 'invalid_value'
  const tools = (...list: unknown[]): object => ({ tools: list })

  const refused: Record<string, readonly (readonly [body: object, code: string, param: string])[]> = {
    model: [
      [{ model: undefined }, missing, 'model'],
      [{ model: null }, missing, 'model'],
      [{ model: 5 }, type, 'model'],
      [{ model: ['meta/test-8b'] }, type, 'model'],
    ],
    messages: [
      [{ messages: undefined }, missing, 'messages'],
      [{ messages: null }, missing, 'messages'],
      [{ messages: 'Hi' }, type, 'messages'],
      [{ messages: {} }, type, 'messages'],
      [{ messages: [] }, value, 'messages'],
      [{ messages: ['Hi'] }, type, 'messages[0]'],
      [{ messages: [null] }, type, 'messages[0]'],
    ],
    'a role': [
      [{ messages: [{ content: 'Hi' }] }, missing, 'messages[0].role'],
      [message({ role: 5 }), type, 'messages[0].role'],
      [message({ role: 'robot' }), value, 'messages[0].role'],
      [message({ role: 'function' }), value, 'messages[0].role'],
    ],
    content: [
      [{ messages: [...hello, { role: 'user' }] }, missing, 'messages[1].content'],
      [message({ content: null }), missing, 'messages[0].content'],
      [message({ content: 5 }), type, 'messages[0].content'],
      [message({ content: { type: 'text', text: 'Hi' } }), type, 'messages[0].content'],
      [message({ content: [] }), value, 'messages[0].content'],
      [message({ role: 'assistant', content: null }), missing, 'messages[0].content'],
      [message({ role: 'assistant', content: null, tool_calls: [] }), missing, 'messages[0].content'],
    ],
    'a part': [
      [part('Hi'), type, 'messages[0].content[0]'],
      [part({ text: 'Hi' }), missing, 'messages[0].content[0].type'],
      [part({ type: 'text' }), missing, 'messages[0].content[0].text'],
      [part({ type: 'text', text: 5 }), type, 'messages[0].content[0].text'],
      [part({ type: 'input_audio', input_audio: {} }), 'unsupported_content', 'messages[0].content[0].type'],
    ],
    'a message of a tool, or to one': [
      [{ messages: [...hello, { role: 'tool', content: '3' }] }, missing, 'messages[1].tool_call_id'],
      [toolCall({ id: undefined }), missing, 'messages[1].tool_calls[0].id'],
      [toolCall({ type: 'code' }), value, 'messages[1].tool_calls[0].type'],
      [toolCall({ function: { name: 'f' } }), missing, 'messages[1].tool_calls[0].function.arguments'],
      [toolCall({ function: { name: 'f', arguments: {} } }), type, 'messages[1].tool_calls[0].function.arguments'],
      [message({ name: 5 }), type, 'messages[0].name'],
    ],
    stream: [
      [{ stream: 'true' }, type, 'stream'],
      [{ stream: 1 }, type, 'stream'],
    ],
    stream_options: [
      [{ stream_options: { include_usage: true } }, value, 'stream_options'],
      [{ stream: false, stream_options: {} }, value, 'stream_options'],
      [{ stream: null, stream_options: { include_usage: true } }, value, 'stream_options'],
      [{ stream: true, stream_options: true }, type, 'stream_options'],
      [{ stream: true, stream_options: { include_usage: 'yes' } }, type, 'stream_options.include_usage'],
    ],
    logprobs: [[{ logprobs: 1 }, type, 'logprobs']],
    top_logprobs: [
      [{ logprobs: true, top_logprobs: -1 }, value, 'top_logprobs'],
      [{ logprobs: true, top_logprobs: 21 }, value, 'top_logprobs'],
      [{ logprobs: true, top_logprobs: 1.5 }, type, 'top_logprobs'],
      [{ top_logprobs: 2 }, value, 'top_logprobs'],
      [{ logprobs: false, top_logprobs: 2 }, value, 'top_logprobs'],
    ],
    seed: [
      [{ seed: 1.5 }, type, 'seed'],
      [{ seed: '1' }, type, 'seed'],
      [{ seed: 1e19 }, value, 'seed'],
      [{ seed: -1e19 }, value, 'seed'],
    ],
    n: [
      [{ n: 0 }, value, 'n'],
      [{ n: 129 }, value, 'n'],
      [{ n: 1.5 }, type, 'n'],
      [{ n: '2' }, type, 'n'],
    ],
    stop: [
      [{ stop: 5 }, type, 'stop'],
      [{ stop: ['a', 'b', 'c', 'd', 'e'] }, value, 'stop'],
      [{ stop: ['a', 5] }, type, 'stop[1]'],
    ],
    tools: [
      [{ tools: weather }, type, 'tools'],
      [tools('get_weather'), type, 'tools[0]'],
      [tools({ function: { name: 'f' } }), missing, 'tools[0].type'],
      [tools({ type: 'function' }), missing, 'tools[0].function'],
      [tools({ type: 'web_search', function: { name: 'f' } }), value, 'tools[0].type'],
      [tools({ type: 'function', function: {} }), missing, 'tools[0].function.name'],
      [tools(weather, { type: 'function', function: { name: 'two words' } }), value, 'tools[1].function.name'],
      [tools({ type: 'function', function: { name: 'x'.repeat(65) } }), value, 'tools[0].function.name'],
      [tools({ type: 'function', function: { name: 'f', parameters: '{}' } }), type, 'tools[0].function.parameters'],
      [tools({ type: 'function', function: { name: 'f', strict: 1 } }), type, 'tools[0].function.strict'],
      [{ tools: Array.from({ length: 129 }, () => weather) }, value, 'tools'],
    ],
    tool_choice: [
      [{ tools: [weather], tool_choice: 'maybe' }, value, 'tool_choice'],
      [{ tools: [weather], tool_choice: 5 }, type, 'tool_choice'],
      [{ tools: [weather], tool_choice: { type: 'function' } }, missing, 'tool_choice.function'],
      [
        { tools: [weather], tool_choice: { type: 'function', function: { name: 'other' } } },
        value,
        'tool_choice.function.name',
      ],
      [{ tool_choice: { type: 'function', function: { name: 'f' } } }, value, 'tool_choice.function.name'],
      [{ tool_choice: 'required' }, value, 'tool_choice'],
      [{ tools: [], tool_choice: 'required' }, value, 'tool_choice'],
    ],
    parallel_tool_calls: [[{ tools: [weather], parallel_tool_calls: 'no' }, type, 'parallel_tool_calls']],
    response_format: [
      [{ response_format: 'json_object' }, type, 'response_format'],
      [{ response_format: {} }, missing, 'response_format.type'],
      [{ response_format: { type: 'xml' } }, value, 'response_format.type'],
      [{ response_format: { type: 'json_schema' } }, missing, 'response_format.json_schema'],
      [{ response_format: { type: 'json_schema', json_schema: {} } }, missing, 'response_format.json_schema.name'],
      [
        { response_format: { type: 'json_schema', json_schema: { name: 'a b' } } },
        value,
        'response_format.json_schema.name',
      ],
      [
        { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: '{}' } } },
        type,
        'response_format.json_schema.schema',
      ],
    ],
    top_k: [
      [{ top_k: -2 }, value, 'top_k'],
      [{ top_k: 1.5 }, type, 'top_k'],
    ],
    repetition_penalty: [
      [{ repetition_penalty: 0 }, value, 'repetition_penalty'],
      [{ repetition_penalty: -1 }, value, 'repetition_penalty'],
      [{ repetition_penalty: '1' }, type, 'repetition_penalty'],
    ],
    reasoning_effort: [
      [{ reasoning_effort: 'extreme' }, value, 'reasoning_effort'],
      [{ reasoning_effort: 5 }, type, 'reasoning_effort'],
    ],
    chat_template_kwargs: [[{ chat_template_kwargs: 'x' }, type, 'chat_template_kwargs']],
  }
  for (const name of ['max_tokens', 'max_completion_tokens']) {
    refused[name] = [
      [{ [name]: 0 }, value, name],
      [{ [name]: -1 }, value, name],
      [{ [name]: 4097 }, value, name],
      [{ [name]: 1.5 }, type, name],
      [{ [name]: '5' }, type, name],
      [{ [name]: true }, type, name],
    ]
  }
  for (const [name, least, most] of [
    ['temperature', 0, 2],
    ['top_p', 0, 1],
    ['frequency_penalty', -2, 2],
    ['presence_penalty', -2, 2],
    ['min_p', 0, 1],
  ] as const) {
    refused[name] = [
      [{ [name]: least - 0.01 }, value, name],
      [{ [name]: most + 0.01 }, value, name],
      [{ [name]: String(most) }, type, name],
      [{ [name]: [most] }, type, name],
      [{ [name]: true }, type, name],
    ]
  }
  for (const name of ['user', 'service_tier', 'safety_identifier', 'prompt_cache_key']) {
    refused[name] = [[{ [name]: 5 }, type, name]]
  }
  refused['metadata'] = [[{ metadata: 'x' }, type, 'metadata']]
  refused['store'] = [[{ store: 'yes' }, type, 'store']]

  for (const [name, cases] of Object.entries(refused)) {
    it(`[E1][X1] ${name}: ${cases.length} mistakes`, async () => {
      for (const [body, code, param] of cases) await assertRefused(body, code, param)
    })
  }

  it('[X1] a number too large for a double is refused', async () => {
    const body = JSON.stringify({ model: 'meta/test-8b', messages: hello, temperature: 0 }).replace(':0}', ':1e999}')
    const refusal = await refusalOf(await sendRaw(body))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'invalid_type', 'temperature'])
  })

  it('[C6] a model of another category is refused, and the message names its endpoint', async () => {
    await assertRefused({ model: 'meta/embed' }, 'wrong_endpoint', 'model')
    const { message: text } = await refusalOf(await weir.chat({ model: 'meta/embed' }))
    assert.match(text, /\/api\/v1\/embeddings/)
  })

  it('[C6] the endpoint is checked before the parameters', async () => {
    await assertRefused({ model: 'meta/embed', temperature: 99 }, 'wrong_endpoint', 'model')
  })

  it('[X1] a model that does not exist is 404', async () => {
    const refusal = await refusalOf(await weir.chat({ model: 'meta/none', temperature: 99 }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [404, 'model_not_found', 'model'])
  })
})

describe('chat requests that are accepted, and what the engine receives', () => {
  const bounds: Record<string, readonly object[]> = {
    temperature: [{ temperature: 0 }, { temperature: 2 }, { temperature: 0.7 }],
    top_p: [{ top_p: 0 }, { top_p: 1 }],
    frequency_penalty: [{ frequency_penalty: -2 }, { frequency_penalty: 2 }],
    presence_penalty: [{ presence_penalty: -2 }, { presence_penalty: 2 }],
    logprobs: [{ logprobs: true }, { logprobs: false }],
    top_logprobs: [
      { logprobs: true, top_logprobs: 0 },
      { logprobs: true, top_logprobs: 20 },
    ],
    seed: [{ seed: 0 }, { seed: -5 }, { seed: Number.MAX_SAFE_INTEGER }],
    n: [{ n: 1 }, { n: 2 }],
    stop: [{ stop: 'a' }, { stop: ['a', 'b', 'c', 'd'] }],
    tools: [{ tools: [weather] }, { tools: Array.from({ length: 128 }, () => weather) }],
    tool_choice: [
      { tools: [weather], tool_choice: 'none' },
      { tools: [weather], tool_choice: 'auto' },
      { tools: [weather], tool_choice: 'required' },
      { tools: [weather], tool_choice: { type: 'function', function: { name: 'get_weather' } } },
    ],
    parallel_tool_calls: [{ tools: [weather], parallel_tool_calls: false }],
    response_format: [
      { response_format: { type: 'text' } },
      { response_format: { type: 'json_object' } },
      {
        response_format: {
          type: 'json_schema',
          json_schema: {
            name: 'answer',
            strict: true,
            schema: { type: 'object', properties: { a: { type: 'null' } } },
          },
        },
      },
    ],
    logit_bias: [{ logit_bias: { '50256': -100, '1': 100 } }],
    top_k: [{ top_k: -1 }, { top_k: 0 }, { top_k: 1000 }],
    min_p: [{ min_p: 0 }, { min_p: 1 }],
    repetition_penalty: [{ repetition_penalty: 0.01 }, { repetition_penalty: 5 }],
    reasoning_effort: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'].map((it) => ({ reasoning_effort: it })),
    chat_template_kwargs: [{ chat_template_kwargs: { enable_thinking: false } }],
  }
  it('[E1] every parameter a model lists reaches the engine unchanged, at its bounds', async () => {
    assert.deepEqual(Object.keys(bounds).sort(), [...everyParameter].sort())
    for (const cases of Object.values(bounds)) {
      for (const body of cases) {
        assert.deepEqual(await forwarded(body), { model: 'engine-name', max_tokens: 256, messages: hello, ...body })
      }
    }
  })

  it('a plain request is forwarded with the model’s name at the engine and its output limit, and nothing else', async () => {
    assert.deepEqual(await forwarded({}), { model: 'engine-name', max_tokens: 256, messages: hello })
    assert.equal(lastCall().path, '/v1/chat/completions')
    assert.equal(lastCall().headers['content-type'], 'application/json')
    assert.equal(lastCall().headers.authorization, undefined, 'the caller’s key went to the engine')
  })

  it('streaming requests usage from the engine, including running usage', async () => {
    const expected = {
      model: 'engine-name',
      max_tokens: 256,
      messages: hello,
      stream: true,
      stream_options: { include_usage: true, continuous_usage_stats: true },
    }
    assert.deepEqual(await forwarded({ stream: true }), expected)
    assert.deepEqual(await forwarded({ stream: true, stream_options: { include_usage: false, x: 1 } }), expected)
    assert.deepEqual(await forwarded({ stream: false }), { model: 'engine-name', max_tokens: 256, messages: hello })
  })

  it('null counts as absent for every optional field', async () => {
    const names = [...everyParameter, 'stream', 'stream_options', 'max_tokens', 'max_completion_tokens', 'user']
    names.push('metadata', 'store', 'service_tier', 'safety_identifier', 'prompt_cache_key')
    const nulls = Object.fromEntries(names.map((name) => [name, null]))
    const plain = { model: 'engine-name', max_tokens: 256, messages: hello }
    assert.deepEqual(await forwarded(nulls), plain)
    assert.deepEqual(await forwarded({ model: 'meta/plain', ...nulls }), plain)
  })

  it('fields that only matter to the caller are accepted for every model and not forwarded', async () => {
    const own = {
      user: 'u-1',
      metadata: { a: 'b' },
      store: false,
      service_tier: 'auto',
      safety_identifier: 's',
      prompt_cache_key: 'k',
    }
    const plain = { model: 'engine-name', max_tokens: 256, messages: hello }
    assert.deepEqual(await forwarded({ model: 'meta/plain', ...own }), plain)
  })

  it('unknown fields are ignored and not forwarded, at any position', async () => {
    const body = { first: { a: [1, '}', '\\"'] }, model: 'test-8b', n_predict: 5, messages: hello, last: ',"x":{' }
    const response = await sendRaw(JSON.stringify(body))
    assert.equal(response.status, 200)
    assert.deepEqual(lastCall().body, { model: 'engine-name', max_tokens: 256, messages: hello })
    assert.doesNotMatch(lastCall().rawBody, /first|n_predict|last/)
  })

  it('unknown fields nested in messages are not forwarded either', async () => {
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }
    const body = await forwarded({
      model: 'meta/eyes',
      messages: [
        { role: 'system', content: 'Be brief.', cache_control: { type: 'ephemeral' } },
        { role: 'user', content: [{ type: 'text', text: 'Hi', cache_control: {} }] },
        {
          role: 'user',
          content: [{ type: 'image_url', image_url: { url: pngUrl, detail: 'low' }, cache_control: {} }],
        },
        { role: 'user', content: [{ type: 'image_url', image_url: { url: pngUrl, uuid: 'x' } }] },
        { role: 'assistant', content: null, tool_calls: [{ ...call, provider: { a: 1 } }], audio: null },
        { role: 'assistant', tool_calls: [{ ...call, function: { ...call.function, signature: 'x' } }] },
        { role: 'tool', tool_call_id: 'a', content: '3', is_error: false },
      ],
    })
    assert.deepEqual(body['messages'], [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: pngUrl, detail: 'low' } }] },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: pngUrl } }] },
      { role: 'assistant', tool_calls: [call] },
      { role: 'assistant', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'a', content: '3' },
    ])
  })

  for (const [what, messages] of [
    ['of an image', [{ role: 'user', content: [{ type: 'image_url', image_url: { url: pngUrl, uuid: 'x' } }] }]],
    ['of a tool call', toolCall({ provider: 1 })],
    ['of a tool call’s function', toolCall({ function: { name: 'f', arguments: '{}', signature: 'x' } })],
    ['of a text part', [{ role: 'user', content: [{ type: 'text', text: 'Hi', signature: 'x' }] }]],
    ['of a message', [{ role: 'user', content: 'Hi', signature: 'x' }]],
  ] as const) {
    it(`an unknown field ${what} is dropped even if it is the only one`, async () => {
      const list = 'messages' in messages ? messages.messages : messages
      await forwarded({ model: 'meta/eyes', messages: list })
      assert.doesNotMatch(lastCall().rawBody, /uuid|provider|signature/)
    })
  }

  it('[E1] the engine receives developer as system, and the other roles unchanged', async () => {
    const { messages } = await forwarded({
      messages: [
        { role: 'developer', content: 'Be brief.' },
        { role: 'system', content: 'Be kind.' },
        { role: 'user', name: 'ann', content: [{ type: 'text', text: 'Hi' }] },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'a', content: '3' },
        { role: 'assistant', content: 'Three.', reasoning_content: 'hm', refusal: null },
      ],
    })
    assert.deepEqual(messages, [
      { role: 'system', content: 'Be brief.' },
      { role: 'system', content: 'Be kind.' },
      { role: 'user', name: 'ann', content: [{ type: 'text', text: 'Hi' }] },
      { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: 'a', content: '3' },
      { role: 'assistant', content: 'Three.', reasoning_content: 'hm' },
    ])
  })

  it('text arrives byte for byte: every script, escapes, more digits than a double has', async () => {
    const content = 'Grüße 中文 👩‍👩‍👧 \u0000 " \\ \u2028 \ud83d\ude00'
    const text = JSON.stringify({ model: 'meta/test-8b', messages: [{ role: 'user', content }], seed: 0 })
    const response = await sendRaw(text.replace('"seed":0', '"seed" : 9007199254740993'))
    assert.equal(response.status, 200)
    assert.deepEqual(lastCall().body['messages'], [{ role: 'user', content }])
    assert.match(lastCall().rawBody, /9007199254740993/)
  })

  it('[C2][C3] a short id reaches the same model, and the answer names the slug', async () => {
    const response = await weir.chat({ model: 'test-8b' })
    const { model } = (await response.json()) as { model: string }
    assert.equal(model, 'meta/test-8b')
    assert.equal(lastCall().body['model'], 'engine-name')
  })

  it('the engine receives the slug when the catalog has no other name for it', async () => {
    assert.equal((await forwarded({ model: 'meta/small' }))['model'], 'meta/small')
  })
})

describe('chat parameters that a model does not list', () => {
  const noOperations = {
    n: 1,
    top_p: 1,
    frequency_penalty: 0,
    presence_penalty: 0,
    logprobs: false,
    response_format: { type: 'text' },
  }

  it('[L4] a value that changes nothing is accepted and not forwarded', async () => {
    const plain = { model: 'engine-name', max_tokens: 256, messages: hello }
    for (const [name, value] of Object.entries(noOperations)) {
      assert.deepEqual(await forwarded({ model: 'meta/plain', [name]: value }), plain, name)
    }
    assert.deepEqual(await forwarded({ model: 'meta/plain', ...noOperations }), plain)
  })

  const changing = {
    temperature: 0.5,
    top_p: 0.9,
    frequency_penalty: 0.1,
    presence_penalty: -0.1,
    logprobs: true,
    seed: 1,
    n: 2,
    stop: 'x',
    tools: [weather],
    parallel_tool_calls: false,
    response_format: { type: 'json_object' },
    logit_bias: { '1': 1 },
    top_k: 5,
    min_p: 0.1,
    repetition_penalty: 1.1,
    reasoning_effort: 'low',
    chat_template_kwargs: { a: 1 },
  }
  for (const [name, value] of Object.entries(changing)) {
    it(`[L4] ${name} that would change the output is refused before any work`, () =>
      assertRefused({ model: 'meta/plain', [name]: value }, 'unsupported_parameter', name))
  }

  it('[L4] an invalid value is reported before an unsupported parameter', () =>
    assertRefused({ model: 'meta/plain', temperature: 99 }, 'invalid_value', 'temperature'))
})

describe('the output limit of a chat', () => {
  /** One message to a model without a tokenizer. */
  const inputOf = (content: string): TokenEstimate => sumOf([textTokens(content, undefined), messageTokens(1)])

  it('[E12] max_tokens is forwarded, and max_completion_tokens overrides it', async () => {
    for (const [body, allowed] of [
      [{ max_tokens: 7 }, 7],
      [{ max_completion_tokens: 9 }, 9],
      [{ max_tokens: 7, max_completion_tokens: 9 }, 9],
      [{ max_completion_tokens: 9, max_tokens: 4096 }, 9],
      [{ max_tokens: 7, max_completion_tokens: null }, 7],
      [{ max_tokens: 4096 }, 4096],
    ] as const) {
      assert.deepEqual(await forwarded(body), { model: 'engine-name', max_tokens: allowed, messages: hello })
    }
    await assertRefused({ max_tokens: 7, max_completion_tokens: 4097 }, 'invalid_value', 'max_completion_tokens')
  })

  it('[Q1][E12] without it the model’s default_max_tokens is enforced at the engine and charged to the budget', async () => {
    const held = gate()
    engine.script = () => ({
      handle: async (_call, response) => {
        await held.opened
        response.end('{}')
      },
    })
    const arrived = engine.calls.length + 1
    const answer = weir.chat({})
    await engine.arrived(arrived)
    assert.equal(lastCall().body['max_tokens'], 256)
    const status = (await (await weir.call('/queue/status')).json()) as {
      data: { model: string; committed_tokens: number; in_flight_requests: number; available_budget: number }[]
    }
    const lane = status.data.find(({ model }) => model === 'meta/test-8b')
    assert.equal(lane?.committed_tokens, inputOf('Hi').charged + 256)
    assert.equal(lane.available_budget, 100_000 - lane.committed_tokens)
    assert.equal(lane.in_flight_requests, 1)
    held.open()
    await answer
  })

  it('[Q1] each of n choices is charged', async () => {
    const held = gate()
    engine.script = () => ({
      handle: async (_call, response) => {
        await held.opened
        response.end('{}')
      },
    })
    const arrived = engine.calls.length + 1
    const answer = weir.chat({ n: 3, max_tokens: 100 })
    await engine.arrived(arrived)
    const status = (await (await weir.call('/queue/status')).json()) as {
      data: { model: string; committed_tokens: number }[]
    }
    assert.equal(
      status.data.find(({ model }) => model === 'meta/test-8b')?.committed_tokens,
      inputOf('Hi').charged + 300,
    )
    held.open()
    await answer
  })

  it('[E12] the default shrinks to what is left of the context, however long the input may be', async () => {
    const content = 'x'.repeat(23_000)
    const left = 8192 - inputOf(content).charged
    assert.ok(left > 0 && left < 256)
    assert.equal((await forwarded(message({ content })))['max_tokens'], left)
    // By the high estimate nothing is left, but the input may well fit.
    const long = 'x'.repeat(50_000)
    assert.ok(inputOf(long).charged > 8192 && inputOf(long).likely < 8192)
    assert.equal((await forwarded(message({ content: long })))['max_tokens'], 1)
  })

  it('[E12] the default leaves room for 1,700 words in a context of 2,000 tokens', async (t) => {
    const model = { context_length: 2000, max_completion_tokens: 1000, default_max_tokens: 600 }
    const stage = await chatStage(t, { model })
    await stage.weir.chat(message({ content: 'word '.repeat(1700) }))
    const allowed = Number(stage.engine.calls[0]?.body['max_tokens'])
    assert.ok(allowed >= 1 && 1700 + allowed <= 2000, `max_tokens ${allowed}`)
  })

  it('[E12] the default does not shrink for an image, whose tokens only the model knows', async (t) => {
    const model = { categories: ['vision'], context_length: 300, max_completion_tokens: 41, default_max_tokens: 41 }
    const stage = await chatStage(t, { model })
    const content = [
      { type: 'text', text: 'what is this?' },
      { type: 'image_url', image_url: { url: pngUrl } },
    ]
    await stage.weir.chat({ messages: [{ role: 'user', content }] })
    assert.equal(stage.engine.calls[0]?.body['max_tokens'], 41)
  })

  it('[E12] a request larger than the context is refused with the message that SDKs recognise', async () => {
    const content = 'x'.repeat(30_000)
    const body = { messages: [{ role: 'user', content }], max_tokens: 4096 }
    await assertRefused(body, 'context_length_exceeded', 'messages')
    const { message: text } = await refusalOf(await weir.chat(body))
    assert.match(text, /maximum context length is 8192 tokens/)
    await assertRefused(message({ content: 'x'.repeat(60_000) }), 'context_length_exceeded', 'messages')
    const left = 8192 - inputOf(content).likely
    assert.equal((await forwarded({ ...body, max_tokens: left }))['max_tokens'], left)
    await assertRefused({ ...body, max_tokens: left + 1 }, 'context_length_exceeded', 'messages')
  })

  it('[E12] tools and schemas count as input', async () => {
    const description = 'x'.repeat(60_000)
    await assertRefused(
      { tools: [{ type: 'function', function: { name: 'f', description } }] },
      'context_length_exceeded',
      'messages',
    )
  })

  it('[Q1][Q7] a request larger than the whole budget is refused at once', async () => {
    const most = 1000 - inputOf('Hi').charged
    await assertRefused({ model: 'meta/small', max_tokens: most + 1 }, 'token_budget_exceeded', 'max_tokens')
    assert.equal((await forwarded({ model: 'meta/small', max_tokens: most }))['max_tokens'], most)
  })
})

describe('images in a chat', () => {
  const image = (url: unknown, role = 'user'): object => ({
    model: 'meta/eyes',
    messages: [
      {
        role,
        content: [
          { type: 'text', text: 'What is it?' },
          { type: 'image_url', image_url: url },
        ],
      },
    ],
  })
  const imageIn = (body: Record<string, unknown>): unknown =>
    (body['messages'] as { content: { image_url: unknown }[] }[])[0]?.content[1]?.image_url

  it('[C7] a data URL reaches the engine unchanged', async () => {
    assert.deepEqual(imageIn(await forwarded(image({ url: pngUrl }))), { url: pngUrl })
    assert.deepEqual(imageIn(await forwarded(image({ url: pngUrl, detail: 'high' }))), { url: pngUrl, detail: 'high' })
  })

  it('[C7] a bare string is accepted, and the engine receives the usual object', async () => {
    assert.deepEqual(imageIn(await forwarded(image(pngUrl))), { url: pngUrl })
  })

  it('an image is charged as tokens', async () => {
    const held = gate()
    engine.script = () => ({
      handle: async (_call, response) => {
        await held.opened
        response.end('{}')
      },
    })
    const arrived = engine.calls.length + 1
    const answer = weir.chat({ ...image({ url: pngUrl }), max_tokens: 1 })
    await engine.arrived(arrived)
    const status = (await (await weir.call('/queue/status')).json()) as {
      data: { model: string; committed_tokens: number }[]
    }
    const charged = status.data.find(({ model }) => model === 'meta/eyes')?.committed_tokens ?? 0
    assert.ok(charged > 500, `charged ${charged}`)
    held.open()
    await answer
  })

  it('a URL that is not an image in a data URL is refused', async () => {
    const param = 'messages[0].content[1].image_url.url'
    for (const url of [
      'data:image/svg+xml;base64,AAAA',
      'data:text/html;base64,AAAA',
      'data:image/png,raw',
      'file:///etc/passwd',
      'ftp://x/a.png',
      'cat.png',
      `//${imagesAt}/cat.png`,
    ]) {
      await assertRefused(image({ url }), 'invalid_value', param)
    }
    await assertRefused(image({}), 'missing_required_parameter', param)
    await assertRefused(image({ url: 5 }), 'invalid_type', param)
    await assertRefused(image(5), 'invalid_type', 'messages[0].content[1].image_url')
    await assertRefused(
      image({ url: pngUrl, detail: 'ultra' }),
      'invalid_value',
      'messages[0].content[1].image_url.detail',
    )
  })

  it('a URL is refused unless the operator allows its host: neither Weir nor the engine fetches it', async () => {
    const otherPort = imagesAt.replace(/\d+$/, '1')
    for (const url of [
      'http://169.254.169.254/latest/meta-data',
      'https://example.com/cat.png',
      'HTTP://example.com/cat.png',
      `http://${otherPort}/cat.png`,
      `http://${imagesAt}@example.com/cat.png`,
      'http://',
    ]) {
      await assertRefused(image({ url }), 'unsupported_content', 'messages[0].content[1]')
    }
    assert.deepEqual(imageRequests, [])
  })

  it('[C7] an image at an allowed host reaches the engine as a data URL with the type of its content', async () => {
    const url = `http://${imagesAt}/cat.png`
    assert.deepEqual(imageIn(await forwarded(image({ url, detail: 'low' }))), { url: pngUrl, detail: 'low' })
    assert.deepEqual(imageIn(await forwarded(image(url))), { url: pngUrl })
    assert.deepEqual(imageRequests, ['/cat.png', '/cat.png'])
    assert.ok(!lastCall().rawBody.includes(imagesAt))
  })

  it('an allowed name that resolves to a private address is refused, and nothing is fetched', async () => {
    const url = `http://${imagesAt.replace('127.0.0.1', 'localhost')}/cat.png`
    await assertRefused(image({ url }), 'invalid_value', 'messages[0].content[1]')
    assert.deepEqual(imageRequests, [])
  })

  it('redirects are not followed; a missing file or one that is not an image is refused', async () => {
    for (const path of ['/moved.png', '/page.png', '/none.png']) {
      await assertRefused(image({ url: `http://${imagesAt}${path}` }), 'invalid_value', 'messages[0].content[1]')
    }
    assert.deepEqual(imageRequests, ['/moved.png', '/page.png', '/none.png'])
  })

  it('[C7] images are only allowed for vision models, in user messages', async () => {
    await assertRefused(
      { ...image({ url: pngUrl }), model: 'meta/test-8b' },
      'unsupported_content',
      'messages[0].content[1]',
    )
    await assertRefused(image({ url: pngUrl }, 'system'), 'unsupported_content', 'messages[0].content[1]')
  })
})

describe('the body of a chat', () => {
  it('[X1] anything but a JSON object is refused', async () => {
    const bad = [
      '',
      '{',
      '[]',
      '"x"',
      'null',
      '5',
      '{"model":}',
      '{"model":"meta/test-8b",}',
      Buffer.from('{"a":"\xff"}', 'latin1'),
    ]
    for (const body of bad) {
      const refusal = await refusalOf(await sendRaw(body))
      assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'invalid_json', null], String(body))
    }
  })

  it('[X1] the message does not quote the body', async () => {
    const { message: text } = await refusalOf(await sendRaw('{"messages": "my secret" oops}'))
    assert.doesNotMatch(text, /secret|oops/)
  })

  it('a repeated field is refused, however it is escaped: the engine must read what was checked', async () => {
    const messages = JSON.stringify(hello)
    for (const body of [
      `{"model":"meta/test-8b","messages":${messages},"max_tokens":1,"max_tokens":4096}`,
      `{"model":"meta/test-8b","messages":${messages},"max_tokens":1,"max_\\u0074okens":4096}`,
      `{"model":"meta/test-8b","model":"meta/plain","messages":${messages}}`,
      `{"model":"meta/test-8b","messages":${messages},"messages":[]}`,
      '{"model":"meta/test-8b","messages":[{"role":"user","content":"short","content":"much longer"}]}',
      '{"model":"meta/test-8b","messages":[{"role":"user","content":"short","\\u0063ontent":"much longer"}]}',
    ]) {
      const calls = engine.calls.length
      const refusal = await refusalOf(await sendRaw(body))
      assert.deepEqual([refusal.status, refusal.code], [400, 'invalid_json'], body)
      assert.equal(engine.calls.length, calls)
    }
  })

  it('[X1] must be JSON and uncompressed', async () => {
    const body = JSON.stringify({ model: 'meta/test-8b', messages: hello })
    for (const headers of [
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/x-www-form-urlencoded' },
      { 'content-type': 'application/jsonp' },
      { 'content-encoding': 'gzip' },
      { 'content-encoding': 'br' },
    ]) {
      const refusal = await refusalOf(await sendRaw(body, headers))
      assert.deepEqual([refusal.status, refusal.code], [415, 'unsupported_media_type'], JSON.stringify(headers))
    }
    for (const type of ['application/json; charset=utf-8', 'Application/JSON']) {
      assert.equal((await sendRaw(body, { 'content-type': type })).status, 200, type)
    }
  })

  it('[X1] a body over the limit is refused, by its declared length and by its bytes', async () => {
    const body = JSON.stringify({ model: 'meta/test-8b', messages: hello, user: 'x'.repeat(200_000) })
    const declared = await refusalOf(await sendRaw(body))
    assert.deepEqual([declared.status, declared.code], [413, 'request_too_large'])

    const client = await rawClient(weir.base)
    client.send(
      `POST /api/v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${weir.key}\r\n` +
        'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
    )
    const piece = 'x'.repeat(50_000)
    for (let sent = 0; sent < 5; sent++) client.send(`${piece.length.toString(16)}\r\n${piece}\r\n`)
    await client.sees('request_too_large')
    assert.match(client.received, /^HTTP\/1\.1 413 /)
    client.leave()
  })

  it('a body is read completely, however it is chunked', async () => {
    const client = await rawClient(weir.base)
    const body = JSON.stringify({ model: 'meta/test-8b', messages: [{ role: 'user', content: 'ünï' }] })
    client.send(
      `POST /api/v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${weir.key}\r\n` +
        'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
    )
    for (const byte of Buffer.from(body)) {
      client.socket.write(Buffer.concat([Buffer.from('1\r\n'), Buffer.from([byte]), Buffer.from('\r\n')]))
    }
    client.send('0\r\n\r\n')
    await client.sees('chat.completion')
    assert.deepEqual(lastCall().body['messages'], [{ role: 'user', content: 'ünï' }])
    client.leave()
  })
})

describe('the answer of a chat', () => {
  it('[E1] is exactly a chat.completion', async () => {
    engine.script = { tokens: ['Hel', 'lo'], promptTokens: 10, cachedTokens: 4 }
    const before = Math.floor(Date.now() / 1000)
    const response = await weir.chat({})
    const id = response.headers.get('x-request-id')
    assert.match(id ?? '', /^[0-9a-z]{32}$/)
    assert.match(response.headers.get('content-type') ?? '', /^application\/json/)
    assert.equal(response.headers.get('x-queue-wait-ms'), '0')
    const body = (await response.json()) as { created: number }
    assert.ok(Number.isInteger(body.created) && body.created >= before && body.created <= Date.now() / 1000)
    assert.deepEqual(body, {
      id: `chatcmpl-${id}`,
      object: 'chat.completion',
      created: body.created,
      model: 'meta/test-8b',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: {
        prompt_tokens: 10,
        completion_tokens: 2,
        total_tokens: 12,
        prompt_tokens_details: { cached_tokens: 4 },
        completion_tokens_details: { reasoning_tokens: 0 },
      },
    })
  })

  interface Answer {
    choices: { index: number; message: Record<string, unknown>; logprobs: unknown; finish_reason: string }[]
    usage: Record<string, unknown>
  }
  async function answerTo(choice: object, more: object = {}): Promise<Answer> {
    engine.script = {
      handle: (_call, response) =>
        void response.end(
          JSON.stringify({
            id: 'x',
            model: 'engine-name',
            choices: [{ index: 0, finish_reason: 'stop', ...choice }],
            usage: { prompt_tokens: 1, completion_tokens: 5, total_tokens: 6 },
            system_fingerprint: 'secret-build',
            ...more,
          }),
        ),
    }
    const response = await weir.chat({})
    assert.equal(response.status, 200)
    const text = await response.text()
    assert.doesNotMatch(text, /engine-name|secret-build/)
    return JSON.parse(text) as Answer
  }

  it('[E1] has the engine’s finish_reason', async () => {
    for (const reason of ['stop', 'length', 'tool_calls', 'content_filter']) {
      const { choices } = await answerTo({ message: { content: 'x' }, finish_reason: reason })
      assert.equal(choices[0]?.finish_reason, reason)
    }
  })

  it('[E1] has tool calls, unless the engine sends an empty list', async () => {
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } }
    const called = await answerTo({ message: { role: 'assistant', content: null, tool_calls: [call] } })
    assert.deepEqual(called.choices[0]?.message, {
      role: 'assistant',
      content: null,
      refusal: null,
      tool_calls: [call],
    })
    const empty = await answerTo({ message: { content: 'x', tool_calls: [], function_call: null } })
    assert.deepEqual(empty.choices[0]?.message, { role: 'assistant', content: 'x', refusal: null })
  })

  it('[E1] has reasoning under both of its names, unless it is empty', async () => {
    for (const name of ['reasoning_content', 'reasoning']) {
      const { choices } = await answerTo({ message: { content: 'x', [name]: 'hm' } })
      assert.deepEqual(choices[0]?.message, {
        role: 'assistant',
        content: 'x',
        refusal: null,
        reasoning_content: 'hm',
      })
    }
    const { choices } = await answerTo({ message: { content: 'x', reasoning_content: null, reasoning: null } })
    assert.deepEqual(choices[0]?.message, { role: 'assistant', content: 'x', refusal: null })
  })

  it('[E1] has logprobs and refusals unchanged', async () => {
    const logprobs = { content: [{ token: 'x', logprob: -0.5, bytes: [120], top_logprobs: [] }] }
    const { choices } = await answerTo({ message: { content: null, refusal: 'No.' }, logprobs })
    assert.deepEqual(choices[0]?.logprobs, logprobs)
    assert.deepEqual(choices[0].message, { role: 'assistant', content: null, refusal: 'No.' })
  })

  it('[E1] is an error when only some of its choices have ended', async () => {
    for (const reasons of [
      ['stop', null],
      [null, 'stop'],
      ['stop', undefined],
    ]) {
      const choices = reasons.map((reason, index) => ({ index, message: { content: 'x' }, finish_reason: reason }))
      const usage = { prompt_tokens: 1, completion_tokens: 2 }
      engine.script = { handle: (_call, response) => void response.end(JSON.stringify({ choices, usage })) }
      const response = await weir.chat({ n: 2 })
      assert.deepEqual([response.status, (await refusalOf(response)).code], [502, 'upstream_error'])
      engine.script = {
        handle(_call, answer) {
          answer.writeHead(200, { 'content-type': 'text/event-stream' })
          for (const { index, finish_reason } of choices) {
            const choice = { index, delta: { content: 'x' }, finish_reason: finish_reason ?? null }
            answer.write(`data: ${JSON.stringify({ choices: [choice] })}\n\n`)
          }
          // With [DONE], the engine would have said that the other one has ended too.
          answer.end()
        },
      }
      const stream = await (await weir.chat({ n: 2, stream: true })).text()
      assert.match(stream, /"code":"upstream_error"/)
      assert.doesNotMatch(stream, /\[DONE\]/)
    }
  })

  it('[E1] is an error when it has fewer choices than were requested', async () => {
    const choices = [{ index: 0, message: { content: 'x' }, finish_reason: 'stop' }]
    const usage = { prompt_tokens: 1, completion_tokens: 2 }
    engine.script = { handle: (_call, response) => void response.end(JSON.stringify({ choices, usage })) }
    const response = await weir.chat({ n: 2 })
    assert.deepEqual([response.status, (await refusalOf(response)).code], [502, 'upstream_error'])
  })

  it('[E1] has n choices, each with its index', async () => {
    engine.script = { tokens: ['x'] }
    const { choices } = (await (await weir.chat({ n: 2 })).json()) as Answer
    assert.deepEqual(
      choices.map(({ index }) => index),
      [0, 1],
    )
  })

  it('shows reasoning tokens as part of the output', async () => {
    const usage = { prompt_tokens: 3, completion_tokens: 8, completion_tokens_details: { reasoning_tokens: 6 } }
    const answer = await answerTo({ message: { content: 'x' } }, { usage })
    assert.deepEqual(answer.usage, {
      prompt_tokens: 3,
      completion_tokens: 8,
      total_tokens: 11,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 6 },
    })
  })

  it('has text of every script unchanged', async () => {
    const { choices } = await answerTo({ message: { content: 'Grüße 中文 👩‍👩‍👧' } })
    assert.equal(choices[0]?.message['content'], 'Grüße 中文 👩‍👩‍👧')
  })
})

describe('a chat answer with more output than was allowed', () => {
  interface Answer {
    choices: { index: number; message: Record<string, unknown>; logprobs: unknown; finish_reason: string }[]
    usage: Record<string, number>
  }
  const words = (count: number): string => 'word '.repeat(count)
  const says = (content: string, more: object = {}): object => ({
    message: { role: 'assistant', content },
    finish_reason: 'stop',
    ...more,
  })
  const counting = (tokens: number, input = 10): object => ({ prompt_tokens: input, completion_tokens: tokens })

  /** What the caller gets, which must show the usage of its row. */
  async function answerTo(
    body: object,
    choices: readonly object[],
    usage?: object,
  ): Promise<Answer & { row: LedgerRow }> {
    engine.script = { handle: (_call, response) => void response.end(JSON.stringify({ choices, usage })) }
    const response = await weir.chat(body)
    assert.equal(response.status, 200, await response.clone().text())
    const answer = (await response.json()) as Answer
    const id = response.headers.get('x-request-id')
    const row = (await weir.ledger()).find(({ requestId }) => requestId === id)
    assert.ok(row)
    assert.equal(row.outcome, 'completed')
    assert.deepEqual(
      [answer.usage['prompt_tokens'], answer.usage['completion_tokens']],
      [row.inputTokens, row.outputTokens],
    )
    return { ...answer, row }
  }

  it('[E12] by the engine’s count is cut at about the limit, and billed up to it', async () => {
    const text = words(500)
    const logprobs = { content: [] }
    const { choices, row } = await answerTo({ max_tokens: 5 }, [says(text, { logprobs })], counting(500))
    const content = String(choices[0]?.message['content'])
    assert.ok(text.startsWith(content) && content.length > 4 && content.length < 30, content)
    assert.deepEqual([choices[0]?.finish_reason, choices[0]?.logprobs], ['length', null])
    assert.deepEqual([row.inputTokens, row.outputTokens, row.estimated, row.maxTokens], [10, 5, true, 5])
  })

  it('[E12] by its length is cut even if the engine counts nothing', async () => {
    for (const text of [words(500), 'größer '.repeat(300), '词语'.repeat(2000)]) {
      const { choices, row } = await answerTo({ max_tokens: 5 }, [says(text)])
      const content = String(choices[0]?.message['content'])
      assert.ok(text.startsWith(content) && content.length > 0 && content.length < 30, content)
      assert.equal(choices[0]?.finish_reason, 'length')
      assert.ok(row.outputTokens <= 5)
    }
  })

  it('[E12] by an impossible count is unchanged, and is billed no more than was allowed', async () => {
    const { choices, row } = await answerTo({ max_tokens: 5 }, [says('Hi there')], counting(90_000_000, 90_000_000))
    assert.deepEqual([choices[0]?.message['content'], choices[0]?.finish_reason], ['Hi there', 'stop'])
    assert.deepEqual([row.outputTokens, row.estimated], [5, true])
    assert.ok(row.inputTokens > 0 && row.inputTokens <= 8192, `${row.inputTokens} input tokens`)
    assert.ok(row.amount < 5_000_000_000n, `${row.amount}`)
  })

  it('[M7] is billed as the engine counts its input, however short the text is, if the context has room', async (t) => {
    const stage = await chatStage(t, { model: { context_length: 1_000_000 }, script: { promptTokens: 900_000 } })
    const { usage } = (await (await stage.weir.chat({})).json()) as Answer
    const [row] = await stage.weir.ledger()
    assert.deepEqual([row?.inputTokens, row?.estimated, usage['prompt_tokens']], [900_000, false, 900_000])
  })

  it('[E12] in its reasoning has nothing after that', async () => {
    const message = { content: words(50), reasoning_content: words(50), tool_calls: [call('f', '{}')] }
    const { choices } = await answerTo({ max_tokens: 5 }, [{ message, finish_reason: 'tool_calls' }], counting(100))
    const { reasoning_content: reasoning, ...rest } = choices[0]?.message ?? {}
    assert.ok(words(50).startsWith(String(reasoning)) && String(reasoning).length < 30)
    assert.deepEqual(rest, { role: 'assistant', content: '', refusal: null })
    assert.equal(choices[0]?.finish_reason, 'length')
  })

  it('[E12] in a tool call keeps the beginning of its arguments, and no later call', async () => {
    const text = JSON.stringify({ text: words(50) })
    const message = { content: null, tool_calls: [call('f', text), call('g', '{}')] }
    const { choices } = await answerTo({ max_tokens: 8 }, [{ message, finish_reason: 'tool_calls' }], counting(100))
    const calls = choices[0]?.message['tool_calls'] as { function: { name: string; arguments: string } }[]
    assert.deepEqual([calls.length, calls[0]?.function.name, choices[0]?.finish_reason], [1, 'f', 'length'])
    assert.ok(text.startsWith(calls[0]!.function.arguments) && calls[0]!.function.arguments.length < 30)
  })

  it('[E12] in one of n choices does not change the others', async () => {
    const choicesSent = [says(words(500)), says('Hi')].map((choice, index) => ({ ...choice, index }))
    for (const usage of [counting(501), undefined]) {
      const { choices, row } = await answerTo({ max_tokens: 5, n: 2 }, choicesSent, usage)
      assert.deepEqual(
        choices.map(({ finish_reason: reason }) => reason),
        ['length', 'stop'],
      )
      assert.equal(choices[1]?.message['content'], 'Hi')
      assert.ok(row.outputTokens <= 10)
    }
  })

  it('[E12] in choices that were not requested is dropped', async () => {
    const { choices, row } = await answerTo({ max_tokens: 5 }, [says('a'), says('b'), says('c')], counting(3))
    assert.deepEqual(
      choices.map(({ message }) => message['content']),
      ['a'],
    )
    assert.equal(row.outputTokens, 3)
  })

  it('[E12] is distinguished from one that keeps the limit, however long its words are', async () => {
    const long = ['Donaudampfschifffahrtsgesellschaft '.repeat(5), words(5), ' '.repeat(600), '-'.repeat(300)]
    for (const text of long) {
      for (const usage of [counting(5), undefined]) {
        const { choices } = await answerTo({ max_tokens: 5 }, [says(text)], usage)
        assert.deepEqual([choices[0]?.message['content'], choices[0]?.finish_reason], [text, 'stop'])
      }
    }
  })

  it('[E12] is counted', async () => {
    const breaches = async (): Promise<number> => {
      const text = await (await weir.admin('GET', '/metrics')).text()
      return Number(/^weir_engine_breaches_total\{model="meta\/test-8b"\} (\d+)$/m.exec(text)?.[1] ?? 0)
    }
    const before = await breaches()
    await answerTo({ max_tokens: 5 }, [says('Hi')], counting(5))
    assert.equal(await breaches(), before)
    await answerTo({ max_tokens: 5 }, [says('Hi')], counting(6))
    await answerTo({ max_tokens: 5 }, [says(words(500))])
    await answerTo({ max_tokens: 5 }, [says('a'), says('b')], counting(2))
    await answerTo({ max_tokens: 5 }, [says('a')], counting(1, 8193))
    assert.equal(await breaches(), before + 4)
  })
})

function call(name: string, text: string): object {
  return { id: name, type: 'function', function: { name, arguments: text } }
}
