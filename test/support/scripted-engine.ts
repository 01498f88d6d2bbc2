import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './free-port.ts'
import { png } from './image-samples.ts'
import { within } from './waiting.ts'

/** A test that waits for the engine in vain fails after this time, instead of hanging. */
const WAIT_MS_MAX = 120_000

/**
 * An OpenAI-compatible engine that does what a test tells it, faults included, and counts the truth: what
 * arrived, how many ran at once, how many tokens it really produced, and which callers left.
 */
export interface Script {
  /** One content delta each, and one token each. */
  tokens?: readonly string[]
  /** Thinking before the content: one delta and one token each, like the content. */
  reasoning?: readonly string[]
  /** Calls, by default instead of content; the name and each piece of the arguments are one delta and one token. */
  toolCalls?: readonly ToolCall[]
  /** Pause before the headers, and between tokens. */
  firstByteMs?: number
  tokenMs?: number
  /** Stop after so many tokens until the test says go on; a whole answer waits before its first byte. */
  hold?: { afterTokens: number; until: Promise<void> }
  /** Refuse with this status and body instead. */
  refuse?: { status: number; body: unknown }
  /** Break the connection after so many tokens: by reset, or by a clean end without finish_reason. */
  breakAfter?: { tokens: number; how: 'reset' | 'clean end' }
  finishReason?: string
  promptTokens?: number
  cachedTokens?: number
  /** Report no usage at all. */
  silentUsage?: boolean
  /** Usage with every chunk, as vLLM does when asked. */
  continuousUsage?: boolean
  /** Keep the response open after [DONE]. */
  hangAfterDone?: boolean
  /** The images that a call is answered with: by default as many as it asks for. */
  images?: (call: EngineCallSeen) => readonly object[]
  /** Anything else: full control. */
  handle?: (call: EngineCallSeen, response: ServerResponse) => Promise<void> | void
}

export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly arguments: readonly string[]
}

export interface EngineCallSeen {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Record<string, unknown>
  readonly rawBody: string
  readonly arrivedAt: number
  tokensProduced: number
  /** Whether the caller left before the end. */
  hasLeft: boolean
  finished: boolean
}

export interface ScriptedEngine {
  readonly url: string
  readonly calls: EngineCallSeen[]
  /** What the next calls do; a function may look at the call. */
  script: Script | ((call: EngineCallSeen) => Script)
  /** What a look at its health is answered with. */
  healthStatus: number
  /** Its own metrics, which it has only if a test gives it some. */
  metrics: string | undefined
  /** The looks at its health, and how many calls ran at the time of each. */
  readonly probes: { readonly path: string; readonly running: number }[]
  readonly running: number
  readonly maxRunning: number
  /** How many connections were made to it, ever. */
  readonly connections: number
  /** How many of them are open. */
  readonly openConnections: number
  /** Resolves when `count` calls have arrived. */
  arrived(count: number): Promise<void>
  /** Resolves when `count` callers have left before their end. */
  left(count: number): Promise<void>
  close(): Promise<void>
}

export async function scriptedEngine(options: { socketPath?: string; port?: number } = {}): Promise<ScriptedEngine> {
  const sockets = new Set<Socket>()
  const calls: EngineCallSeen[] = []
  let running = 0
  let maxRunning = 0
  let connections = 0
  let watchers: { isMet(): boolean; resolve(): void }[] = []

  async function until(what: string, isMet: () => boolean): Promise<void> {
    if (isMet()) return
    const met = new Promise<void>((resolve) => watchers.push({ isMet, resolve }))
    await within(WAIT_MS_MAX, what, met)
  }

  function look(): void {
    for (const { isMet, resolve } of watchers) if (isMet()) resolve()
    watchers = watchers.filter(({ isMet }) => !isMet())
  }

  const server = createServer((request, response) => {
    if (request.url === '/metrics' && engine.metrics !== undefined) {
      response.end(engine.metrics)
      return
    }
    if (request.method === 'GET') {
      engine.probes.push({ path: request.url ?? '', running })
      look()
      response.writeHead(engine.healthStatus, { 'content-type': 'application/json' }).end('{"object":"list","data":[]}')
      return
    }
    void take(request, response)
  })
  server.on('connection', (socket) => {
    connections++
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const rawBody = await readAll(request)
    const call: EngineCallSeen = {
      path: request.url ?? '',
      headers: request.headers,
      body: JSON.parse(rawBody) as Record<string, unknown>,
      rawBody,
      arrivedAt: performance.now(),
      tokensProduced: 0,
      hasLeft: false,
      finished: false,
    }
    calls.push(call)
    running++
    maxRunning = Math.max(maxRunning, running)
    response.once('close', () => {
      running--
      if (!response.writableFinished) call.hasLeft = true
      look()
    })
    look()
    const script = typeof engine.script === 'function' ? engine.script(call) : engine.script
    await perform(script, call, response)
    call.finished = true
  }

  const engine: ScriptedEngine = {
    url: '',
    calls,
    script: {},
    healthStatus: 200,
    metrics: undefined,
    probes: [],
    get connections() {
      return connections
    },
    get openConnections() {
      return sockets.size
    },
    get running() {
      return running
    },
    get maxRunning() {
      return maxRunning
    },
    arrived: (count) => until(`${count} calls arrive at the engine`, () => calls.length >= count),
    left: (count) =>
      until(`${count} callers leave the engine`, () => calls.filter(({ hasLeft }) => hasLeft).length >= count),
    close() {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }

  server.listen(
    options.socketPath ? { path: options.socketPath } : { port: options.port ?? (await freePort()), host: '127.0.0.1' },
  )
  await once(server, 'listening')
  const url = options.socketPath
    ? `unix:${options.socketPath}`
    : `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  return Object.assign(engine, { url })
}

async function perform(script: Script, call: EngineCallSeen, response: ServerResponse): Promise<void> {
  if (script.handle) return script.handle(call, response)
  if (script.firstByteMs) await sleep(script.firstByteMs)
  if (script.refuse) {
    response
      .writeHead(script.refuse.status, { 'content-type': 'application/json' })
      .end(JSON.stringify(script.refuse.body))
    return
  }
  if (call.path.endsWith('/images/generations')) await images(script, call, response)
  else if (call.body['stream'] === true) await stream(script, call, response)
  else await whole(script, call, response)
}

const defaultTokens = ['Hello', ' there', '!']

/** What the script says, as the deltas of a stream: one token each. */
function deltasOf(script: Script): readonly object[] {
  const tokens = script.tokens ?? (script.toolCalls ? [] : defaultTokens)
  return [
    ...(script.reasoning ?? []).map((reasoning) => ({ reasoning_content: reasoning })),
    ...tokens.map((content) => ({ content })),
    ...(script.toolCalls ?? []).flatMap(deltasOfCall),
  ]
}

/** Id and name first, then the arguments piece by piece. */
function deltasOfCall(call: ToolCall, index: number): readonly object[] {
  const { id, name, arguments: pieces } = call
  return [
    { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] },
    ...pieces.map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
  ]
}

/** The same as one message. */
function messageOf(script: Script): object {
  const { reasoning, toolCalls } = script
  const calls = toolCalls?.map(({ id, name, arguments: pieces }) => ({
    id,
    type: 'function',
    function: { name, arguments: pieces.join('') },
  }))
  const tokens = script.tokens ?? (toolCalls ? [] : defaultTokens)
  return {
    role: 'assistant',
    content: tokens.length > 0 || !calls ? tokens.join('') : null,
    ...(reasoning ? { reasoning_content: reasoning.join('') } : {}),
    ...(calls ? { tool_calls: calls } : {}),
  }
}

function finishReasonOf(script: Script): string {
  return script.finishReason ?? (script.toolCalls ? 'tool_calls' : 'stop')
}

async function whole(script: Script, call: EngineCallSeen, response: ServerResponse): Promise<void> {
  const tokens = deltasOf(script).length
  if (script.tokenMs) await sleep(script.tokenMs * tokens)
  await script.hold?.until
  if (script.breakAfter) {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
    response.write('{"id":')
    await sleep(20)
    response.destroy()
    return
  }
  call.tokensProduced = tokens
  const body = {
    id: 'engine-1',
    object: 'chat.completion',
    created: 1,
    model: 'engine-name',
    choices: Array.from({ length: Number(call.body['n'] ?? 1) }, (_, index) => ({
      index,
      message: messageOf(script),
      finish_reason: finishReasonOf(script),
    })),
    ...(script.silentUsage ? {} : { usage: usageOf(script, tokens) }),
  }
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function images(script: Script, call: EngineCallSeen, response: ServerResponse): Promise<void> {
  await script.hold?.until
  const asked = Array.from({ length: Number(call.body['n'] ?? 1) }, () => ({ b64_json: png().toString('base64') }))
  const data = script.images?.(call) ?? asked
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ created: 1, data }))
}

async function stream(script: Script, call: EngineCallSeen, response: ServerResponse): Promise<void> {
  const send = (choices: unknown[], usage?: object): void => {
    const chunk = { id: 'engine-1', object: 'chat.completion.chunk', created: 1, model: 'engine-name', choices }
    response.write(`data: ${JSON.stringify(usage ? { ...chunk, usage } : chunk)}\n\n`)
  }
  const running = (): object | undefined => (script.continuousUsage ? usageOf(script, call.tokensProduced) : undefined)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  send([{ index: 0, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }], running())
  for (const delta of deltasOf(script)) {
    if (script.breakAfter && call.tokensProduced >= script.breakAfter.tokens) {
      // What was written leaves first: a socket destroyed at once would take it along.
      await sleep(20)
      if (script.breakAfter.how === 'reset') response.destroy()
      else response.end()
      return
    }
    if (script.tokenMs) await sleep(script.tokenMs)
    if (script.hold?.afterTokens === call.tokensProduced) await script.hold.until
    if (response.destroyed) return
    call.tokensProduced++
    send([{ index: 0, delta, logprobs: null, finish_reason: null }], running())
  }
  send([{ index: 0, delta: {}, logprobs: null, finish_reason: finishReasonOf(script) }], running())
  if (!script.silentUsage) send([], usageOf(script, call.tokensProduced))
  response.write('data: [DONE]\n\n')
  if (!script.hangAfterDone) response.end()
}

function usageOf(script: Script, completionTokens: number): object {
  const promptTokens = script.promptTokens ?? 10
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: script.cachedTokens ?? 0 },
  }
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
