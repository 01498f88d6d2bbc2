import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import type { AdapterKind } from '../../src/catalog/model.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'
import { eventually } from '../support/waiting.ts'

interface Called {
  readonly model: string
  readonly lora_path?: string
  readonly lora?: readonly { readonly id: number; readonly scale: number }[]
}

/** A server with the endpoints for adapters that the kind has, with the statuses and texts of its source. */
async function adapterServer(kind: AdapterKind) {
  const state = {
    loaded: new Map<string, string>(),
    /** Of llama.cpp's command line. */
    listed: [] as { id: number; path: string; scale: number }[],
    loads: [] as string[],
    calls: [] as Called[],
    loading: 0,
    maxLoading: 0,
    hold: undefined as Promise<void> | undefined,
    broken: false,
  }
  const answer = (response: ServerResponse, status: number, body: unknown): void =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

  async function load(name: string, source: string, response: ServerResponse): Promise<void> {
    state.loads.push(name)
    state.maxLoading = Math.max(state.maxLoading, ++state.loading)
    await state.hold
    state.loading--
    const isThere = state.loaded.has(name)
    if (state.broken) return answer(response, 404, { error: { message: `No adapter found for ${source}`, code: 404 } })
    if (isThere && kind === 'vllm') {
      const message = `The lora adapter '${name}' has already been loaded. If you want to load the adapter in place, set 'load_inplace' to True.`
      return answer(response, 400, { error: { message, type: 'InvalidUserInput', param: null, code: 400 } })
    }
    if (isThere) {
      const message = `Failed to load LoRA adapter ${name} because it is already loaded`
      return answer(response, 400, { success: false, error_message: message, loaded_adapters: null })
    }
    state.loaded.set(name, source)
    answer(response, 200, kind === 'vllm' ? `Success: LoRA adapter '${name}' added successfully.` : { success: true })
  }

  function call(body: Called, response: ServerResponse): void {
    state.calls.push(body)
    if (kind === 'vllm' && body.model !== 'base-name' && !state.loaded.has(body.model)) {
      const message = `The model \`${body.model}\` does not exist.`
      return answer(response, 404, { error: { message, type: 'NotFoundError', param: 'model', code: 404 } })
    }
    if (kind === 'sglang' && body.lora_path !== undefined && !state.loaded.has(body.lora_path)) {
      const message = `Got LoRA adapter that has never been loaded: ${body.lora_path}\nAll loaded adapters: dict_keys([]).`
      return answer(response, 400, { object: 'error', message, type: 'BadRequest', param: null, code: 400 })
    }
    answer(response, 200, {
      object: 'chat.completion',
      choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Yes.' } }],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    })
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString() || 'null') as never
      switch (`${request.method} ${request.url}`) {
        case 'POST /v1/load_lora_adapter':
        case 'POST /load_lora_adapter': {
          const { lora_name: name, lora_path: path } = body as { lora_name: string; lora_path: string }
          return void load(name, path, response)
        }
        case 'GET /lora-adapters':
          return answer(response, 200, state.listed)
        case 'POST /lora-adapters':
          for (const { id, scale } of body as { id: number; scale: number }[]) state.listed[id]!.scale = scale
          return answer(response, 200, { success: true })
        case 'POST /v1/chat/completions':
          return call(body, response)
        default:
          return answer(response, 200, {})
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    ...state,
    state,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

const BASE = 'acme/base'

function catalog(kind: AdapterKind, urls: readonly string[], adapters: readonly string[]): object[] {
  const limits = { max_wait_ms: 20_000, max_concurrent_requests: 2 }
  const { serverless: _place, ...entry } = modelEntry([]) as { serverless: object }
  return [
    modelEntry([], { id: BASE, aliases: [], serverless: { engine: { kind, urls, model: 'base-name' }, limits } }),
    ...adapters.map((name) => ({
      ...entry,
      id: `acme/${name}`,
      aliases: [],
      pricing: { input_per_million: '2', output_per_million: '4' },
      adapter_of: BASE,
      adapter_source: `/adapters/${name}`,
    })),
  ]
}

const say = (weir: Pick<TestWeir, 'chat'>, model: string): Promise<Response> =>
  weir.chat({ model, messages: [{ role: 'user', content: 'Is it?' }] })

async function status(weir: TestWeir, model: string): Promise<number> {
  const answer = await say(weir, model)
  await answer.text()
  return answer.status
}

describe('adapters', () => {
  it('of vLLM and SGLang are loaded before the first call, once, and calls name them', async () => {
    for (const kind of ['vllm', 'sglang'] as const) {
      await using server = await adapterServer(kind)
      const weir = await startWeir({ models: catalog(kind, [server.url], ['legal']) })
      try {
        assert.deepEqual(
          await Promise.all(['acme/legal', 'acme/legal', BASE].map((id) => status(weir, id))),
          [200, 200, 200],
        )
        assert.equal(server.loads.length, 1)
        const [name = ''] = server.loads
        assert.match(name, /^acme\/legal-[0-9a-f]{12}$/)
        assert.equal(server.loaded.get(name), '/adapters/legal')
        const asked = server.calls.map(({ model, lora_path: adapter }) => `${model} ${adapter ?? ''}`).toSorted()
        const ofAdapter = kind === 'vllm' ? `${name} ` : `base-name ${name}`
        assert.deepEqual(asked, ['base-name ', ofAdapter, ofAdapter].toSorted())
      } finally {
        await weir.stop()
      }
    }
  })

  it('of llama.cpp are found by their file, and the base model is without them', async () => {
    await using server = await adapterServer('llamacpp')
    server.listed.push({ id: 0, path: '/adapters/other', scale: 1 }, { id: 1, path: '/adapters/legal', scale: 1 })
    const weir = await startWeir({ models: catalog('llamacpp', [server.url], ['legal', 'missing']) })
    try {
      assert.equal(await status(weir, 'acme/legal'), 200)
      assert.deepEqual(server.calls.at(-1)?.lora, [{ id: 1, scale: 1 }])
      assert.deepEqual(
        server.listed.map(({ scale }) => scale),
        [0, 0],
      )
      assert.equal(await status(weir, BASE), 200)
      assert.equal(server.calls.at(-1)?.lora, undefined)
      const answer = await say(weir, 'acme/missing')
      assert.equal(answer.status, 503)
      assert.match(await answer.text(), /could not load the adapter/)
    } finally {
      await weir.stop()
    }
  })

  it('have prices and visibility of their own, and share the lane of their base', async () => {
    await using server = await adapterServer('vllm')
    const [base, legal] = catalog('vllm', [server.url], ['legal'])
    const weir = await startWeir({ models: [base!, { ...legal, visible_to: ['someone-else'] }] })
    try {
      assert.equal(await status(weir, 'acme/legal'), 404)
      weir.writeConfig({ models: [base!, legal!] })
      assert.equal((await weir.reload()).status, 200)
      assert.deepEqual([await status(weir, 'acme/legal'), await status(weir, BASE)], [200, 200])
      const rows = await weir.ledger()
      assert.deepEqual(
        rows.map(({ model, lane }) => [model, lane]),
        [
          ['acme/legal', BASE],
          [BASE, BASE],
        ],
      )
      assert.ok(rows[0]!.amount > rows[1]!.amount, 'the adapter costs more')
      const { data: lanes } = (await (await weir.admin('GET', '/admin/v1/engines')).json()) as {
        data: { lane: string }[]
      }
      assert.deepEqual(
        lanes.map(({ lane }) => lane),
        [BASE],
      )
      const { data } = (await (await weir.call('/queue/status')).json()) as { data: { model: string }[] }
      assert.deepEqual(
        data.map(({ model }) => model),
        [BASE, 'acme/legal'],
      )
    } finally {
      await weir.stop()
    }
  })

  it('share the limit of concurrent requests with their base, and load one at a time', async () => {
    await using server = await adapterServer('vllm')
    const held = Promise.withResolvers<void>()
    server.state.hold = held.promise
    const weir = await startWeir({ models: catalog('vllm', [server.url], ['legal', 'medical']) })
    try {
      const loading = [status(weir, 'acme/legal'), status(weir, 'acme/medical')]
      await eventually('a load is running', () => server.state.loading === 1)
      const waiting = status(weir, BASE)
      await eventually('the base waits in the lane', async () => {
        const { data } = (await (await weir.call('/queue/status')).json()) as { data: { queue_depth: number }[] }
        return data[0]?.queue_depth === 1
      })
      assert.deepEqual([server.state.calls.length, server.loads.length], [0, 1])
      held.resolve()
      assert.deepEqual(await Promise.all([...loading, waiting]), [200, 200, 200])
      assert.deepEqual([server.state.maxLoading, server.loads.length], [1, 2])
    } finally {
      held.resolve()
      await weir.stop()
    }
  })

  it('are loaded again when the server has lost them, and taken as they are when it has them', async () => {
    for (const kind of ['vllm', 'sglang'] as const) {
      await using server = await adapterServer(kind)
      const weir = await startWeir({ models: catalog(kind, [server.url], ['legal']) })
      try {
        assert.equal(await status(weir, 'acme/legal'), 200)
        server.loaded.clear()
        assert.equal(await status(weir, 'acme/legal'), 200, 'the server was restarted')
        assert.equal(server.loads.length, 2)
        const { url } = server
        weir.writeConfig({ models: catalog(kind, [`${url}/`], ['legal']) })
        assert.equal((await weir.reload()).status, 200)
        assert.equal(await status(weir, 'acme/legal'), 200, 'an engine that Weir connects to anew has it')
        assert.equal(server.loads.length, 3)
      } finally {
        await weir.stop()
      }
    }
  })

  it('that cannot be loaded fail their calls alone, and the next call tries again', async () => {
    await using server = await adapterServer('vllm')
    server.state.broken = true
    const weir = await startWeir({ models: catalog('vllm', [server.url], ['legal']) })
    try {
      const answer = await say(weir, 'acme/legal')
      assert.equal(answer.status, 503)
      const { error } = (await answer.json()) as { error: { code: string; message: string } }
      assert.equal(error.code, 'model_unavailable')
      assert.doesNotMatch(error.message, /adapters\/legal/, 'the source is for the operator')
      assert.equal(await status(weir, BASE), 200)
      server.state.broken = false
      assert.equal(await status(weir, 'acme/legal'), 200)
    } finally {
      await weir.stop()
    }
  })

  it('that are still loading let a caller leave, and give the place back', async () => {
    await using server = await adapterServer('vllm')
    const held = Promise.withResolvers<void>()
    server.state.hold = held.promise
    const weir = await startWeir({ models: catalog('vllm', [server.url], ['legal']) })
    try {
      const left = new AbortController()
      const asked = weir.chat(
        { model: 'acme/legal', messages: [{ role: 'user', content: 'Is it?' }] },
        { signal: left.signal },
      )
      await eventually('the load is running', () => server.state.loading === 1)
      left.abort()
      await assert.rejects(asked)
      await eventually('nothing runs', async () => {
        const { data } = (await (await weir.call('/queue/status')).json()) as { data: { in_flight_requests: number }[] }
        return data[0]?.in_flight_requests === 0
      })
      held.resolve()
      assert.equal(await status(weir, 'acme/legal'), 200)
      assert.equal(server.loads.length, 1, 'the load went on for the next caller')
    } finally {
      held.resolve()
      await weir.stop()
    }
  })
})
