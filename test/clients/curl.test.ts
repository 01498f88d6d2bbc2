import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, it } from 'node:test'
import { png } from '../support/image-samples.ts'
import { endpoints, failOnce, holding, ownEndpoints, ranked, slugs, vectorOf, type Endpoints } from './endpoints.ts'

/** Runs the commands that the guides show, unchanged. */
const scene = endpoints()
const options = { timeout: 20_000 }
const hello = { model: slugs.chat, messages: [{ role: 'user', content: 'Hi' }] }

interface Outcome {
  readonly exit: number
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

function argumentsFor({ weir }: Endpoints, path: string, args: readonly string[], key = weir.key): string[] {
  return ['--silent', '--show-error', `${weir.base}${path}`, '--header', `Authorization: Bearer ${key}`, ...args]
}

/** Returns the headers and body of the answer, or of the last answer when curl retried. */
function curl(on: Endpoints, path: string, args: readonly string[] = [], key?: string): Promise<Outcome> {
  const more = ['--include', '--http1.1', '--header', 'Expect:']
  return new Promise((resolve) => {
    execFile('curl', argumentsFor(on, path, [...more, ...args], key), (error, stdout) => {
      const last = stdout.slice(stdout.lastIndexOf('HTTP/1.1 '))
      const end = last.indexOf('\r\n\r\n')
      const [first = '', ...lines] = last.slice(0, end).split('\r\n')
      const headers = Object.fromEntries(lines.map((line) => line.toLowerCase().split(': ') as [string, string]))
      const exit = Number(error?.code ?? 0)
      resolve({ exit, status: Number(first.split(' ')[1]), headers, text: last.slice(end + 4) })
    })
  })
}

function withJson(body: object): string[] {
  return ['--header', 'Content-Type: application/json', '--data', JSON.stringify(body)]
}

async function answer<Body>(path: string, args: readonly string[] = []): Promise<Body> {
  const { exit, status, text } = await curl(scene, path, args)
  assert.deepEqual([exit, status], [0, 200], text)
  return JSON.parse(text) as Body
}

function clipAt(name: string): string {
  return fileURLToPath(new URL(`../fixtures/audio/${name}`, import.meta.url))
}

describe('curl: chat', options, () => {
  it('[C1][E1] returns an answer with its headers', async () => {
    const { status, headers, text } = await curl(scene, '/chat/completions', withJson(hello))
    assert.equal(status, 200)
    const { choices } = JSON.parse(text) as { choices: { message: { content: string } }[] }
    assert.equal(choices[0]?.message.content, 'Hello there!')
    for (const name of ['x-request-id', 'x-queue-wait-ms', 'x-ratelimit-remaining']) assert.ok(headers[name], name)
  })
})

describe('curl: streaming', options, () => {
  it('[E2] prints the events up to [DONE]', async () => {
    const body = { ...hello, stream: true }
    const { headers, text } = await curl(scene, '/chat/completions', ['--no-buffer', ...withJson(body)])
    assert.match(headers['content-type'] ?? '', /^text\/event-stream/)
    const events = text.split('\n\n').filter(Boolean)
    assert.ok(events.every((event) => event.startsWith('data: ')))
    assert.equal(events.at(-1), 'data: [DONE]')
  })
})

describe('curl: completions', options, () => {
  it('[E3] return an answer', async () => {
    const body = { model: slugs.chat, prompt: 'A weir lets' }
    const { choices } = await answer<{ choices: { text: string }[] }>('/completions', withJson(body))
    assert.equal(choices[0]?.text, ' a river through')
  })
})

describe('curl: embeddings', options, () => {
  it('[E4] are numbers', async () => {
    const body = { model: slugs.embedding, input: ['one', 'two'] }
    const { data } = await answer<{ data: { embedding: number[] }[] }>('/embeddings', withJson(body))
    assert.deepEqual(
      data.map(({ embedding }) => embedding),
      [vectorOf(0), vectorOf(1)],
    )
  })
})

describe('curl: rerank', options, () => {
  it('[E5] ranks documents', async () => {
    const { query, documents } = ranked
    const body = { model: slugs.documents, query, documents }
    const { results } = await answer<{ results: { index: number }[] }>('/rerank', withJson(body))
    assert.deepEqual(
      results.map(({ index }) => index),
      [1, 2, 0],
    )
  })

  it('[E6] ranks passages', async () => {
    const passages = ranked.documents.map((text) => ({ text }))
    const body = { model: slugs.passages, query: { text: ranked.query }, passages }
    const { rankings } = await answer<{ rankings: object[] }>('/reranking', withJson(body))
    assert.deepEqual(rankings, [
      { index: 1, logit: 4.5 },
      { index: 2, logit: 0 },
      { index: 0, logit: -6.25 },
    ])
  })
})

describe('curl: images', options, () => {
  it('[E7] are returned as b64_json and as links that work', async () => {
    const body = { model: slugs.images, prompt: 'A weir at dawn' }
    type Images = { data: { b64_json?: string; url?: string }[] }
    const inside = await answer<Images>('/images/generations', withJson(body))
    assert.equal(inside.data[0]?.b64_json, png().toString('base64'))
    const linked = await answer<Images>('/images/generations', withJson({ ...body, response_format: 'url' }))
    const opened = await fetch(linked.data[0]?.url ?? '')
    assert.equal(opened.status, 200)
  })
})

describe('curl: audio', options, () => {
  const form = (name: string, ...fields: string[]): string[] =>
    [`file=@${clipAt(name)}`, `model=${slugs.audio}`, ...fields].flatMap((field) => ['--form', field])

  it('[E8] is transcribed, as JSON and as text', async () => {
    const { text } = await answer<{ text: string }>('/audio/transcriptions', form('plain.wav', 'language=en'))
    assert.match(text, /A weir lets a river through/)
    const plain = await curl(scene, '/audio/transcriptions', form('early-index.m4a', 'response_format=text'))
    assert.match(plain.headers['content-type'] ?? '', /^text\/plain/)
    assert.match(plain.text, /A weir lets a river through/)
  })

  it('[E9] is translated', async () => {
    const { text } = await answer<{ text: string }>('/audio/translations', form('opus.webm'))
    assert.match(text, /A weir lets a river through/)
  })
})

describe('curl: models', options, () => {
  it('[L1][L3] lists the models and shows one', async () => {
    const { data } = await answer<{ data: { id: string }[] }>('/models')
    assert.deepEqual(new Set(data.map(({ id }) => id)), new Set<string>(Object.values(slugs)))
    assert.equal((await answer<{ id: string }>(`/models/detail?slug=${slugs.chat}`)).id, slugs.chat)
  })
})

describe('curl: errors', options, () => {
  it('[K1][X1] are JSON with a status, and an exit code with --fail-with-body', async () => {
    const wrongKey = await curl(scene, '/models', ['--fail-with-body'], 'weir-wrong')
    assert.deepEqual([wrongKey.exit, wrongKey.status], [22, 401])
    assert.match(wrongKey.text, /"code":"invalid_api_key"/)
    const unknown = await curl(scene, '/chat/completions', withJson({ ...hello, model: 'meta/none' }))
    assert.deepEqual([unknown.exit, unknown.status], [0, 404])
    assert.match(unknown.text, /"code":"model_not_found"/)
    // The content type that --data sends by default.
    const untyped = await curl(scene, '/chat/completions', ['--data', JSON.stringify(hello)])
    assert.equal(untyped.status, 415)
    assert.match(untyped.text, /application\/json/)
  })
})

// curl's own first pause is 1 s, so one of 2 s shows that it respects Retry-After.
describe('curl: retries', options, () => {
  it('[X2] after one engine failure, retries when Retry-After says', async (t) => {
    const own = await ownEndpoints(t)
    failOnce(own, 500)
    const { status } = await curl(own, '/chat/completions', ['--retry', '2', ...withJson(hello)])
    assert.equal(status, 200)
    const [first, second] = own.engine.calls
    const pause = (second?.arrivedAt ?? 0) - (first?.arrivedAt ?? 0)
    assert.ok(pause >= 1990, `it paused ${pause} ms`)
  })
})

describe('curl: broken stream', options, () => {
  it('[E2][X1] ends with an error event after the last token, without [DONE]', async () => {
    scene.engine.script = { breakAfter: { tokens: 2, how: 'reset' } }
    const { text } = await curl(scene, '/chat/completions', withJson({ ...hello, stream: true }))
    assert.match(text, /"content":" there"/)
    assert.match(text.trimEnd().split('\n\n').at(-1) ?? '', /^data: \{"error":\{.*"code":"upstream_error"/)
  })
})

describe('curl: abort', options, () => {
  it('[E2] stopping curl in the middle of a stream frees the engine', async () => {
    scene.engine.script = holding(1)
    const args = argumentsFor(scene, '/chat/completions', ['--no-buffer', ...withJson({ ...hello, stream: true })])
    const child = spawn('curl', args, { stdio: ['ignore', 'pipe', 'inherit'] })
    for await (const piece of child.stdout as AsyncIterable<Buffer>) if (piece.includes('Hello')) break
    child.kill('SIGINT')
    await scene.engine.left(1)
  })
})
