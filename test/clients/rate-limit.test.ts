import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it, mock } from 'node:test'
import { promisify } from 'node:util'
import { createCohere } from '@ai-sdk/cohere'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { OpenAI as LlamaIndex } from '@llamaindex/openai'
import * as ai from 'ai'
import * as ai6 from 'ai-6'
import { createCohere as createCohere3 } from 'ai-cohere-3'
import { CohereClient } from 'cohere-ai'
import { CohereClient as CohereClient7 } from 'cohere-ai-7'
import { OpenAI } from 'openai'
import { OpenAI as OpenAI6 } from 'openai-6'
import { createOpenAICompatible as createOpenAICompatible2 } from 'openai-compatible-2'
import { pauseMs, type Attempt } from './attempts.ts'
import { endpoints, ranked, slugs } from './endpoints.ts'
import { langChains, type LangChain } from './langchain-majors.ts'

/**
 * When a workspace exceeds its rate limit, Retry-After points to the end of the minute, which is later than any
 * client's own pause. A client that ignores it is refused again. All clients wait for the same minute.
 */

/** All that a client gets. */
interface Address {
  readonly baseURL: string
  readonly apiKey: string
}

const messages = [{ role: 'user' as const, content: 'Hi' }]
const question = { query: ranked.query, documents: [...ranked.documents] }

/** The v1 client adds `v1/` to its paths itself. */
const cohereOptions = ({ baseURL, apiKey }: Address) => ({ baseUrl: baseURL.replace(/\/v1$/, ''), token: apiKey })

const clients: Readonly<Record<string, (at: Address) => PromiseLike<unknown>>> = {
  openai: (at) => new OpenAI(at).chat.completions.create({ model: slugs.chat, messages }),
  'openai 6': (at) => new OpenAI6(at).chat.completions.create({ model: slugs.chat, messages }),
  ai: (at) => ai.generateText({ model: createOpenAICompatible({ name: 'weir', ...at })(slugs.chat), prompt: 'Hi' }),
  'ai 6': (at) =>
    ai6.generateText({ model: createOpenAICompatible2({ name: 'weir', ...at })(slugs.chat), prompt: 'Hi' }),
  llamaindex: (at) => new LlamaIndex({ model: slugs.chat, ...at }).chat({ messages }),
  '@ai-sdk/cohere': (at) => ai.rerank({ model: createCohere(at).reranking(slugs.documents), ...question }),
  '@ai-sdk/cohere 3': (at) => ai6.rerank({ model: createCohere3(at).reranking(slugs.documents), ...question }),
  'cohere-ai': (at) => new CohereClient(cohereOptions(at)).rerank({ model: slugs.documents, ...question }),
  'cohere-ai 7': (at) => new CohereClient7(cohereOptions(at)).rerank({ model: slugs.documents, ...question }),
  ...byMajor('langchain', ({ openai }) => ({ baseURL, apiKey }) => {
    return new openai.ChatOpenAI({ model: slugs.chat, apiKey, configuration: { baseURL } }).invoke('Hi')
  }),
  ...byMajor('CohereRerank', ({ cohere }) => (at) => {
    const client = new CohereClient7(cohereOptions(at)) as never
    return new cohere.CohereRerank({ model: slugs.documents, client }).rerank(question.documents, question.query)
  }),
  curl: ({ baseURL, apiKey }) => promisify(execFile)('curl', curlArguments(`${baseURL}/models`, apiKey)),
}

function curlArguments(url: string, key: string): string[] {
  return ['--silent', '--fail', '--retry', '1', url, '--header', `Authorization: Bearer ${key}`]
}

type Send = (at: Address) => PromiseLike<unknown>

function byMajor(client: string, send: (langChain: LangChain) => Send): Record<string, Send> {
  return Object.fromEntries(langChains.map((langChain) => [client + langChain.suffix, send(langChain)]))
}

const scene = endpoints()
const attempts = new Map<string, Attempt[]>()
const keys = new Map<string, string>()
let baseURL = ''

/** A proxy between the clients and the service that records what each client does. */
const proxy = createServer((request, response) => void forward(request, response))

async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  const authorization = request.headers.authorization ?? ''
  const sentAt = performance.now()
  const answer = await fetch(new URL(request.url ?? '', scene.weir.base), {
    method: request.method ?? 'GET',
    headers: { authorization, 'content-type': request.headers['content-type'] ?? '' },
    ...(chunks.length > 0 ? { body: Buffer.concat(chunks) } : {}),
  })
  const body = Buffer.from(await answer.arrayBuffer())
  const key = authorization.replace(/^Bearer /, '')
  const seen = attempts.get(key) ?? []
  const { status, headers } = answer
  seen.push({ sentAt, answeredAt: performance.now(), status, retryAfter: headers.get('retry-after') })
  attempts.set(key, seen)
  response.writeHead(status, Object.fromEntries(headers)).end(body)
}

/** These use their own pauses, and succeed when one of them ends in the next minute. */
const ignoresRetryAfter = new Set(['langchain 0'])

describe('all clients, concurrently', { concurrency: true }, () => {
  before(async () => {
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    baseURL = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/api/v1`
    for (const client of Object.keys(clients)) {
      const name = client
        .replaceAll(/[^a-z0-9]+/gi, '-')
        .replace(/^-/, '')
        .toLowerCase()
      await scene.weir.admin('POST', '/admin/v1/workspaces', { name })
      await scene.weir.admin('PATCH', `/admin/v1/workspaces/${name}`, { requests_per_minute: 1 })
      const created = await scene.weir.admin('POST', '/admin/v1/keys', { workspace: name })
      keys.set(client, ((await created.json()) as { key: string }).key)
    }
    // Shift the clock so that the minute ends in 8 s, which keeps the test short.
    const { now } = Date
    const ahead = 52_000 - (now() % 60_000)
    mock.method(Date, 'now', () => now() + ahead)
  })
  after(() => {
    mock.restoreAll()
    proxy.closeAllConnections()
    proxy.close()
  })

  for (const [client, send] of Object.entries(clients)) {
    describe(`${client}: retries`, () => {
      const when = ignoresRetryAfter.has(client) ? 'with its own pauses' : 'by respecting Retry-After'
      it(`[R3][X2] waits out the rate limit ${when}`, { timeout: 40_000 }, async () => {
        const apiKey = keys.get(client) ?? assert.fail('no key')
        assert.equal((await scene.weir.call('/models', { key: apiKey })).status, 200)
        await send({ baseURL, apiKey })
        const seen = attempts.get(apiKey) ?? []
        const statuses = seen.map(({ status }) => status)
        if (ignoresRetryAfter.has(client)) {
          assert.ok(statuses.length > 2 && statuses.at(-1) === 200, statuses.join())
          return
        }
        assert.deepEqual(statuses, [429, 200])
        const seconds = Number(seen[0]?.retryAfter)
        assert.ok(seconds >= 4 && seconds <= 8, `Retry-After: ${seconds}`)
        assert.ok(pauseMs(seen) >= seconds * 1000 - 10, `it paused ${pauseMs(seen)} ms`)
      })
    })
  }
})
