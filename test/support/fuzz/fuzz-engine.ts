import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { png } from '../image-samples.ts'

/** A server that answers whatever it is given to answer, byte for byte. Calls without a plan are answered correctly. */
export interface FuzzEngine {
  readonly url: string
  /** Calls that run now. */
  readonly running: number
  /** The answers to the calls that carry `marker(mark)` in their body, in order. */
  plan(mark: number, answers: readonly EngineAnswer[]): void
  /** The request is over, whether or not the engine was called. */
  forget(mark: number): void
  close(): Promise<void>
}

export interface EngineAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Written one after the other. */
  readonly pieces: readonly Buffer[]
  /** `reset` breaks the connection; `short` ends it before the length that was promised; `hang` never ends it. */
  readonly ending: 'end' | 'reset' | 'short' | 'hang'
  /** Pause before the headers, and between the pieces. */
  readonly delayMs?: number
  readonly pieceMs?: number
}

export function marker(mark: number): string {
  return `answer-${mark}.`
}

export async function fuzzEngine(): Promise<FuzzEngine> {
  const plans = new Map<number, EngineAnswer[]>()
  let running = 0
  const server = createServer((request, response) => {
    if (request.method === 'GET') return void response.end('{}')
    running++
    response.once('close', () => running--)
    void take(request, response)
  })

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    } catch {
      return
    }
    const body = Buffer.concat(chunks).toString('utf8')
    const mark = Number(/answer-(\d+)\./.exec(body)?.[1] ?? -1)
    const planned = plans.get(mark)
    const answer = planned?.shift()
    if (planned?.length === 0) plans.delete(mark)
    if (answer) await perform(answer, response)
    else answerCorrectly(request.url ?? '', body, response)
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get running() {
      return running
    },
    plan: (mark, answers) => void plans.set(mark, [...answers]),
    forget: (mark) => void plans.delete(mark),
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

async function perform(answer: EngineAnswer, response: ServerResponse): Promise<void> {
  const { status, headers, pieces, ending, delayMs, pieceMs } = answer
  if (delayMs) await sleep(delayMs)
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  if (pieces.length > 0 || ending !== 'hang') {
    response.writeHead(status, { ...headers, ...(ending === 'short' ? { 'content-length': String(length + 10) } : {}) })
  }
  for (const piece of pieces) {
    if (pieceMs) await sleep(pieceMs)
    response.write(piece)
  }
  if (ending === 'end') response.end()
  // What was written leaves first.
  else if (ending !== 'hang') setImmediate(() => response.destroy())
}

function answerCorrectly(path: string, text: string, response: ServerResponse): void {
  response.setHeader('content-type', 'application/json')
  if (path.includes('/audio/')) return void response.end('{"text":" A weir.","language":"en"}')
  const body = JSON.parse(text) as Record<string, unknown>
  if (body['stream'] === true) return streamCorrectly(path, body, response)
  response.end(JSON.stringify(correctAnswer(path, body)))
}

const usage = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 }

function correctAnswer(path: string, body: Readonly<Record<string, unknown>>): object {
  const items = (name: string): unknown[] => [body[name] ?? []].flat()
  const choices = Array.from(
    { length: Number(body['n'] ?? 1) * Math.max(1, items('prompt').length) },
    (_, index) => index,
  )
  if (path.endsWith('/embeddings')) {
    return { data: items('input').map((_, index) => ({ index, embedding: [0.5, -1] })), usage: { prompt_tokens: 3 } }
  }
  if (path.endsWith('/rerank')) {
    return { results: items('documents').map((_, index) => ({ index, relevance_score: 0.5 })) }
  }
  if (path.endsWith('/ranking')) return { rankings: items('passages').map((_, index) => ({ index, logit: 0 })) }
  if (path.endsWith('/images/generations')) {
    return { data: Array.from({ length: Number(body['n'] ?? 1) }, () => ({ b64_json: png().toString('base64') })) }
  }
  const content = path.endsWith('/chat/completions')
    ? { message: { role: 'assistant', content: 'Hello there' } }
    : { text: 'Hello there' }
  return { choices: choices.map((index) => ({ index, ...content, finish_reason: 'stop' })), usage }
}

function streamCorrectly(path: string, body: Readonly<Record<string, unknown>>, response: ServerResponse): void {
  const isChat = path.endsWith('/chat/completions')
  const prompts = isChat ? 1 : Math.max(1, [body['prompt'] ?? []].flat().length)
  const send = (event: object): void => void response.write(`data: ${JSON.stringify(event)}\n\n`)
  for (let index = 0; index < Number(body['n'] ?? 1) * prompts; index++) {
    const piece = isChat ? { delta: { content: 'Hello' } } : { text: 'Hello' }
    const last = isChat ? { delta: {} } : { text: '' }
    send({ choices: [{ index, ...piece, finish_reason: null }] })
    send({ choices: [{ index, ...last, finish_reason: 'stop' }] })
  }
  send({ choices: [], usage })
  response.end('data: [DONE]\n\n')
}
