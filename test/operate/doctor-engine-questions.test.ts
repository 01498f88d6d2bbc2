import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { fixOf } from '../../src/operate/doctor/doctor-engine-fixes.ts'
import { ProblemsFound, UsageError } from '../../src/cli/command.ts'
import { engineClient } from '../../src/operate/doctor/doctor-engine-client.ts'
import { doctor } from '../../src/operate/doctor/commands/doctor.ts'
import { eventually } from '../support/waiting.ts'
import { printed, type Printed } from '../support/printed.ts'
import { scriptedServer, sendEvents, type ReceivedRequest, type ScriptedServer } from '../support/scripted-server.ts'

const examined = (...args: readonly string[]): Promise<Printed> => printed(doctor, 'engine', ...args)

/** Answers chats and lists its models below /v1, as vLLM does. */
function likeVllm(t: TestContext, changes: Readonly<Record<string, unknown>> = {}): Promise<ScriptedServer> {
  const answers: Readonly<Record<string, unknown>> = {
    '/v1/models': {
      data: [
        { id: 'org/first', owned_by: 'vllm', max_model_len: 1000 },
        { id: 'org/second', owned_by: 'vllm', max_model_len: 2000 },
      ],
    },
    '/version': { version: '0.9.1' },
    '/v1/chat/completions': (asked: ReceivedRequest) =>
      asked.body.n === 2 ? { choices: [{}] } : { choices: [{}], usage: { prompt_tokens: 3, completion_tokens: 2 } },
    ...changes,
  }
  return scriptedServer(t, (asked, response) => {
    const answer = answers[asked.path]
    if (asked.body?.stream) return sendEvents(response, [{ choices: [{}] }, '[DONE]'])
    if (answer !== undefined) return typeof answer === 'function' ? answer(asked) : answer
    response.statusCode = 404
    return 'not here'
  })
}

describe('weir doctor engine', () => {
  it('reports what the server is and can do, and what to write into weir.yaml', async (t) => {
    const { url, asked } = await likeVllm(t)
    const { stdout, stderr, failure } = await examined(url)
    assert.equal(failure, undefined)
    assert.equal(
      stdout.replace(/answered \d+ ms/, 'answered N ms'),
      `vLLM 0.9.1 (kind: vllm), seen at GET /v1/models
models: org/first, org/second
✔ chat: usage 3 + 2 tokens
✔ stream: 1 event, no usage
✖ usage: none in a stream with include_usage
  → start vLLM with --enable-force-include-usage, or write usage: estimated into the engine of the catalog entry
✖ stop reason: finish_reason null for an answer that max_tokens cut off
  → update the server: clients cannot tell an answer that was cut off from a complete one
✔ abort: the next call was answered N ms after a caller left
✖ n: 1 choice for n: 2
✖ logprobs: none in the answer
✖ tools: accepted, but the model did not call the tool
  → start vLLM with --enable-auto-tool-choice --tool-call-parser hermes (the parser for Qwen; others have their own)
✖ tool stream: accepted, but the model did not call the tool
  → start vLLM with --enable-auto-tool-choice --tool-call-parser hermes (the parser for Qwen; others have their own)
✔ reasoning: none, and no tags in the text
✖ json schema: the answer does not follow it
  → remove --structured-outputs-config or --guided-decoding-backend from the command of vLLM: the default enforces schemas
✖ embeddings: status 404: not here
✖ rerank: status 404: not here

# Set your prices: A$ per million tokens.
models:
  - id: org/first
    categories:
      - llm
    context_length: 1000
    supported_parameters:
      - temperature
      - top_p
      - stop
      - seed
    pricing:
      input_per_million: "0"
      output_per_million: "0"
    serverless:
      engine:
        kind: vllm
        urls:
          - ${url}/v1
        model: org/first
`,
    )
    const names = [
      'chat',
      'stream',
      'usage',
      'stop reason',
      'abort',
      'n',
      'logprobs',
      'tools',
      'tool stream',
      'reasoning',
      'json schema',
      'embeddings',
      'rerank',
    ]
    assert.equal(stderr, [`… looking at ${url}/`, ...names.map((name) => `… asking: ${name}`), ''].join('\n'))
    const looked = asked.filter(({ method }) => method === 'GET').map(({ path }) => path)
    assert.deepEqual(looked.toSorted(), [
      '/',
      '/api/version',
      '/get_model_info',
      '/health/liveliness',
      '/info',
      '/models',
      '/openapi.json',
      '/props',
      '/readyz',
      '/v1/metadata',
      '/v1/models',
      '/version',
    ])
    assert.ok(asked.every(({ headers }) => headers.authorization === undefined))
  })

  it('names the option of a server that leaves reasoning and calls in the text', async (t) => {
    const message = { content: '<think>Hm.</think><tool_call>{"name": "get_weather"}</tool_call>' }
    const { url } = await likeVllm(t, { '/v1/chat/completions': { choices: [{ message }] } })
    const options = {
      vllm: ['--enable-auto-tool-choice --tool-call-parser hermes', '--reasoning-parser qwen3'],
      sglang: ['--tool-call-parser qwen25', '--reasoning-parser qwen3'],
      llamacpp: ['--jinja', '--jinja --reasoning-format deepseek'],
    }
    for (const [kind, [tools, reasoning]] of Object.entries(options)) {
      const { stdout } = await examined(url, '--kind', kind, '--json')
      const { findings } = JSON.parse(stdout) as { findings: { question: string; fix?: string }[] }
      const fixOf = (question: string) => findings.find((it) => it.question === question)?.fix ?? ''
      assert.ok(fixOf('tools').includes(` ${tools}`), `${kind}: ${fixOf('tools')}`)
      assert.ok(fixOf('reasoning').includes(` ${reasoning}`), `${kind}: ${fixOf('reasoning')}`)
      assert.equal(fixOf('chat'), '')
    }
  })

  it('names an option, or else what to do, for each kind of server', () => {
    for (const [question, kind, advice] of [
      ['json schema', 'vllm', /^remove --structured-outputs-config or --guided-decoding-backend /],
      ['json schema', 'sglang', /--grammar-backend xgrammar$/],
      ['json schema', 'llamacpp', /^update llama-server/],
      ['json schema', 'tei', /^leave response_format out of supported_parameters/],
      ['usage', 'vllm', /--enable-force-include-usage/],
      ['usage', 'llamacpp', /usage: estimated/],
      ['stop reason', 'vllm', /^update the server/],
      ['tool stream', 'openai', /parser of tool calls/],
      ['reasoning', 'openai', /parser of reasoning/],
      ['reasoning', 'ollama', /capable of thinking/],
      ['tools', 'ollama', /template has tools/],
      ['tools', 'llamacpp_python', /--chat_format chatml-function-calling/],
    ] as const)
      assert.match(fixOf(question, kind) ?? '', advice, `${question} of ${kind}`)
    assert.equal(fixOf('chat', 'vllm'), undefined)
  })

  it('uses the given model and key, and prints JSON', async (t) => {
    const { url, asked } = await likeVllm(t)
    const { stdout } = await examined(`${url}/v1/`, '--json', '--model', 'org/second', '--api-key', 'secret')
    const { lines, findings, ...rest } = JSON.parse(stdout) as { lines: string; findings: object[] }
    assert.deepEqual(rest, { kind: 'vllm', server: 'vLLM', version: '0.9.1', models: ['org/first', 'org/second'] })
    assert.deepEqual(findings[0], { question: 'chat', state: 'yes', detail: 'usage 3 + 2 tokens' })
    assert.match(lines, /id: org\/second\n[^]*context_length: 2000\n[^]*\/v1\n[^]*api_key_env: ENGINE_API_KEY/)
    const posts = asked.filter(({ method }) => method === 'POST')
    assert.ok(posts.every(({ path, body }) => path.startsWith('/v1/') && body.model === 'org/second'))
    assert.ok(asked.every(({ headers }) => headers.authorization === 'Bearer secret'))
    assert.ok(posts.every(({ headers }) => headers['content-type'] === 'application/json'))
  })

  it('uses --kind if it cannot recognise the server, and the model "default" if there is no list', async (t) => {
    const { url, asked } = await scriptedServer(t, ({ path }) => (path === '/embed' ? [[1, 2]] : 'hello'))
    const { stdout, failure } = await examined(`${url}/below`, '--kind', 'tei')
    assert.equal(failure, undefined)
    assert.match(stdout, /^an unknown server \(kind: tei\), seen at --kind\nmodels: it does not list any\n✔ embeddings/)
    assert.match(stdout, /check context_length[^]*id: local\/default\n[^]*context_length: 4096/)
    assert.ok(stdout.includes(`- ${url}/below\n`))
    assert.ok(asked.some(({ path }) => path === '/below/models'))
    const unknown = await examined(url)
    assert.ok(unknown.failure instanceof ProblemsFound)
    assert.equal(
      unknown.failure.message,
      `${url}/ answers, but as no server that Weir knows; say what it is with --kind`,
    )
  })

  it('reads the list of models wherever the server has it', async (t) => {
    const atRoot = await scriptedServer(t, ({ path }, response) => {
      if (path === '/models') return { data: [{ id: 'm', owned_by: 'infinity' }] }
      response.statusCode = 500
      return ''
    })
    const { stdout } = await examined(atRoot.url, '--json')
    assert.match(stdout, /"kind":"infinity","server":"infinity","version":null,"models":\["m"\]/)
    assert.ok(atRoot.asked.some(({ method, path }) => method === 'POST' && path === '/embeddings'))
    const list = { data: [{ id: 'own', owned_by: 'x' }] }
    const below = await likeVllm(t, { '/api/models': list, '/models': list })
    const own = JSON.parse((await examined(`${below.url}/api`, '--json')).stdout) as { models: string[]; lines: string }
    assert.deepEqual(own.models, ['own'])
    assert.ok(own.lines.includes(`- ${below.url}/api\n`))
    const both = await likeVllm(t, { '/models': list })
    const first = JSON.parse((await examined(both.url, '--json')).stdout) as { models: string[]; lines: string }
    assert.deepEqual(first.models, ['org/first', 'org/second'])
    assert.ok(first.lines.includes(`- ${both.url}/v1\n`))
  })

  it('prefers the context length of the server to that of a model', async (t) => {
    const props = { build_info: 'b1', default_generation_settings: { n_ctx: 77 } }
    const { url } = await likeVllm(t, { '/props': props })
    assert.match((await examined(url)).stdout, /^llama\.cpp b1 [^]*context_length: 77\n/)
  })

  it('skips other questions about chats if there are none, but not those about vectors', async (t) => {
    const { url } = await likeVllm(t, { '/v1/chat/completions': { error: 'no chats' } })
    const { stderr } = await examined(url)
    assert.deepEqual(stderr.match(/(?<=asking: ).*/g), ['chat', 'embeddings', 'rerank'])
  })

  it('reports why a question has no answer', async (t) => {
    const { url } = await scriptedServer(t, ({ path, method }, response) => {
      if (method === 'GET') return path === '/v1/models' ? { data: [{ id: 'm', owned_by: 'infinity' }] } : 'hello'
      response.destroy()
      return undefined
    })
    const { stdout } = await examined(url, '--kind', 'infinity')
    assert.match(stdout, /^✖ embeddings: other side closed\n✖ rerank: other side closed\n\n/m)
  })

  it('names no option if there is no answer', async (t) => {
    const { url } = await scriptedServer(t, ({ path, body }, response) => {
      if (path !== '/v1/chat/completions' || !body.tools) return { choices: [{ message: { content: 'Hello.' } }] }
      response.destroy()
      return undefined
    })
    const { stdout } = await examined(url, '--kind', 'vllm', '--json')
    const { findings } = JSON.parse(stdout) as { findings: { question: string }[] }
    assert.deepEqual(
      findings.filter(({ question }) => question === 'tools'),
      [{ question: 'tools', state: 'no', detail: 'other side closed' }],
    )
  })

  it('refuses a wrong address or kind, an unreachable server, and one that needs a key', async (t) => {
    const failed = async (...args: readonly string[]): Promise<readonly unknown[]> => {
      const { failure, stdout } = await examined(...args)
      assert.equal(stdout, '')
      return [failure?.constructor, failure?.message]
    }
    const missing = 'the address of the engine is missing, such as http://127.0.0.1:8000'
    assert.deepEqual(await failed(), [UsageError, missing])
    for (const address of ['localhost:80', 'ftp://h', 'http:', 'nonsense']) {
      assert.deepEqual(await failed(address), [UsageError, `"${address}" is not an http:// or https:// address`])
    }
    for (const kind of ['embedded', 'nonsense']) {
      const [error, message] = await failed('http://127.0.0.1:9', '--kind', kind)
      assert.equal(error, UsageError)
      assert.match(String(message), /^--kind must be one of openai, vllm, .*, whispercpp$/)
      assert.doesNotMatch(String(message), /embedded/)
    }
    assert.deepEqual(await failed('http://127.0.0.1:9/'), [ProblemsFound, 'http://127.0.0.1:9/ does not answer'])
    for (const status of [401, 403]) {
      const { url } = await scriptedServer(t, (_asked, response) => void response.writeHead(status).end('{}'))
      const message = `${url}/ refuses every request without a key; give it with --api-key`
      assert.deepEqual(await failed(url), [ProblemsFound, message])
    }
    const some = await likeVllm(t, { '/': '' })
    assert.equal((await examined(some.url)).failure, undefined)
  })
})

describe('a call of the doctor', () => {
  const MEGABYTES_5 = 5_000_000

  it('returns the status, headers and body, and undefined when nothing listens', async (t) => {
    const { url, asked } = await scriptedServer(t, (_asked, response) => {
      response.writeHead(418, { 'x-one': '1', 'content-type': 'text/plain' }).end('{"a":"ü"}')
    })
    const client = engineClient(`${url}/base`, undefined)
    const seen = await client.get(`${url}/x`)
    assert.deepEqual(
      [seen?.status, seen?.headers['x-one'], seen?.text, seen?.json],
      [418, '1', '{"a":"ü"}', { a: 'ü' }],
    )
    await client.post('/one', { b: 1 })
    await client.post('//two', { b: 2 })
    const posts = asked.slice(1).map(({ path, body, headers }) => [path, body, headers['content-type']])
    assert.deepEqual(posts, [
      ['/base/one', { b: 1 }, 'application/json'],
      ['/two', { b: 2 }, 'application/json'],
    ])
    assert.equal(await client.get('http://127.0.0.1:9/'), undefined)
  })

  it('reads the events of a stream, or what is sent instead', async (t) => {
    const { url, asked } = await scriptedServer(t, ({ path }, response) => {
      if (path === '/none') return { detail: 'no' }
      sendEvents(response, [{ a: 'ü' }, 'no JSON', ...(path === '/whole' ? ['[DONE]'] : [])])
      return undefined
    })
    const client = engineClient(url, undefined)
    const none = await client.stream('/none', { a: 1 })
    assert.deepEqual(none, { status: 200, events: [], isDone: false, text: '{"detail":"no"}' })
    const events = [{ a: 'ü' }, undefined]
    assert.deepEqual(await client.stream('/whole', {}), { status: 200, events, isDone: true, text: '' })
    assert.deepEqual(await client.stream('/half', {}), { status: 200, events, isDone: false, text: '' })
    assert.deepEqual(asked[0]?.body, { a: 1, stream: true })
  })

  it('disconnects when it has enough, and when a server sends too much', async (t) => {
    const { url, left } = await scriptedServer(t, ({ path }, response) => {
      const type = path === '/text' ? 'text/plain' : 'text/event-stream'
      response.writeHead(200, { 'content-type': type })
      if (path === '/events') response.write('data: 1\n\n')
      else response.write(`data: ${'x'.repeat(MEGABYTES_5)}\n\n`)
    })
    const client = engineClient(url, undefined)
    const enough = (events: readonly unknown[]): boolean => events.length > 0
    assert.deepEqual((await client.stream('/events', {}, enough)).events, [1])
    await client.stream('/many', {})
    assert.ok(((await client.get(`${url}/text`))?.text.length ?? 0) > 4_000_000)
    await eventually('the doctor has left all three', () => left() === 3)
  })
})
