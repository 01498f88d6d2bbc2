import { readdirSync, readFileSync } from 'node:fs'
import { engineKinds } from '../../../src/catalog/model.ts'
import { clip } from '../audio-stage.ts'
import type { Chance } from './chance.ts'
import { marker, type EngineAnswer } from './fuzz-engine.ts'
import { changed, changedBytes, jsonText, oddText, oddValue } from './odd-values.ts'

/** Requests that are fine, each with an answer of an engine that is not. The answers start from the dialects' fixtures. */
export interface AnswerInput {
  readonly endpoint: string
  readonly contentType: string
  readonly body: Buffer
  readonly isStream: boolean
  /** One for each call of the engine. */
  readonly answers: readonly EngineAnswer[]
}

interface Fixture {
  readonly kind: string
  readonly ask: { readonly endpoint: string; readonly body?: object; readonly form?: Readonly<Record<string, string>> }
  readonly calls: readonly {
    readonly status?: number
    readonly headers?: Readonly<Record<string, string>>
    readonly response?: unknown
    readonly events?: readonly unknown[]
  }[]
}

const folder = new URL('../../fixtures/dialects/', import.meta.url)
const fixtures: readonly Fixture[] = engineKinds
  .filter((kind) => kind !== 'embedded')
  .flatMap((kind) =>
    readdirSync(new URL(`${kind}/`, folder))
      .filter((file) => file.endsWith('.json'))
      .toSorted()
      .map((file) => ({ kind, ...(JSON.parse(readFileSync(new URL(`${kind}/${file}`, folder), 'utf8')) as object) })),
  ) as Fixture[]

const isStreamed = ({ calls }: Fixture): boolean => calls.some(({ events }) => events !== undefined)
const whole = fixtures.filter((it) => !isStreamed(it))
const streamed = fixtures.filter(isStreamed)
const sound = clip('plain.wav')

export function wholeAnswer(chance: Chance, mark: number): AnswerInput {
  const fixture = chance.pick(whole)
  // Sometimes the answer of quite another operation or server.
  const { calls } = chance.is(0.03) ? chance.pick(whole) : fixture
  const answers = calls.map(({ status = 200, headers = {}, response }) => jsonAnswer(response, status, headers, chance))
  return { ...askOf(fixture, mark), isStream: false, answers }
}

export function streamedAnswer(chance: Chance, mark: number): AnswerInput {
  const fixture = chance.pick(streamed)
  const events = fixture.calls.flatMap((call) => call.events ?? [])
  return { ...askOf(fixture, mark), isStream: true, answers: [streamAnswer(events, chance)] }
}

function askOf({ kind, ask }: Fixture, mark: number): Pick<AnswerInput, 'endpoint' | 'contentType' | 'body'> {
  const model = `${ask.endpoint === '/reranking' ? 'passages' : 'documents'}/${kind}`
  if (!ask.form) {
    const body = { ...(marked(ask.body, mark) as object), model }
    const isStream = 'stream' in body && body.stream === true
    const asked = isStream ? { ...body, stream_options: { include_usage: true } } : body
    return { endpoint: ask.endpoint, contentType: 'application/json', body: Buffer.from(JSON.stringify(asked)) }
  }
  const fields = Object.entries({ ...ask.form, model, prompt: marker(mark) })
  const lines = fields.map(
    ([name, value]) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  )
  const file = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.ogg"\r\n\r\n'
  const body = Buffer.concat([Buffer.from(lines.join('') + file), sound, Buffer.from('\r\n--b--\r\n')])
  return { endpoint: ask.endpoint, contentType: 'multipart/form-data; boundary=b', body }
}

const texts = new Set(['content', 'prompt', 'input', 'query', 'text'])

/** The request with the mark in all of its texts, so that each call to the engine has it. */
function marked(value: unknown, mark: number, name = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => marked(item, mark, name))
  if (typeof value === 'string') return texts.has(name) ? `${marker(mark)} ${value}` : value
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([field, item]) => [field, marked(item, mark, field)]))
}

function jsonAnswer(
  response: unknown,
  status: number,
  headers: Readonly<Record<string, string>>,
  chance: Chance,
): EngineAnswer {
  let value = response
  for (let changes = chance.below(3); changes > 0; changes--) value = changed(value, chance)
  const text = Buffer.from(jsonText(value))
  const body = chance.is(0.15) ? changedBytes(text, chance) : text
  const refusal = chance.is(0.1)
  return {
    status: refusal ? chance.pick([400, 401, 404, 405, 413, 422, 429, 500, 503, 302, 206]) : status,
    headers: {
      'content-type': chance.is(0.9) ? 'application/json' : chance.pick(['text/html', 'text/event-stream', '']),
      ...headers,
      ...(headers['x-compute-tokens'] && chance.is(0.3)
        ? { 'x-compute-tokens': chance.pick(['-1', '1e3', '99999999999999999999', '', '5, 6', 'x']) }
        : {}),
    },
    pieces: pieces(refusal ? refusalBody(chance) : body, chance),
    ending: ending(chance),
  }
}

function refusalBody(chance: Chance): Buffer {
  const known = { error: { message: "This model's maximum context length is 10 tokens", type: 'x', code: 400 } }
  const bodies = [known, { detail: [{ msg: 'x' }] }, { message: 'x' }, 'x', [], null, { error: 'x' }, { error: null }]
  const value = chance.is(0.7) ? changed(chance.pick(bodies), chance) : oddValue(chance)
  return Buffer.from(jsonText(value))
}

function ending(chance: Chance): EngineAnswer['ending'] {
  return chance.is(0.94) ? 'end' : chance.pick(['reset', 'short'])
}

/** In one piece, in a few, or byte by byte. */
function pieces(bytes: Buffer, chance: Chance): readonly Buffer[] {
  const size = chance.pick([bytes.length, bytes.length, bytes.length, 700, 64, bytes.length < 3000 ? 1 : 64]) || 1
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  )
}

const oddEvents = [
  'null',
  '[]',
  '0',
  '"x"',
  'true',
  '{}',
  '',
  ' ',
  '{"choices":null}',
  '{"choices":{}}',
  '{"choices":"x"}',
  '{"choices":[null]}',
  '{"choices":[[]]}',
  '{"choices":[{}]}',
  '{"choices":[0,{"index":0}]}',
  '{"choices":[{"index":0,"delta":null,"finish_reason":null}]}',
  '{"choices":[{"index":0,"delta":"x","finish_reason":null}]}',
  '{"choices":[{"index":"0","delta":{"content":"x"},"text":"x","finish_reason":null}]}',
  '{"choices":[{"index":-1,"delta":{"content":"x"},"text":"x","finish_reason":"stop"}]}',
  '{"choices":[{"index":0,"delta":{"content":5},"text":5,"finish_reason":null}]}',
  '{"choices":[{"index":0,"delta":{"content":"x","tool_calls":[null,"x"]},"finish_reason":null}]}',
  '{"choices":[{"index":0,"delta":{"tool_calls":{}},"finish_reason":null}]}',
  '{"choices":[{"index":0,"delta":{},"text":"","finish_reason":"stop"}]}',
  '{"choices":[{"index":0,"delta":{},"text":"","finish_reason":{"a":1}}]}',
  '{"choices":[{"index":0,"delta":{"content":"\\ud800\\u00e9"},"text":"\\ud800","finish_reason":null}]}',
  '{"choices":[],"usage":{"prompt_tokens":"7","completion_tokens":"2"}}',
  '{"choices":[],"usage":{"prompt_tokens":-7,"completion_tokens":-2}}',
  '{"choices":[],"usage":{"prompt_tokens":1e300,"completion_tokens":1}}',
  '{"choices":[],"usage":{"prompt_tokens":7.5,"completion_tokens":1}}',
  '{"choices":[],"usage":[]}',
  '{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"prompt_tokens_details":[],"completion_tokens_details":5}}',
  '{"choices":[],"usage":{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":99}}}',
  '{"error":"x"}',
  '{"error":{"message":"x"}}',
  '{"error":null,"choices":[]}',
  '{"x":{"choices":[1]},"choices":[{"index":0,"delta":{"content":"x"},"text":"x","finish_reason":null}]}',
  '{"choices" : [ {"index":0,"delta":{"content":"x"},"text":"x","finish_reason":null} ] }',
  '{"choices":[',
  '[DONE]',
  ' [DONE]',
  '[DONE',
] as const

function streamAnswer(events: readonly unknown[], chance: Chance): EngineAnswer {
  let data = events.map((event) => (typeof event === 'string' ? event : JSON.stringify(event)))
  for (let changes = chance.below(4); changes > 0; changes--) data = changedEvents(data, events, chance)
  const bytes = Buffer.concat(data.map((event) => eventBytes(event, chance)))
  return {
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    pieces: pieces(chance.is(0.1) ? changedBytes(bytes, chance) : bytes, chance),
    ending: ending(chance),
  }
}

function changedEvents(data: readonly string[], events: readonly unknown[], chance: Chance): string[] {
  if (data.length === 0) return [chance.pick(oddEvents)]
  const at = chance.below(data.length)
  switch (chance.below(6)) {
    case 0:
      return data.toSpliced(at, 1)
    case 1:
      return data.toSpliced(at, 0, data[chance.below(data.length)] ?? '')
    case 2:
      return data.toSpliced(at, 0, chance.pick(oddEvents))
    case 3:
      return data.with(at, chance.pick(oddEvents))
    case 4:
      return data.slice(0, at + 1)
    default:
      return data.with(at, jsonText(changed(chance.pick(events), chance)))
  }
}

function eventBytes(event: string, chance: Chance): Buffer {
  const end = chance.is(0.05) ? chance.pick(['\r\n\r\n', '\n', '\r\n', '\r\r', '\n\n\n\n']) : '\n\n'
  const before = chance.is(0.05)
    ? chance.pick([
        ': comment\n\n',
        'event: x\n',
        'id: 1\r\n',
        'retry: 5\n',
        ':\n',
        'data\n',
        'x'.repeat(5000) + '\n',
        '\ufeff',
      ])
    : ''
  const spoiled = chance.is(0.02) ? event.replace('x', oddText(chance)) : event
  const name = chance.is(0.05) ? 'data:' : 'data: '
  const bytes = Buffer.from(`${before}${name}${spoiled}${end}`)
  // Not valid UTF-8, inside a string of the event.
  if (chance.is(0.02))
    return Buffer.from(bytes.toString('latin1').replace(/"content":"/, '"content":"\xff\xc3'), 'latin1')
  return bytes
}
