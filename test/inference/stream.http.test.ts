import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, before, beforeEach, describe, it } from 'node:test'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { chatStage, refusalOf, stageConfig } from '../support/chat-stage.ts'
import { rawChat, rawClient } from '../support/raw-client.ts'
import { laneHolds, laneOf } from '../support/lane.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually, gate, within } from '../support/waiting.ts'
import { readEvents, startWeir, type TestWeir } from '../support/weir.ts'

interface Chunk {
  id: string
  object: string
  created: number
  model: string
  choices: { index: number; delta: Record<string, unknown>; logprobs: unknown; finish_reason: string | null }[]
  usage?: unknown
}

let engine: ScriptedEngine
let weir: TestWeir

before(async () => {
  engine = await scriptedEngine()
  weir = await startWeir(stageConfig([engine.url]))
})

after(async () => {
  await weir.stop()
  await engine.close()
})

beforeEach(() => {
  engine.script = {}
})

/** The engine sends exactly these bytes, piece by piece, and ends. */
function speak(pieces: readonly (string | Buffer)[]): void {
  engine.script = {
    async handle(_call, response) {
      response.socket?.setNoDelay(true)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const piece of pieces) {
        response.write(piece)
        await turn()
      }
      response.end()
    },
  }
}

const event = (choices: unknown, more: object = {}): string =>
  `data: ${JSON.stringify({ id: 'e', object: 'chat.completion.chunk', created: 1, model: 'engine-name', choices, ...more })}\n\n`
const says = (delta: object, finish: string | null = null, index = 0): string =>
  event([{ index, delta, logprobs: null, finish_reason: finish }])
const opening = says({ role: 'assistant', content: '' })
const usage = event([], { usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 } })
const done = 'data: [DONE]\n\n'

/** The chunks of a stream that ended normally. */
async function chunksOf(response: Response): Promise<Chunk[]> {
  assert.equal(response.status, 200, await response.clone().text())
  const events = await readEvents(response)
  assert.equal(events.pop(), '[DONE]')
  return events.map((it) => JSON.parse(it) as Chunk)
}

const deltasOf = (chunks: readonly Chunk[]): unknown[] => chunks.flatMap((it) => it.choices.map(({ delta }) => delta))

/** The chunks of one choice, as [delta, finish_reason]. */
const wayOf = (chunks: readonly Chunk[], index = 0): unknown[] =>
  chunks.flatMap((it) =>
    it.choices.filter((choice) => choice.index === index).map(({ delta, finish_reason: reason }) => [delta, reason]),
  )

describe('streaming: the sequence', () => {
  it('[E2] is exactly role, tokens, finish_reason and [DONE], with one id, time and model', async () => {
    engine.script = { tokens: ['Hel', 'lo'] }
    const response = await weir.chat({ stream: true })
    const id = response.headers.get('x-request-id')
    const text = await response.text()
    const created = (JSON.parse(text.slice('data: '.length, text.indexOf('\n'))) as Chunk).created
    assert.ok(Math.abs(created - Date.now() / 1000) < 60)
    const chunk = (delta: object, finish: string | null): string =>
      `data: ${JSON.stringify({
        id: `chatcmpl-${id}`,
        object: 'chat.completion.chunk',
        created,
        model: 'meta/test-8b',
        choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
      })}\n\n`
    assert.equal(
      text,
      chunk({ role: 'assistant', content: '' }, null) +
        chunk({ content: 'Hel' }, null) +
        chunk({ content: 'lo' }, null) +
        chunk({}, 'stop') +
        'data: [DONE]\n\n',
    )
  })

  it('[E2] has headers for an uncompressed, unbuffered event stream, with the queue wait', async () => {
    const response = await weir.chat(
      { stream: true },
      {
        headers: { 'content-type': 'application/json', accept: 'application/json', 'accept-encoding': 'gzip, br' },
        body: JSON.stringify({ model: 'test-8b', stream: true, messages: [{ role: 'user', content: 'Hi' }] }),
      },
    )
    assert.equal(response.status, 200)
    assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream\b/)
    assert.equal(response.headers.get('x-accel-buffering'), 'no')
    assert.equal(response.headers.get('content-encoding'), null)
    assert.equal(response.headers.get('x-queue-wait-ms'), '0')
    assert.match(response.headers.get('x-ratelimit-remaining') ?? '', /^\d+$/)
    const chunks = await chunksOf(response)
    assert.ok(chunks.every(({ model }) => model === 'meta/test-8b'))
  })

  it('[E2] with include_usage has null until the end, then choices [] with the usage, then [DONE]', async () => {
    engine.script = { tokens: ['a'], promptTokens: 9, cachedTokens: 3, continuousUsage: true }
    const chunks = await chunksOf(await weir.chat({ stream: true, stream_options: { include_usage: true } }))
    const last = chunks.pop()
    assert.deepEqual(last?.choices, [])
    assert.deepEqual(last.usage, {
      prompt_tokens: 9,
      completion_tokens: 1,
      total_tokens: 10,
      prompt_tokens_details: { cached_tokens: 3 },
      completion_tokens_details: { reasoning_tokens: 0 },
    })
    assert.equal(chunks.length, 3)
    for (const chunk of chunks) {
      assert.equal(chunk.choices.length, 1)
      assert.equal(chunk.usage, null)
    }
    assert.equal(new Set([...chunks, last].map(({ id, created }) => `${id} ${created}`)).size, 1)
  })

  it('[E2] without include_usage has no usage, even if the engine sends it with each chunk', async () => {
    for (const options of [{}, { stream_options: { include_usage: false } }, { stream_options: {} }]) {
      engine.script = { tokens: ['a'], continuousUsage: true }
      const chunks = await chunksOf(await weir.chat({ stream: true, ...options }))
      assert.equal(chunks.length, 3)
      for (const chunk of chunks) {
        assert.ok(!('usage' in chunk))
        assert.equal(chunk.choices.length, 1)
      }
    }
  })

  it('[E2] has an estimated usage if the engine reports none', async () => {
    engine.script = { tokens: ['a', 'b', 'c'], silentUsage: true }
    const chunks = await chunksOf(await weir.chat({ stream: true, stream_options: { include_usage: true } }))
    const counted = chunks.at(-1)?.usage as Record<string, number> | undefined
    assert.equal(counted?.['completion_tokens'], 3)
    assert.ok(Number(counted['prompt_tokens']) > 0)
  })

  it('[E2] has tool calls with id and name first, then the arguments, each with its index', async () => {
    engine.script = {
      toolCalls: [
        { id: 'a', name: 'f', arguments: ['{"x"', ':1}'] },
        { id: 'b', name: 'g', arguments: ['{}'] },
      ],
    }
    const chunks = await chunksOf(await weir.chat({ stream: true }))
    const named = (index: number, id: string, name: string): object => ({
      tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }],
    })
    const argued = (index: number, text: string): object => ({ tool_calls: [{ index, function: { arguments: text } }] })
    assert.deepEqual(wayOf(chunks), [
      [{ role: 'assistant', content: '' }, null],
      [named(0, 'a', 'f'), null],
      [argued(0, '{"x"'), null],
      [argued(0, ':1}'), null],
      [named(1, 'b', 'g'), null],
      [argued(1, '{}'), null],
      [{}, 'tool_calls'],
    ])
  })

  it('[E2] has reasoning under both of its names', async () => {
    speak([
      opening,
      says({ reasoning_content: 'h' }),
      says({ reasoning: 'm' }),
      says({ content: 'Yes' }),
      says({}, 'stop'),
      done,
    ])
    assert.deepEqual(deltasOf(await chunksOf(await weir.chat({ stream: true }))), [
      { role: 'assistant', content: '' },
      { reasoning_content: 'h' },
      { reasoning_content: 'm' },
      { content: 'Yes' },
      {},
    ])
  })

  it('[E2] with n has a role and a finish_reason for every choice', async () => {
    speak([
      opening,
      says({ role: 'assistant', content: 'b' }, null, 1),
      says({ content: 'a' }),
      event([
        { index: 1, delta: { content: 'B' }, finish_reason: null },
        { index: 0, delta: { content: 'A' }, finish_reason: 'length' },
      ]),
      says({}, 'stop', 1),
      usage,
      done,
    ])
    const chunks = await chunksOf(await weir.chat({ stream: true, n: 2 }))
    assert.deepEqual(wayOf(chunks, 0), [
      [{ role: 'assistant', content: '' }, null],
      [{ content: 'a' }, null],
      [{ content: 'A' }, null],
      [{}, 'length'],
    ])
    assert.deepEqual(wayOf(chunks, 1), [
      [{ role: 'assistant', content: '' }, null],
      [{ content: 'b' }, null],
      [{ content: 'B' }, null],
      [{}, 'stop'],
    ])
  })
})

describe('streaming: habits of engines', () => {
  const usual = [
    [{ role: 'assistant', content: '' }, null],
    [{ content: 'Grüße ' }, null],
    [{ content: '中👩‍👧' }, null],
    [{}, 'stop'],
  ]

  it('[E2] the role in every chunk', async () => {
    const role = 'assistant'
    speak([opening, says({ role, content: 'Grüße ' }), says({ role, content: '中👩‍👧' }), says({ role }, 'stop'), done])
    assert.deepEqual(wayOf(await chunksOf(await weir.chat({ stream: true }))), usual)
  })

  it('[E2] no role at all', async () => {
    speak([says({ content: 'Grüße ' }), says({ content: '中👩‍👧' }), says({}, 'stop'), done])
    assert.deepEqual(wayOf(await chunksOf(await weir.chat({ stream: true }))), usual)
  })

  it('[E2] the finish_reason with the last content', async () => {
    speak([opening, says({ content: 'Grüße ' }), says({ content: '中👩‍👧' }, 'stop'), usage, done])
    assert.deepEqual(wayOf(await chunksOf(await weir.chat({ stream: true }))), usual)
  })

  it('[E2] no [DONE]', async () => {
    speak([opening, says({ content: 'Grüße ' }), says({ content: '中👩‍👧' }), says({}, 'stop')])
    assert.deepEqual(wayOf(await chunksOf(await weir.chat({ stream: true }))), usual)
  })

  it('[E2] comments, other fields, and \\r\\n', async () => {
    const lines = [opening, says({ content: 'Grüße ' }), says({ content: '中👩‍👧' }), says({}, 'stop'), done]
    speak([
      ': welcome\r\n\r\n',
      ...lines.map((it) => `event: chunk\r\nid: 5\r\nretry: 10\r\n: ping\r\n${it.replaceAll('\n', '\r\n')}`),
    ])
    assert.deepEqual(wayOf(await chunksOf(await weir.chat({ stream: true }))), usual)
  })

  it('[E2] JSON with spaces and escapes', async () => {
    const wording = (it: string): string =>
      it
        .replaceAll(/[\u0080-\uffff]/g, (at) => `\\u${at.charCodeAt(0).toString(16).padStart(4, '0')}`)
        .replaceAll(/([:,])"/g, '$1 "')
        .replaceAll('":[', '": [')
    speak([opening, says({ content: 'Grüße ' }), says({ content: '中👩‍👧' }), says({}, 'stop'), done].map(wording))
    assert.deepEqual(wayOf(await chunksOf(await weir.chat({ stream: true }))), usual)
  })

  it('[E2] every byte alone, even inside characters and between \\r and \\n', async () => {
    const lines = [opening, says({ content: 'Grüße ' }), says({ content: '中👩‍👧' }), says({}, 'stop'), done]
    const bytes = Buffer.from(lines.join('').replaceAll('\n', '\r\n'))
    speak([...bytes].map((byte) => Buffer.from([byte])))
    assert.deepEqual(wayOf(await chunksOf(await weir.chat({ stream: true }))), usual)
  })

  it('[E2] all in one piece', async () => {
    speak([[opening, says({ content: 'Grüße ' }), says({ content: '中👩‍👧' }), says({}, 'stop'), usage, done].join('')])
    assert.deepEqual(wayOf(await chunksOf(await weir.chat({ stream: true }))), usual)
  })

  it('[E2] a response left open after [DONE], while the caller’s ends at once', async () => {
    engine.script = { tokens: ['a'], hangAfterDone: true }
    const seen = engine.calls.length
    await chunksOf(await within(10_000, 'the stream ends', weir.chat({ stream: true })))
    const call = engine.calls[seen]
    assert.equal(call?.hasLeft, false, 'the caller waited until the engine was cut off')
    assert.equal((await laneOf(weir)).in_flight_requests, 1, 'the engine is still at it')
    await eventually('the engine’s connection is let go', () => call?.hasLeft ?? false)
    await laneHolds(weir, 0, 0)
  })

  it('[E2] text after [DONE], which is dropped', async () => {
    speak([opening, says({ content: 'a' }), says({}, 'stop'), done, says({ content: 'late' })])
    assert.deepEqual(deltasOf(await chunksOf(await weir.chat({ stream: true }))), [
      { role: 'assistant', content: '' },
      { content: 'a' },
      {},
    ])
  })
})

describe('streaming: timing', () => {
  it('[E2] nothing is sent before the engine’s first event, not even headers', async () => {
    const thought = gate()
    engine.script = {
      async handle(_call, response) {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(': thinking\n\n')
        await thought.opened
        response.end([opening, says({ content: 'a' }), says({}, 'stop'), done].join(''))
      },
    }
    const arrived = engine.calls.length + 1
    const client = await rawClient(weir.base)
    client.send(rawChat(weir.key, { stream: true }))
    await engine.arrived(arrived)
    await sleep(100)
    assert.equal(client.received, '')
    thought.open()
    await client.sees('data: [DONE]')
    client.leave()
  })

  it('[E2] a token is forwarded when it arrives, not with the next one', async () => {
    const steps = Array.from({ length: 5 }, gate)
    engine.script = {
      async handle(_call, response) {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(opening)
        for (const [index, step] of steps.entries()) {
          response.write(says({ content: `token${index};` }))
          await step.opened
        }
        response.end(says({}, 'stop') + done)
      },
    }
    const client = await rawClient(weir.base)
    client.send(rawChat(weir.key, { stream: true }))
    for (const [index, step] of steps.entries()) {
      await client.sees(`token${index};`)
      assert.ok(!client.received.includes(`token${index + 1};`))
      step.open()
    }
    await client.sees('data: [DONE]')
    client.leave()
  })

  it('[E2] the response ends right after [DONE], and its connection serves the next request', async () => {
    engine.script = { tokens: ['a'] }
    const client = await rawClient(weir.base)
    client.send(rawChat(weir.key, { stream: true }))
    await client.sees('data: [DONE]\n\n\r\n0\r\n\r\n')
    client.send(rawChat(weir.key, {}))
    await client.sees('"object":"chat.completion",')
    client.leave()
  })
})

describe('streaming: engines that break off', () => {
  const failure = {
    error: {
      message: 'The engine broke off in the middle of its answer.',
      type: 'server_error',
      param: null,
      code: 'upstream_error',
    },
  }

  async function assertBroken(): Promise<void> {
    const client = await rawClient(weir.base)
    client.send(rawChat(weir.key, { stream: true }, { Connection: 'close' }))
    await client.closed()
    const [head = '', ...rest] = client.received.split('\r\n\r\n')
    assert.match(head, /^HTTP\/1\.1 200 /)
    const lines = rest.join('\r\n\r\n').split(/\r?\n/)
    const events = lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice('data: '.length))
    assert.ok(events.length > 1)
    const last = events.pop() ?? ''
    assert.deepEqual(JSON.parse(last), failure)
    for (const it of events) assert.ok('choices' in (JSON.parse(it) as object), it)
    assert.ok(!client.received.includes('[DONE]'))
    assert.ok(client.received.endsWith('\r\n0\r\n\r\n'), 'the response is not ended')
  }

  const words = [opening, says({ content: 'a' }), says({ content: 'b' })]
  const partly = (rest: (response: ServerResponse) => void | Promise<void>): void => {
    engine.script = {
      async handle(_call, response) {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(words.join(''))
        await sleep(20)
        await rest(response)
      },
    }
  }

  it('[E2][X1] with a reset: exactly one error event, and no [DONE]', async () => {
    partly((response) => void response.socket?.resetAndDestroy())
    await assertBroken()
  })

  it('[E2][X1] with a clean end but no finish_reason', async () => {
    partly((response) => void response.end())
    await assertBroken()
  })

  it('[E2][X1] with a closed connection and no length', async () => {
    engine.script = {
      async handle(_call, response) {
        response.useChunkedEncodingByDefault = false
        response.writeHead(200, { 'content-type': 'text/event-stream', connection: 'close' })
        response.write(words.join(''))
        await sleep(20)
        response.end()
      },
    }
    await assertBroken()
  })

  it('[E2][X1] with [DONE] but no finish_reason', async () => {
    partly((response) => void response.end(done))
    await assertBroken()
  })

  it('[E2][X1] with an error event, whose message the caller never sees', async () => {
    for (const error of [{ message: 'CUDA out of memory on gpu-7', code: 500 }, 'CUDA out of memory on gpu-7']) {
      partly(
        (response) =>
          void response.end(`data: ${JSON.stringify({ error })}\n\n${says({ content: 'c' }, 'stop')}${done}`),
      )
      await assertBroken()
    }
  })

  it('[E2][X1] with something that is not a chunk', async () => {
    for (const nonsense of ['data: {"choices":\n\n', 'data: []\n\n', 'data: oops\n\n', 'data: {"choices":7}\n\n']) {
      partly((response) => void response.end(nonsense + says({}, 'stop') + done))
      await assertBroken()
    }
  })

  it('[E2][X1] with an endless event', async () => {
    partly(async (response) => {
      response.write('data: ')
      const piece = Buffer.alloc(1024 * 1024, 'x')
      for (let sent = 0; sent < 12 && !response.destroyed; sent++) {
        response.write(piece)
        await sleep(1)
      }
    })
    await assertBroken()
  })

  it('[E2][X1] before their first event give an ordinary error', async () => {
    const breaks: Record<string, (response: ServerResponse) => void> = {
      'an error event': (response) => void response.end('data: {"error":{"message":"CUDA"}}\n\n'),
      'a clean end': (response) => void response.end(),
      'a reset': (response) => void response.socket?.resetAndDestroy(),
      'only [DONE]': (response) => void response.end(done),
      'no event stream': (response) => void response.end('{"choices":[]}'),
    }
    for (const [what, breakOff] of Object.entries(breaks)) {
      engine.script = {
        handle(_call, response) {
          response.writeHead(200, { 'content-type': 'text/event-stream' })
          response.flushHeaders()
          breakOff(response)
        },
      }
      const response = await weir.chat({ stream: true })
      assert.match(response.headers.get('content-type') ?? '', /^application\/json/, what)
      const refusal = await refusalOf(response)
      assert.deepEqual([refusal.status, refusal.code, refusal.retryAfter], [502, 'upstream_error', '2'], what)
      assert.doesNotMatch(refusal.message, /CUDA/)
    }
  })
})

describe('streaming: engines that continue past max_tokens', () => {
  const word = (index: number): string => `word${index} `
  const first = (count: number): string[] => Array.from({ length: count }, (_, index) => word(index))
  const counted = (content: string, tokens: number, index = 0): string =>
    event([{ index, delta: { content }, logprobs: null, finish_reason: null }], {
      usage: { prompt_tokens: 10, completion_tokens: tokens, prompt_tokens_details: { cached_tokens: 4 } },
    })

  /** Sends the beginning, then one piece after the other until it is stopped. */
  function goOn(beginning: readonly string[], piece: (index: number) => string): void {
    engine.script = {
      async handle(_call, response) {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        for (const it of beginning) response.write(it)
        for (let index = 0; !response.destroyed; index++) {
          response.write(piece(index))
          await turn()
        }
      },
    }
  }

  /** The chunks of a stream that was cut, and its row; the engine has been stopped. */
  async function cut(body: object): Promise<{ chunks: Chunk[]; row: LedgerRow }> {
    const left = engine.calls.filter(({ hasLeft }) => hasLeft).length
    const response = await weir.chat({ stream: true, ...body })
    const id = response.headers.get('x-request-id') ?? ''
    const chunks = await within(10_000, 'the stream ends', chunksOf(response))
    await within(10_000, 'the engine is stopped', engine.left(left + 1))
    await laneHolds(weir, 0, 0)
    const row = (await weir.ledger()).find(({ requestId }) => requestId === id)
    assert.ok(row)
    assert.equal(row.outcome, 'completed')
    return { chunks, row }
  }

  const textOf = (chunks: readonly Chunk[], index = 0): string =>
    chunks
      .flatMap(({ choices }) => choices)
      .filter((choice) => choice.index === index)
      .map(({ delta }) =>
        [delta['content'], delta['reasoning_content']].filter((it) => typeof it === 'string').join(''),
      )
      .join('')

  const reasonsOf = (chunks: readonly Chunk[], index = 0): (string | null)[] =>
    chunks
      .flatMap(({ choices }) => choices)
      .filter((choice) => choice.index === index)
      .map(({ finish_reason: reason }) => reason)
      .filter((reason) => reason !== null)

  it('[E12] are stopped at the limit, and the stream ends with the finish_reason length', async () => {
    goOn([opening], (index) => says({ content: word(index) }))
    const { chunks, row } = await cut({ max_tokens: 5 })
    assert.deepEqual(wayOf(chunks), [
      [{ role: 'assistant', content: '' }, null],
      ...first(5).map((content) => [{ content }, null]),
      [{}, 'length'],
    ])
    assert.deepEqual([row.outputTokens, row.estimated, row.maxTokens], [5, true, 5])
  })

  it('[E12][M2] are billed by their own count up to the limit, which usage shows too', async () => {
    goOn([opening], (index) => counted(word(index), index + 1))
    const { chunks, row } = await cut({ max_tokens: 5, stream_options: { include_usage: true } })
    const last = chunks.pop()
    assert.equal(textOf(chunks), first(5).join(''))
    assert.deepEqual(reasonsOf(chunks), ['length'])
    assert.deepEqual([row.inputTokens, row.cachedInputTokens, row.outputTokens, row.estimated], [10, 4, 5, false])
    assert.deepEqual(last?.usage, {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 0 },
    })
  })

  it('[E12] with several tokens in an event are cut inside the event', async () => {
    goOn([opening], (index) => counted('größer als größer ', 3 * (index + 1)))
    const { chunks, row } = await cut({ max_tokens: 5 })
    const text = textOf(chunks)
    assert.ok(text.startsWith('größer als größer gr') && text.length < 30, text)
    assert.deepEqual([reasonsOf(chunks), row.outputTokens], [['length'], 5])
  })

  it('[E12] in one event without a count are cut at about the limit', async () => {
    for (const content of [first(500).join(''), `größer ${first(500).join('')}`]) {
      goOn([opening, says({ content })], () => says({}))
      const { chunks, row } = await cut({ max_tokens: 5 })
      const text = textOf(chunks)
      assert.ok(content.startsWith(text) && text.length > 2 && text.length < 40, text)
      assert.deepEqual([reasonsOf(chunks), row.outputTokens <= 5], [['length'], true])
    }
  })

  it('[E12] in their reasoning or in a tool call are stopped as well', async () => {
    const call = (index: number): object => ({ tool_calls: [{ index: 0, function: { arguments: word(index) } }] })
    for (const delta of [(index: number) => ({ reasoning: word(index) }), call]) {
      goOn([opening], (index) => says(delta(index)))
      const { chunks, row } = await cut({ max_tokens: 5 })
      assert.deepEqual([chunks.length, reasonsOf(chunks), row.outputTokens], [7, ['length'], 5])
    }
  })

  it('[E12] in one choice of several are stopped when the others have ended', async () => {
    goOn([opening, says({ role: 'assistant', content: '' }, null, 1)], (index) => {
      if (index === 20) return says({}, 'stop', 1)
      return index < 4 ? counted(word(index), index + 1, 1) : counted(word(index), index - 3)
    })
    const { chunks, row } = await cut({ max_tokens: 5, n: 2 })
    assert.deepEqual([textOf(chunks).split(' ').length - 1, reasonsOf(chunks)], [5, ['length']])
    assert.deepEqual([textOf(chunks, 1).split(' ').length - 1, reasonsOf(chunks, 1)], [4, ['stop']])
    assert.deepEqual([row.inputTokens, row.cachedInputTokens, row.outputTokens], [10, 4, 9])
  })

  it('[E12] in choices that were not requested are dropped', async () => {
    goOn([opening], (index) => (index === 2 ? says({}, 'stop') : says({ content: word(index) }, null, index % 3)))
    const { chunks, row } = await cut({ max_tokens: 5 })
    assert.equal(textOf(chunks), word(0))
    assert.deepEqual(new Set(chunks.flatMap(({ choices }) => choices.map(({ index }) => index))), new Set([0]))
    assert.deepEqual([reasonsOf(chunks), row.outputTokens], [['stop'], 1])
  })

  it('[E12] by their count alone are billed no more than was allowed', async () => {
    speak([
      opening,
      says({ content: 'Hi' }),
      says({}, 'stop'),
      event([], { usage: { prompt_tokens: 90_000_000, completion_tokens: 90_000_000 } }),
      done,
    ])
    const response = await weir.chat({ stream: true, max_tokens: 5, stream_options: { include_usage: true } })
    const id = response.headers.get('x-request-id')
    const last = (await chunksOf(response)).pop()
    const row = (await weir.ledger()).find(({ requestId }) => requestId === id)
    assert.equal(row?.outputTokens, 5)
    assert.ok(row.inputTokens > 0 && row.inputTokens <= 8192, `${row.inputTokens} input tokens`)
    assert.equal(row.estimated, true)
    const { prompt_tokens: input, completion_tokens: output } = (last?.usage ?? {}) as Record<string, number>
    assert.deepEqual([input, output], [row.inputTokens, row.outputTokens])
  })

  it('[E12] are distinguished from those that keep it, whose answers are unchanged', async () => {
    for (const counts of [true, false]) {
      speak([
        opening,
        ...first(5).map((it, index) => (counts ? counted(it, index + 1) : says({ content: it }))),
        says({}, 'stop'),
        usage,
        done,
      ])
      const chunks = await chunksOf(await weir.chat({ stream: true, max_tokens: 5 }))
      assert.deepEqual([textOf(chunks), reasonsOf(chunks)], [first(5).join(''), ['stop']])
    }
  })

  it('[E12] are counted', async () => {
    const breaches = async (): Promise<number> => {
      const text = await (await weir.admin('GET', '/metrics')).text()
      return Number(/^weir_engine_breaches_total\{model="meta\/test-8b"\} (\d+)$/m.exec(text)?.[1] ?? 0)
    }
    const before = await breaches()
    goOn([opening], (index) => says({ content: word(index) }))
    await cut({ max_tokens: 5 })
    assert.equal(await breaches(), before + 1)
    speak([opening, ...first(5).map((content) => says({ content })), says({}, 'length'), usage, done])
    await chunksOf(await weir.chat({ stream: true, max_tokens: 5 }))
    assert.equal(await breaches(), before + 1, 'an engine that keeps to the limit')
  })
})

describe('streaming: slow callers', () => {
  /** As much output as the engine of these tests sends. */
  const endlessly = { stream: true, max_tokens: 1_000_000 }
  const roomy = {
    model: { context_length: 2_000_000, max_completion_tokens: 1_000_000 },
    limits: { token_budget: 2_000_000 },
  }

  /** An engine that sends as much as it can, and counts it. */
  function endless(
    bytes: number,
    pace: 'at once' | 'word by word' = 'at once',
  ): { script: ScriptedEngine['script']; said(): number } {
    let said = 0
    const word = says({ content: 'x'.repeat(pace === 'at once' ? 32_000 : 8000) })
    return {
      said: () => said,
      script: {
        async handle(_call, response) {
          response.writeHead(200, { 'content-type': 'text/event-stream' })
          response.write(opening)
          let wake: () => void
          response.on('drain', () => wake())
          response.on('close', () => wake())
          while (said < bytes && !response.destroyed) {
            const awake = new Promise<void>((resolve) => (wake = resolve))
            said += word.length
            if (!response.write(word)) await awake
            else if (pace === 'word by word') await turn()
          }
          response.end(says({}, 'stop') + done)
        },
      },
    }
  }

  const ALL = 96 * 1024 * 1024
  // More than the buffers of four sockets hold, but far less than the engine would send.
  const HELD = 48 * 1024 * 1024

  /** Resolves with how much the engine has sent, once it sends no more. */
  async function stalled(said: () => number): Promise<number> {
    let last = -1
    while (said() !== last) {
      last = said()
      await sleep(250)
    }
    return last
  }

  it('[E2] the engine is paused while the caller does not read, and resumed when it does', async (t) => {
    const { script, said } = endless(ALL)
    const stage = await chatStage(t, { script, ...roomy })
    const client = await rawClient(stage.weir.base)
    client.socket.removeAllListeners('data')
    client.socket.pause()
    client.send(rawChat(stage.weir.key, endlessly))
    await eventually('the engine speaks', () => said() > 0)
    assert.ok((await stalled(said)) < HELD, `the engine has said ${said()} bytes without a reader`)

    let read = 0
    let tail = ''
    client.socket.on('data', (chunk) => {
      read += chunk.length
      tail = (tail + chunk.toString('latin1')).slice(-200)
    })
    client.socket.resume()
    await eventually('the caller has it all', () => tail.includes('data: [DONE]'), 30_000)
    assert.ok(said() >= ALL)
    assert.ok(read > ALL)
    client.leave()
  })

  it('[E2] the engine is also paused when it sends word by word', async (t) => {
    const { script, said } = endless(ALL, 'word by word')
    const stage = await chatStage(t, { script, ...roomy })
    const client = await rawClient(stage.weir.base)
    client.socket.pause()
    client.send(rawChat(stage.weir.key, endlessly))
    await eventually('the engine speaks', () => said() > 0)
    assert.ok((await stalled(said)) < HELD, `the engine has said ${said()} bytes without a reader`)
    client.leave()
    await within(5000, 'the engine is notified', stage.engine.left(1))
  })

  it('[E2] a caller that disconnects while the engine is paused ends the engine’s call', async (t) => {
    const { script, said } = endless(ALL)
    const stage = await chatStage(t, { script, ...roomy })
    const client = await rawClient(stage.weir.base)
    client.socket.pause()
    client.send(rawChat(stage.weir.key, endlessly))
    await eventually('the engine speaks', () => said() > 0)
    assert.ok((await stalled(said)) < HELD)
    client.leave()
    await within(5000, 'the engine is notified', stage.engine.left(1))
    await eventually('the row is there', async () => (await stage.weir.ledger()).length === 1)
    assert.equal((await stage.weir.ledger())[0]?.outcome, 'caller_left')
  })
})

describe('the bytes of a stream', () => {
  const words = Array.from({ length: 50 }, (_, number) => says({ content: `word ${number} ` }))
  const whole = [opening, ...words, says({}, 'stop'), usage, done]
  /** The texts in an answer, in order. */
  const textIn = (bytes: string): string => [...bytes.matchAll(/"content":"([^"]*)"/g)].map(([, text]) => text).join('')
  const said = Array.from({ length: 50 }, (_, number) => `word ${number} `).join('')

  /** Takes chunks apart as the standard says, and nothing else. Returns what they hold and what comes after them. */
  function dechunked(bytes: string): { text: string; rest: string } {
    let text = ''
    for (let at = 0; ;) {
      const end = bytes.indexOf('\r\n', at)
      assert.match(bytes.slice(at, end), /^[\da-f]+$/)
      const size = Number.parseInt(bytes.slice(at, end), 16)
      const data = bytes.slice(end + 2, end + 2 + size)
      assert.equal(bytes.slice(end + 2 + size, end + 4 + size), '\r\n')
      at = end + 4 + size
      if (size === 0) return { text, rest: bytes.slice(at) }
      text += data
    }
  }

  it('are chunks, one after the other, also of requests that are sent before the answers are read', async () => {
    speak(whole)
    const client = await rawClient(weir.base)
    client.send(rawChat(weir.key, { stream: true }).repeat(3))
    await eventually('three answers have come', () => client.received.split('data: [DONE]').length === 4)
    let rest = client.received
    for (let answer = 0; answer < 3; answer++) {
      const head = rest.slice(0, rest.indexOf('\r\n\r\n'))
      assert.match(head, /^HTTP\/1\.1 200 .*\r\n.*transfer-encoding: chunked/is)
      const { text, rest: after } = dechunked(rest.slice(head.length + 4))
      assert.equal(textIn(text), said)
      rest = after
    }
    assert.equal(rest, '')
    client.leave()
  })

  it('are sent without chunks to a caller of HTTP/1.0', async () => {
    speak(whole)
    const client = await rawClient(weir.base)
    client.send(rawChat(weir.key, { stream: true }).replace('HTTP/1.1', 'HTTP/1.0'))
    await client.closed()
    const [head = '', ...body] = client.received.split('\r\n\r\n')
    assert.doesNotMatch(head, /transfer-encoding/i)
    assert.doesNotMatch(body.join(''), /\r\n/)
    assert.equal(textIn(body.join('')), said)
  })
})
