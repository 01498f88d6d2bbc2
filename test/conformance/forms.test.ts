import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import * as fc from 'fast-check'
import { engineKinds } from '../../src/catalog/model.ts'
import { roomyLimits } from '../support/chat-stage.ts'
import { runLength } from '../support/long-run.ts'
import { threeForms, type SendForm, type FormName, type ReadAnswer } from '../support/three-forms.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'
import type { FixtureCall } from './fixture-server.ts'

/**
 * A chat has three forms: /chat/completions, /responses and /messages. Whatever an engine writes, in whatever order, a
 * caller gets the same in each of them. The official SDKs read the answers of the real service.
 */

/** What the engine answers: the data of events, a whole answer, or the bytes of a real server. */
type Answer = { readonly events: readonly unknown[] } | { readonly whole: object } | { readonly bytes: Buffer }

let answer: Answer
let engine: ReturnType<typeof createServer>
const sockets = new Set<Socket>()
let weir: TestWeir
let forms: Readonly<Record<FormName, SendForm>>

before(async () => {
  engine = createServer((request, response) => {
    if (request.method === 'GET') return void response.end('{}')
    request.resume().on('end', () => {
      // Every captured answer ends with its connection.
      if ('bytes' in answer) request.socket.end(answer.bytes)
      else if ('whole' in answer) {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer.whole))
      } else {
        const data = answer.events.map((event) => (typeof event === 'string' ? event : JSON.stringify(event)))
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.end(data.map((text) => `data: ${text}\n\n`).join(''))
      }
    })
  })
  engine.on('connection', (socket) => sockets.add(socket.once('close', () => sockets.delete(socket))))
  await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(engine.address() as AddressInfo).port}/v1`
  const kinds = engineKinds.filter((kind) => kind !== 'embedded')
  weir = await startWeir({
    rate_limit: { requests_per_minute: 1_000_000 },
    models: kinds.map((kind) =>
      modelEntry([], {
        id: `test/${kind}`,
        aliases: [],
        serverless: { engine: { kind, urls: [url], model: 'engine-name' }, limits: roomyLimits },
      }),
    ),
  })
  forms = threeForms(weir)
})
after(async () => {
  await weir.stop()
  for (const socket of sockets) socket.destroy()
  await new Promise((resolve) => engine.close(resolve))
})

/** The answer in the form of a chat, after the other forms gave the same one. */
async function sameInAllForms(given: Answer, isStream: boolean, kind = 'openai'): Promise<ReadAnswer> {
  answer = given
  const chat = endedForCalls(comparable(await forms.chat(`test/${kind}`, isStream)))
  for (const name of ['responses', 'messages'] as const) {
    assert.deepEqual(comparable(await forms[name](`test/${kind}`, isStream)), chat, name)
  }
  return chat
}

/** Ids that Weir made differ from request to request. */
function comparable(read: ReadAnswer): ReadAnswer {
  const calls = read.calls.map((call) => ({ ...call, id: call.id.replace(/^call_[0-9a-z]{20,}_.*/, 'made') }))
  return { ...read, calls }
}

/** A chat says what its engine says, which may be `stop` with calls and `tool_calls` without. */
function endedForCalls(read: ReadAnswer): ReadAnswer {
  const isCut = read.end === 'length' || read.end === 'content_filter'
  return { ...read, end: isCut ? read.end : read.calls.length > 0 ? 'tool_calls' : 'stop' }
}

describe('a recorded answer is the same in the three forms of a chat', () => {
  const folder = new URL('../fixtures/dialects/', import.meta.url)

  for (const kind of readdirSync(folder).filter((name) => engineKinds.includes(name as never))) {
    for (const file of readdirSync(new URL(`${kind}/`, folder)).toSorted()) {
      const url = new URL(`${kind}/${file}`, folder)
      if (/^chat.*\.stream$/.test(file) && !file.includes('n2')) {
        it(`[A10] ${kind}/${file}`, async () => {
          const events = readFileSync(url, 'utf8')
            .split(/\r?\n\r?\n/)
            .flatMap((event) => (event.startsWith('data: ') ? [event.slice('data: '.length)] : []))
          await sameInAllForms({ events }, true, kind)
        })
      }
      if (!file.endsWith('.json')) continue
      const fixture = JSON.parse(readFileSync(url, 'utf8')) as {
        ask: { endpoint: string; body?: { n?: number; stream?: boolean } }
        status?: number
        calls: readonly FixtureCall[]
      }
      const { ask, calls, status = 200 } = fixture
      const [call] = calls
      if (ask.endpoint !== '/chat/completions' || status !== 200 || (ask.body?.n ?? 1) > 1 || !call) continue
      it(`[A10] ${kind}/${file}`, async () => {
        const given =
          call.captured !== undefined
            ? { bytes: readFileSync(new URL(call.captured, url)) }
            : call.events
              ? { events: call.events }
              : { whole: call.response as object }
        await sameInAllForms(given, ask.body?.stream === true, kind)
      })
    }
  }
})

interface Call {
  readonly id: string
  readonly name: string
  readonly arguments: object | undefined
  /** How the engine sends the head of the call. */
  readonly head: 'first' | 'with the arguments' | 'id late' | 'no id' | 'arguments first' | 'repeated'
  /** The lengths of the pieces of its arguments. */
  readonly cuts: readonly number[]
}

interface Written {
  readonly texts: readonly string[]
  /** The texts are a refusal. */
  readonly isRefusal: boolean
  readonly thoughts: readonly string[]
  readonly calls: readonly Call[]
  readonly reason: string
  /** Which source writes next, by its number among those that have something left. */
  readonly order: readonly number[]
  readonly lastAtOnce: boolean
  readonly usageAlone: boolean
}

const pieces = fc.array(fc.constantFrom('Wé', ' – ', '水 ', '{"', '}', '\\', '\n\n', 'plain words '), { maxLength: 4 })
const values = fc.dictionary(
  fc.constantFrom('city', 'é"', 'list', '}{'),
  fc.oneof(fc.constantFrom('Hobart', '}]"', '\\"{', '', '水'), fc.integer(), fc.constant([{ deep: ['}'] }])),
  { maxKeys: 3 },
)

const written: fc.Arbitrary<Written> = fc.record({
  texts: pieces,
  isRefusal: fc.boolean(),
  thoughts: pieces,
  calls: fc.array(
    fc.record({
      id: fc.constant(''),
      name: fc.constantFrom('get_weather', 'read'),
      arguments: fc.option(values, { nil: undefined, freq: 8 }),
      head: fc.constantFrom('first', 'with the arguments', 'id late', 'no id', 'arguments first', 'repeated'),
      cuts: fc.array(fc.integer({ min: 1, max: 12 }), { maxLength: 6 }),
    }),
    { maxLength: 4 },
  ),
  reason: fc.constantFrom('stop', 'tool_calls', 'length', 'content_filter'),
  order: fc.array(fc.nat(20), { minLength: 1, maxLength: 12 }),
  lastAtOnce: fc.boolean(),
  usageAlone: fc.boolean(),
})

function argumentsOf(call: Call): string {
  return call.arguments ? JSON.stringify(call.arguments) : ''
}

function piecesOf(text: string, cuts: readonly number[]): readonly string[] {
  const found: string[] = []
  let at = 0
  for (const length of cuts) {
    if (at < text.length) found.push(text.slice(at, at + length))
    at += length
  }
  if (at < text.length) found.push(text.slice(at))
  return found
}

/** The pieces of one call as an engine may send them. */
function callPieces(call: Call, index: number): readonly object[] {
  const { id, name, head } = call
  const text = piecesOf(argumentsOf(call), call.cuts)
  const [first = '', ...others] = text
  const piece = (fields: object, written: object): object => ({ index, ...fields, function: written })
  const named = { id, type: 'function' }
  const rest = (given: readonly string[]): object[] => given.map((it) => piece({}, { arguments: it }))
  switch (head) {
    case 'first':
      return [piece(named, { name, arguments: '' }), ...rest(text)]
    case 'with the arguments':
      return [piece(named, { name, arguments: first }), ...rest(others)]
    case 'no id':
      return [piece({}, { name, arguments: first }), ...rest(others)]
    case 'id late':
      // The name alone would get an id from Weir.
      return [piece({}, { arguments: '' }), piece({ id }, {}), piece({}, { name, arguments: first }), ...rest(others)]
    case 'arguments first':
      return [...rest(text), piece(named, { name, arguments: '' })]
    case 'repeated':
      return [piece(named, { name, arguments: '' }), ...text.map((it) => piece(named, { name, arguments: it }))]
  }
}

const usage = { prompt_tokens: 9, completion_tokens: 70, total_tokens: 79, prompt_tokens_details: { cached_tokens: 4 } }

function streamOf({ texts, isRefusal, thoughts, calls, reason, order, lastAtOnce, usageAlone }: Written): Answer {
  const left: object[][] = [
    texts.map((text) => (isRefusal ? { refusal: text } : { content: text })),
    thoughts.map((reasoning) => ({ reasoning_content: reasoning })),
    ...calls.map((call, index) => callPieces(call, index).map((piece) => ({ tool_calls: [piece] }))),
  ].filter((source) => source.length > 0)
  const deltas: object[] = [{ role: 'assistant', content: '' }]
  for (let step = 0; left.length > 0; step++) {
    const at = (order[step % order.length] ?? 0) % left.length
    deltas.push(left[at]!.shift()!)
    if (left[at]!.length === 0) left.splice(at, 1)
  }
  if (!lastAtOnce) deltas.push({})
  const events: object[] = deltas.map((delta, number) => ({
    choices: [{ index: 0, delta, finish_reason: number === deltas.length - 1 ? reason : null }],
  }))
  if (!usageAlone) events.push({ ...events.pop(), usage })
  return { events: [...events, ...(usageAlone ? [{ choices: [], usage }] : []), '[DONE]'] }
}

function wholeOf({ texts, isRefusal, thoughts, calls, reason }: Written): Answer {
  const message = {
    role: 'assistant',
    [isRefusal ? 'refusal' : 'content']: texts.length > 0 ? texts.join('') : null,
    ...(thoughts.length > 0 ? { reasoning_content: thoughts.join('') } : {}),
    tool_calls: calls.map((call) => ({
      ...(call.head === 'no id' ? {} : { id: call.id }),
      type: 'function',
      function: { name: call.name, arguments: argumentsOf(call) },
    })),
  }
  return { whole: { choices: [{ index: 0, message, finish_reason: reason }], usage } }
}

describe('a generated answer is the same in the three forms of a chat', () => {
  it('[A10] in whatever order the engine writes text, reasoning and calls', async () => {
    await fc.assert(
      fc.asyncProperty(written, async (given) => {
        const named = { ...given, calls: given.calls.map((call, index) => ({ ...call, id: `id-${index}` })) }
        const streamed = await sameInAllForms(streamOf(named), true)
        assert.deepEqual(streamed, await sameInAllForms(wholeOf(named), false), 'the whole answer')
        const { text, reasoning, calls, end } = streamed
        assert.equal(text, given.texts.join(''))
        assert.equal(reasoning, given.thoughts.join(''))
        assert.equal(calls.length, given.calls.length)
        for (const { id, name, head, arguments: value = {} } of named.calls) {
          const ids = head === 'no id' ? 'made' : id
          assert.ok(
            calls.some((call) => call.id === ids && call.name === name && sameJson(call.arguments, value)),
            `the call ${id}`,
          )
        }
        const isCut = given.reason === 'length' || given.reason === 'content_filter'
        assert.equal(end, isCut ? given.reason : calls.length > 0 ? 'tool_calls' : 'stop')
        assert.deepEqual(streamed.usage, { input: 9, cached: 4, output: 70 })
      }),
      { numRuns: runLength(20, 60) },
    )
  })
})

function sameJson(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}
