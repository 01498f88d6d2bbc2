import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { recognise, type ProbeAnswers } from '../../src/operate/doctor/doctor-engine-recognition.ts'
import { loadConfig } from '../../src/config.ts'
import { commandLine } from '../support/command-line.ts'
import { scriptedServer } from '../support/scripted-server.ts'

/** What real servers sent: `looks/` to a GET, the others to calls. */
const folder = new URL('../fixtures/dialects/', import.meta.url)

const lookFiles: Readonly<Record<string, string>> = {
  '/health/liveliness': 'health-liveliness',
  '/props': 'props',
  '/v1/models': 'v1-models',
  '/models': 'models',
  '/openapi.json': 'openapi.json',
}

function captured(kind: string, name: string): Buffer | undefined {
  const file = new URL(`${kind}/${name}.http`, folder)
  return existsSync(file) ? readFileSync(file) : undefined
}

function lookOf(raw: Buffer): ProbeAnswers[string] {
  const text = raw.toString('utf8')
  const end = text.indexOf('\r\n\r\n')
  const [status = '', ...lines] = text.slice(0, end).split('\r\n')
  const headers = lines.map((line): [string, string] => {
    const [name = '', ...rest] = line.split(': ')
    return [name.toLowerCase(), rest.join(': ')]
  })
  const body = text.slice(end + 4)
  let json: unknown
  try {
    json = JSON.parse(body)
  } catch {}
  return { status: Number(status.split(' ')[1]), headers: Object.fromEntries(headers), text: body, json }
}

function looksOf(kind: string): ProbeAnswers {
  const looks = Object.entries(lookFiles).flatMap(([path, name]) => {
    const raw = captured(kind, `looks/${name}`)
    return raw ? [[path, lookOf(raw)] as const] : []
  })
  return Object.fromEntries(looks)
}

describe('a server is recognised by what it really sends', () => {
  const expected = {
    llamacpp: { server: 'llama.cpp', version: 'b0-unknown', evidence: 'GET /props' },
    llamacpp_python: { server: 'llama-cpp-python', version: '0.3.36', evidence: 'GET /openapi.json' },
    infinity: { server: 'infinity', version: '0.0.78', evidence: 'GET /openapi.json' },
    litellm: { server: 'LiteLLM', version: undefined, evidence: 'GET /health/liveliness' },
  }
  for (const [kind, rest] of Object.entries(expected)) {
    it(kind, () => assert.deepEqual(recognise('127.0.0.1', looksOf(kind)), { kind, ...rest }))
  }

  it('and by what its documentation describes, if it was not captured', () => {
    const look = (json: unknown, text = JSON.stringify(json)): ProbeAnswers[string] => ({
      status: 200,
      headers: {},
      text,
      json,
    })
    const models = (owner: string): ProbeAnswers[string] =>
      look({ data: [{ id: 'm', owned_by: owner, max_model_len: 4096 }] })
    const kindOf = (looks: ProbeAnswers): unknown => {
      const { kind, version } = recognise('127.0.0.1', looks) ?? {}
      return [kind, version]
    }
    assert.deepEqual(kindOf({ '/v1/models': models('vllm'), '/version': look({ version: '0.11.0' }) }), [
      'vllm',
      '0.11.0',
    ])
    assert.deepEqual(kindOf({ '/v1/models': models('sglang') }), ['sglang', undefined])
    const info = { model_id: 'bge', max_client_batch_size: 32, version: '1.8.0' }
    assert.deepEqual(kindOf({ '/info': look(info) }), ['tei', '1.8.0'])
    const ollama = { '/': look(undefined, 'Ollama is running'), '/api/version': look({ version: '0.17.4' }) }
    assert.deepEqual(kindOf(ollama), ['ollama', '0.17.4'])
    assert.deepEqual(kindOf({ '/v1/metadata': look({ version: '1.3.0', modelInfo: [] }) }), ['nim', '1.3.0'])
    assert.deepEqual(kindOf({ '/v1/models': models('someone') }), ['openai', undefined])
  })

  it('is not recognised by an error page', () => {
    assert.equal(
      recognise('127.0.0.1', { '/': { status: 404, headers: {}, text: 'Ollama is running', json: undefined } }),
      undefined,
    )
  })
})

/** Replays what the server sent. A call is recognised by its content. */
async function replayed(t: TestContext, kind: string): Promise<string> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const name =
        request.method === 'GET'
          ? `looks/${lookFiles[request.url ?? ''] ?? 'not-found'}`
          : fixtureFor(request.url ?? '', JSON.parse(Buffer.concat(chunks).toString('utf8')) as object)
      const raw = captured(kind, name) ?? captured(kind, 'looks/not-found')
      if (raw) request.socket.end(raw)
      else response.writeHead(404).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function fixtureFor(url: string, body: object): string {
  if (url.endsWith('/embeddings')) return 'captured-embeddings'
  if (url.endsWith('/rerank')) return 'captured-rerank'
  if ('tools' in body) return 'stream' in body ? 'captured-chat-tools-stream' : 'captured-chat-tools'
  if ('response_format' in body) return 'captured-chat-json-schema'
  if ('logprobs' in body) return 'captured-chat-logprobs'
  if ('n' in body) return 'captured-chat-n2'
  return 'stream' in body ? 'captured-chat-stream' : 'captured-chat'
}

interface Examined {
  readonly kind: string
  readonly server: string
  readonly models: readonly string[]
  readonly findings: readonly { readonly question: string; readonly state: string; readonly detail: string }[]
  readonly lines: string
}

describe('weir doctor engine', () => {
  it('reports what the server is and can do, and writes the lines for weir.yaml', async (t) => {
    const url = await replayed(t, 'llamacpp')
    const result = await commandLine(['doctor', 'engine', url, '--json'])
    assert.equal(result.code, 0, result.stderr)
    const { kind, server, models, findings, lines } = result.json<Examined>()
    assert.deepEqual([kind, server], ['llamacpp', 'llama.cpp'])
    assert.deepEqual(models, ['weights/SmolLM2-135M-Instruct.Q4_1.gguf'])
    assert.deepEqual(
      findings.filter(({ state }) => state === 'no').map(({ question }) => question),
      // What was captured answers other questions: with another schema, and too short to be cut off.
      ['stop reason', 'n', 'json schema'],
    )
    const detailOf = (name: string): string | undefined => findings.find(({ question }) => question === name)?.detail
    assert.equal(detailOf('chat'), 'usage 42 + 8 tokens')
    assert.equal(detailOf('stream'), '10 events, usage 42 + 8 tokens')
    assert.equal(detailOf('tools'), 'the model called the tool')
    assert.match(result.stderr, /^… asking: stream$/m)

    const directory = mkdtempSync(join(tmpdir(), 'weir-doctor-engine-'))
    t.after(() => rmSync(directory, { recursive: true, force: true }))
    const file = join(directory, 'weir.yaml')
    writeFileSync(file, lines)
    const [model] = loadConfig({ config: file, data: directory }, {}).catalog.read()
    assert.equal(model?.id, 'local/SmolLM2-135M-Instruct.Q4_1')
    assert.equal(model.contextLength, 1024)
    assert.deepEqual(model.serverless?.engine?.urls, [`${url}/v1`])
    assert.equal(model.serverless?.engine?.kind, 'llamacpp')
  })

  it('prints the same as text', async (t) => {
    const result = await commandLine(['doctor', 'engine', await replayed(t, 'llamacpp')])
    assert.match(result.stdout, /^llama\.cpp b0-unknown \(kind: llamacpp\), seen at GET \/props$/m)
    assert.match(result.stdout, /^✔ logprobs: for 4 tokens$/m)
    assert.match(result.stdout, /^ {8}kind: llamacpp$/m)
  })

  it('refuses an invalid address, an unknown kind and an unreachable server', async () => {
    const refusal = async (...args: string[]): Promise<readonly unknown[]> => {
      const { code, stderr } = await commandLine(['doctor', 'engine', ...args])
      return [code, stderr.split('\n').findLast((line) => line.startsWith('weir:'))]
    }
    assert.deepEqual(await refusal('localhost'), [
      2,
      'weir: "localhost" is not an http:// or https:// address. See: weir doctor --help',
    ])
    const [code, message] = await refusal('http://127.0.0.1:9', '--kind', 'nonsense')
    assert.equal(code, 2)
    assert.match(String(message), /--kind must be one of openai, vllm/)
    assert.deepEqual(await refusal('http://127.0.0.1:9'), [1, 'weir: http://127.0.0.1:9/ does not answer'])
  })

  it('gives its key to every request, and asks nothing about chats once a chat was not answered in a minute', async (t) => {
    const server = await scriptedServer(t, ({ path }) =>
      path === '/v1/models' ? { data: [{ id: 'm', owned_by: 'vllm' }] } : {},
    )
    const examine = async () =>
      (await commandLine(['doctor', 'engine', server.url, '--api-key', 'secret', '--json'])).json<Examined>().findings
    const asked = ['chat', 'embeddings', 'rerank']
    assert.deepEqual(
      (await examine()).map(({ question }) => question),
      asked,
    )
    assert.equal(server.asked.filter(({ method }) => method === 'POST').length, asked.length)
    for (const { headers, path } of server.asked) assert.equal(headers.authorization, 'Bearer secret', path)
    const { timeout } = AbortSignal
    t.mock.method(AbortSignal, 'timeout', (ms: number) =>
      ms === 60_000 ? AbortSignal.abort(new DOMException('The time is up.', 'TimeoutError')) : timeout(ms),
    )
    assert.deepEqual(
      await examine(),
      asked.map((question) => ({ question, state: 'no', detail: 'no answer within 60 s' })),
    )
  })
})
