import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import type { EngineKind } from '../../src/catalog/model.ts'
import { dialects } from '../../src/engines/dialects/index.ts'
import { chatStream } from '../../src/inference/chat/answer.ts'
import { completionsStream } from '../../src/inference/completions/answer.ts'
import type { CallStream } from '../../src/inference/generation/generation-stream.ts'
import { simulationSeed } from '../simulation/seed.ts'
import { chanceOf, type Chance } from '../support/fuzz/chance.ts'
import { runLength } from '../support/long-run.ts'

/** The streams of real servers in fixtures/dialects, and everything that a legal stream may have besides. */

const seed = simulationSeed()
const folder = new URL('../fixtures/dialects/', import.meta.url)
const VARIATIONS = runLength(300, 2000)

interface Recorded {
  readonly name: string
  readonly kind: EngineKind
  readonly isChat: boolean
  /** The data of its events, without [DONE]. */
  readonly events: readonly string[]
  readonly choices: readonly ReadChoice[]
}

interface ReadChoice {
  text: string
  reasoning: string
  /** By index. */
  calls: Map<number, { name: string; id: string; text: string }>
  reasons: string[]
}

interface Event {
  choices?: {
    index: number
    text?: string
    delta?: {
      content?: string | null
      reasoning?: string
      reasoning_content?: string
      tool_calls?: { index: number; id?: string; function?: { name?: string; arguments?: string } }[] | null
    }
    finish_reason?: string | null
  }[]
  usage?: object
}

/** As a client reads events: whatever comes in pieces is put together. */
function readChoices(events: readonly Event[], repeatsNames = false): ReadChoice[] {
  const read: ReadChoice[] = []
  for (const { index, text, delta, finish_reason: reason } of events.flatMap(({ choices }) => choices ?? [])) {
    const choice = (read[index] ??= { text: '', reasoning: '', calls: new Map(), reasons: [] })
    choice.text += text ?? delta?.content ?? ''
    choice.reasoning += delta?.reasoning ?? delta?.reasoning_content ?? ''
    for (const { index: place, id = '', function: piece } of delta?.tool_calls ?? []) {
      const call = choice.calls.get(place)
      const name = piece?.name ?? ''
      if (!call) choice.calls.set(place, { name, id, text: piece?.arguments ?? '' })
      else {
        call.text += piece?.arguments ?? ''
        if (!repeatsNames) call.name += name
        if (!repeatsNames) call.id += id
      }
    }
    if (reason) choice.reasons.push(reason)
  }
  return read
}

/** A plain reading, which knows nothing of Weir: every recorded stream has one line of JSON for each event. */
function recorded(kind: string, file: string): Recorded {
  const lines = readFileSync(new URL(`${kind}/${file}`, folder), 'utf8').split(/\r?\n/)
  const data = lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice('data: '.length))
  assert.equal(data.pop(), '[DONE]')
  return {
    name: `${kind}/${file}`,
    kind: kind as EngineKind,
    isChat: file.startsWith('chat'),
    events: data,
    choices: readChoices(
      data.map((it) => (JSON.parse(it) as Event | null) ?? {}),
      true,
    ),
  }
}

const corpus = readdirSync(folder, { withFileTypes: true })
  .filter((it) => it.isDirectory())
  .flatMap(({ name: kind }) =>
    readdirSync(new URL(`${kind}/`, folder))
      .filter((file) => file.endsWith('.stream'))
      .map((file) => recorded(kind, file)),
  )

function relayOf({ kind, isChat, choices, name }: Recorded): CallStream {
  const dialect = isChat ? dialects[kind].chat : dialects[kind].completions
  const { length: count } = choices
  return (isChat ? chatStream : completionsStream)(
    { id: 'r1', created: 7, model: 'meta/x' },
    {
      includeUsage: true,
      limit: { maxTokens: 1000, choices: count, generated: count, tokenizer: undefined },
      prompts: name.includes('two-prompts') ? 2 : 1,
      usageOf: dialect?.usageOf,
    },
  )
}

/** What callers get, in one line for each event. */
function relayedEvents(text: string): Event[] {
  const parts = Buffer.from(text, 'latin1').toString('utf8').split('\n\n')
  assert.equal(parts.pop(), '', 'an event is not closed')
  return parts.map((part) => {
    assert.ok(part.startsWith('data: ') && !part.includes('\n'), part)
    return JSON.parse(part.slice('data: '.length)) as Event
  })
}

function check(stream: Recorded, relay: CallStream, text: string): void {
  assert.ok(!relay.isBroken(), 'broken')
  assert.ok(relay.isComplete(), 'incomplete')
  const read = readChoices(relayedEvents(text))
  const outputOf = ({ text: written, reasoning, calls }: ReadChoice): unknown => [written, reasoning, calls]
  assert.deepEqual(read.map(outputOf), stream.choices.map(outputOf))
  for (const [index, { reasons }] of read.entries()) {
    assert.deepEqual(reasons, stream.choices[index]?.reasons.length ? stream.choices[index].reasons : ['stop'])
  }
}

/** A stream that says the same in another way. */
function variation(stream: Recorded, chance: Chance): Buffer {
  const lineEnd = chance.pick(['\n', '\r\n', '\r'])
  const space = chance.pick(['', ' '])
  const nothing = ['data: null', 'data:', 'data', `: ping`, ':', 'event: message', 'id: 7', 'retry: 10', 'data: {}']
  const dataOf = (json: string): string => {
    if (json === 'null' || chance.is(0.8)) return `data:${space}${json}`
    // In several lines of data, which JSON allows between its tokens. A name may have a space before its value.
    const spaced = JSON.stringify(JSON.parse(json), null, 1).split('\n')
    const lines = chance.is(0.5) ? spaced : spaced.map((line) => line.replace(/^( *"\w+"): /, '$1:'))
    return lines.map((line) => `data:${space}${line}`).join(lineEnd)
  }
  const events = [...stream.events]
  // A count may come anywhere.
  const place = events.findIndex((it) => it.includes('"usage":{') && it.includes('"choices":[]'))
  if (place >= 0 && chance.is(0.3)) events.splice(chance.below(events.length), 0, ...events.splice(place, 1))
  const saysDone = stream.choices.some(({ reasons }) => reasons.length === 0) || chance.is(0.8)
  if (saysDone) events.push('[DONE]')
  const text = events
    .map((it) => {
      const before = chance.is(0.2) ? chance.pick(nothing) + lineEnd + chance.pick(['', lineEnd]) : ''
      return before + (it === '[DONE]' ? `data:${space}[DONE]` : dataOf(it)) + lineEnd + lineEnd
    })
    .join('')
  return Buffer.from((chance.is(0.2) ? '\ufeff' : '') + text)
}

function pieces(bytes: Buffer, chance: Chance): Buffer[] {
  if (chance.is(0.1)) return Array.from(bytes, (byte) => Buffer.from([byte]))
  const places = Array.from({ length: chance.below(30) }, () => chance.below(bytes.length + 1)).toSorted(
    (a, b) => a - b,
  )
  return [0, ...places].map((from, index) => bytes.subarray(from, places[index] ?? bytes.length))
}

describe(`recorded streams of servers, WEIR_SEED=${seed}`, () => {
  for (const stream of corpus) {
    it(`[E2] ${stream.name} is relayed without a loss`, () => {
      const relay = relayOf(stream)
      check(stream, relay, relay.push(readFileSync(new URL(stream.name, folder))))
    })
  }

  it(`[E2] are read the same in ${VARIATIONS} other ways of writing them`, () => {
    for (let input = 0; input < VARIATIONS; input++) {
      const chance = chanceOf(seed, input)
      const stream = chance.pick(corpus)
      const bytes = variation(stream, chance)
      try {
        const relay = relayOf(stream)
        check(stream, relay, pieces(bytes, chance).map(relay.push).join(''))
      } catch (error) {
        const shown = bytes.toString('utf8').slice(0, 3000)
        throw new Error(`input ${input} of WEIR_SEED=${seed}: ${stream.name}\n${shown}`, { cause: error })
      }
    }
  })

  it('[E2] never count as complete if a piece is missing at the end', () => {
    for (const stream of corpus) {
      const bytes = readFileSync(new URL(stream.name, folder))
      for (let end = 0; end < bytes.length; end += 37) {
        const relay = relayOf(stream)
        const text = relay.push(bytes.subarray(0, end))
        if (relay.isComplete()) check(stream, relay, text)
      }
    }
  })
})

describe('a legal stream', () => {
  const chunk = (content: string, reason: string | null = null): string =>
    JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: reason }] })
  const options = { includeUsage: false, limit: { maxTokens: 9, choices: 1, generated: 1, tokenizer: undefined } }

  function textOf(stream: string, ...more: string[]): string {
    const relay = chatStream({ id: 'r1', created: 7, model: 'meta/x' }, options)
    const text = [stream, ...more].map((it) => relay.push(Buffer.from(it))).join('')
    assert.ok(relay.isComplete() && !relay.isBroken(), 'complete')
    return readChoices(relayedEvents(text))[0]?.text ?? ''
  }

  for (const [what, stream] of [
    ['null as its first event', `data: null\n\ndata: ${chunk('a')}\n\ndata: ${chunk('b', 'stop')}\n\n`],
    ['null in the middle', `data: ${chunk('a')}\n\ndata: null\n\ndata: ${chunk('b', 'stop')}\n\n`],
    ['empty data', `data:\n\ndata: \n\ndata\n\ndata: ${chunk('a')}\n\ndata: ${chunk('b', 'stop')}\n\n`],
    ['no space after the colon', `data:${chunk('a')}\n\ndata:${chunk('b', 'stop')}\n\ndata:[DONE]\n\n`],
    ['lines that end with CR', `data: ${chunk('a')}\r\rdata: ${chunk('b', 'stop')}\r\rdata: [DONE]\r\r`],
    ['a byte order mark', `\ufeffdata: ${chunk('a')}\n\ndata: ${chunk('b', 'stop')}\n\n`],
    ['a first event without choices', `data: {"id":"x"}\n\ndata: ${chunk('a')}\n\ndata: ${chunk('b', 'stop')}\n\n`],
    ['an event in several lines', `data: {"choices":\ndata: ${chunk('ab', 'stop').slice(11)}\n\n`],
    [
      'an event in several lines, broken inside its choices',
      `data: ${chunk('a')}\n\ndata: ${chunk('b').replace('[', '[\ndata: ')}\n\ndata: ${chunk('', 'stop')}\n\n`,
    ],
    ['white space after [DONE]', `data: ${chunk('ab', 'stop')}\n\ndata: [DONE] \n\n`],
    ['one line feed after each event', `data: ${chunk('a')}\ndata: ${chunk('b', 'stop')}\ndata: [DONE]\n`],
  ] as const) {
    it(`[E2] may have ${what}`, () => {
      assert.equal(textOf(stream), 'ab')
    })
  }

  it('[E2] may be cut between CR and LF', () => {
    assert.equal(textOf(`data: ${chunk('a')}\r`, `\n\r`, `\ndata: ${chunk('b', 'stop')}\r\n\r`, '\n'), 'ab')
  })

  it('breaks off where several lines do not make an event', () => {
    const relay = chatStream({ id: 'r1', created: 7, model: 'meta/x' }, options)
    relay.push(Buffer.from(`data: ${chunk('a', 'stop')}\n\ndata: {"choices":\n`))
    assert.ok(!relay.isBroken(), 'the event may go on')
    relay.push(Buffer.from('data: oops\n\n'))
    assert.ok(relay.isBroken())
  })
})
