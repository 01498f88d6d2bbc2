import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { chatStream } from '../../src/inference/chat/answer.ts'
import type { CallStream } from '../../src/inference/generation/generation-stream.ts'
import { eventSplitter } from '../../src/shared/event-stream.ts'

interface Event {
  id?: string
  object?: string
  created?: number
  model?: string
  choices: { index: number; delta: Record<string, unknown>; logprobs: unknown; finish_reason: string | null }[]
  usage?: unknown
}

function relayOf(options: { includeUsage?: boolean; choices?: number; maxTokens?: number } = {}): CallStream {
  const { includeUsage = false, choices = 1, maxTokens = 1000 } = options
  const head = { id: 'r1', created: 7, model: 'meta/x' }
  return chatStream(head, { includeUsage, limit: { maxTokens, choices, generated: choices, tokenizer: undefined } })
}

/** What the caller reads: the bytes, as UTF-8, event by event. */
function received(text: string): string[] {
  const bytes = Buffer.from(text, 'latin1')
  assert.ok(bytes.equals(Buffer.from(bytes.toString('utf8'), 'utf8')), 'not UTF-8')
  const events = bytes.toString('utf8').split('\n\n')
  assert.equal(events.pop(), '', 'an event is not closed')
  return events.map((event) => {
    assert.ok(event.startsWith('data: '))
    assert.ok(!event.includes('\n'))
    return event.slice('data: '.length)
  })
}

const parse = (text: string): Event[] => received(text).map((event) => JSON.parse(event) as Event)

const deltasOf = (events: readonly Event[]): unknown[] => events.flatMap(({ choices }) => choices.map((it) => it.delta))

const chunk = (choices: object[], more: object = {}): object => ({
  id: 'e',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'engine-name',
  choices,
  ...more,
})
const says = (delta: object, finish: string | null = null, index = 0): object =>
  chunk([{ index, delta, logprobs: null, finish_reason: finish }])

const asText = (events: readonly (object | string)[]): string =>
  events.map((it) => `data: ${typeof it === 'string' ? it : JSON.stringify(it)}\n\n`).join('')

const push = (relay: CallStream, ...events: (object | string)[]): string => relay.push(Buffer.from(asText(events)))

/** The ways in which engines write the same JSON. */
const writers = {
  compact: (it: object) => JSON.stringify(it),
  spaced: (it: object) => JSON.stringify(it, null, 1).replaceAll(/\n\s*/g, ' '),
  // Like Python's json.dumps: with spaces, and escapes for everything beyond ASCII.
  ascii: (it: object) =>
    JSON.stringify(it, null, 1)
      .replaceAll(/\n\s*/g, ' ')
      .replaceAll(/[\u0080-\uffff]/g, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`),
  'ascii, compact': (it: object) =>
    JSON.stringify(it).replaceAll(/[\u0080-\uffff]/g, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`),
} as const

/** An engine's habits. */
const habits = fc.record({
  writer: fc.constantFrom(...(Object.keys(writers) as (keyof typeof writers)[])),
  lineEnd: fc.constantFrom('\n', '\r\n'),
  space: fc.boolean(),
  comments: fc.boolean(),
  roleInEveryChunk: fc.boolean(),
  finishWithContent: fc.boolean(),
  saysDone: fc.boolean(),
  omitsNulls: fc.boolean(),
})
type Habits = typeof habits extends fc.Arbitrary<infer Value> ? Value : never

function spoken(words: readonly string[], habit: Habits): Buffer {
  const { lineEnd } = habit
  const events: string[] = []
  const role = { role: 'assistant' }
  const say = (delta: object, finish: string | null): void => {
    const nulls = habit.omitsNulls ? {} : { logprobs: null, finish_reason: null }
    const choice = { index: 0, delta, ...nulls, ...(finish === null ? {} : { finish_reason: finish }) }
    events.push(`data:${habit.space ? ' ' : ''}${writers[habit.writer](chunk([choice]))}`)
  }
  say({ ...role, content: '' }, null)
  words.forEach((content, index) => {
    const isLast = habit.finishWithContent && index === words.length - 1
    say({ ...(habit.roleInEveryChunk ? role : {}), content }, isLast ? 'stop' : null)
  })
  if (!habit.finishWithContent || words.length === 0) say({}, 'stop')
  if (habit.saysDone) events.push('data: [DONE]')
  const comment = habit.comments ? `: ping${lineEnd}event: message${lineEnd}id: 1${lineEnd}` : ''
  return Buffer.from(events.map((event) => comment + event + lineEnd + lineEnd).join(''))
}

/** Where to cut the bytes into pieces: anywhere, even inside characters and line ends. */
const cuts = fc.array(fc.nat(), { maxLength: 40 })

function pieces(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end))
}

const word = fc.oneof(
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }),
  fc.constantFrom(
    'é',
    '中文',
    '👩‍👩‍👧',
    '"]}',
    '\\',
    '\n\n',
    'data: [DONE]\n\n',
    '"choices":[',
    '\u2028',
    '\u0000',
    '[',
    ']',
  ),
)

describe('a relayed chat stream', () => {
  it('[E2] has the role, the engine’s text and the finish_reason, whatever the engine’s habits and however it is split', () => {
    fc.assert(
      fc.property(fc.array(word, { maxLength: 8 }), habits, cuts, (words, habit, places) => {
        const relay = relayOf()
        const events = parse(pieces(spoken(words, habit), places).map(relay.push).join(''))
        assert.deepEqual(deltasOf(events), [
          { role: 'assistant', content: '' },
          ...words.map((content) => ({ content })),
          {},
        ])
        assert.deepEqual(
          events.map(({ choices }) => choices[0]?.finish_reason ?? null),
          [null, ...words.map(() => null), 'stop'],
        )
        for (const { id, object, created, model } of events) {
          assert.deepEqual([id, object, created, model], ['chatcmpl-r1', 'chat.completion.chunk', 7, 'meta/x'])
        }
        assert.equal(relay.isDone(), habit.saysDone)
        assert.ok(relay.isComplete())
        assert.ok(!relay.isBroken())
        assert.equal(relay.deltaCount(), words.length)
      }),
      { numRuns: 500 },
    )
  })

  it('[E2] does not depend on where the bytes are split, whatever they are', () => {
    const line = fc.oneof(
      fc.constantFrom(
        'data: [DONE]',
        'data: {',
        'data:',
        ': comment',
        'event: x',
        '',
        'data: {"error":{}}',
        'data: null',
      ),
      fc.jsonValue().map((it) => `data: ${JSON.stringify(it)}`),
      word.map((content) => `data: ${JSON.stringify(says({ content }))}`),
      fc.string(),
    )
    fc.assert(
      fc.property(fc.array(line, { maxLength: 10 }), cuts, (lines, places) => {
        const bytes = Buffer.from(lines.map((it) => `${it}\n\n`).join(''))
        assert.deepEqual(outcome([bytes]), outcome(pieces(bytes, places)))
      }),
      { numRuns: 500 },
    )

    function outcome(parts: readonly Buffer[]): unknown {
      const relay = relayOf()
      let text = ''
      // Nonsense may throw. The engine client treats that as a failed call.
      let threw = false
      try {
        for (const it of parts) text += relay.push(it)
      } catch {
        threw = true
      }
      return threw ? 'threw' : [text, relay.isDone(), relay.isBroken(), relay.isComplete(), relay.deltaCount()]
    }
  })

  it('[E2] keeps tool calls in order and gives them an index', () => {
    const relay = relayOf()
    const text = push(
      relay,
      says({ role: 'assistant', content: null }),
      says({ tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '' } }] }),
      says({ content: '', tool_calls: [{ function: { arguments: '{"stadt":' } }] }),
      says({ tool_calls: [{ index: 0, function: { arguments: '"Köln"}' } }] }),
      says({ tool_calls: [{ index: 1, id: 'b', type: 'function', function: { name: 'g', arguments: '{}' } }] }),
      says({}, 'tool_calls'),
      '[DONE]',
    )
    assert.deepEqual(deltasOf(parse(text)), [
      { role: 'assistant', content: '' },
      { tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"stadt":' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '"Köln"}' } }] },
      { tool_calls: [{ index: 1, id: 'b', type: 'function', function: { name: 'g', arguments: '{}' } }] },
      {},
    ])
    assert.ok(relay.isComplete())
  })

  it('[E2] decodes escaped characters in rewritten chunks', () => {
    const escaped = (it: object): string => writers['ascii, compact'](it)
    const relay = relayOf()
    const text = push(
      relay,
      escaped(says({ role: 'assistant', content: 'é中' })),
      escaped(says({ content: '中é👩‍👧' })),
      escaped(says({ reasoning: 'é中👩‍👧' })),
      escaped(
        says({ tool_calls: [{ index: 0, id: 'é', type: 'function', function: { name: 'f', arguments: '"中"' } }] }),
      ),
      escaped(says({}, 'stop')),
    )
    assert.deepEqual(deltasOf(parse(text)).slice(1), [
      { content: 'é中' },
      { content: '中é👩‍👧' },
      { reasoning_content: 'é中👩‍👧' },
      { tool_calls: [{ index: 0, id: 'é', type: 'function', function: { name: 'f', arguments: '"中"' } }] },
      {},
    ])
  })

  it('[E2] has reasoning under both of its names', () => {
    const relay = relayOf()
    const text = push(
      relay,
      says({ role: 'assistant', reasoning_content: 'h' }),
      says({ reasoning: 'm', content: null }),
      says({ reasoning_content: '.', content: '' }),
      says({ content: 'Yes', reasoning_content: null }),
      says({}, 'stop'),
    )
    const [opening, ...rest] = deltasOf(parse(text))
    assert.deepEqual(opening, { role: 'assistant', content: '' })
    assert.deepEqual(rest.slice(0, 3), [
      { reasoning_content: 'h' },
      { reasoning_content: 'm' },
      { reasoning_content: '.' },
    ])
    assert.equal((rest[3] as { content: string }).content, 'Yes')
    assert.equal(relay.deltaCount(), 4)
  })

  it('[E2] is complete when each of two choices has its role and its finish_reason', () => {
    const relay = relayOf({ choices: 2 })
    const text = push(
      relay,
      says({ role: 'assistant', content: 'a' }, null, 1),
      says({ content: 'b' }, 'length', 0),
      chunk([
        { index: 0, delta: {}, finish_reason: null },
        { index: 1, delta: { content: 'c' }, finish_reason: null },
      ]),
    )
    assert.ok(!relay.isComplete())
    const rest = push(relay, says({}, 'stop', 1), '[DONE]')
    assert.ok(relay.isComplete())
    const events = parse(text + rest)
    const of = (index: number): unknown[] =>
      events
        .flatMap(({ choices }) => choices)
        .filter((it) => it.index === index)
        .map(({ delta, finish_reason }) => [delta, finish_reason])
    assert.deepEqual(of(0), [
      [{ role: 'assistant', content: '' }, null],
      [{ content: 'b' }, null],
      [{}, 'length'],
    ])
    assert.deepEqual(of(1), [
      [{ role: 'assistant', content: '' }, null],
      [{ content: 'a' }, null],
      [{ content: 'c' }, null],
      [{}, 'stop'],
    ])
  })

  it('[E2] has a finish_reason once, however often the engine sends it', () => {
    const relay = relayOf()
    const text = push(relay, says({ content: 'a' }, 'stop'), says({}, 'stop'), says({ content: '' }, 'stop'), '[DONE]')
    assert.deepEqual(
      parse(text).map(({ choices }) => choices[0]?.finish_reason),
      [null, null, 'stop'],
    )
  })

  it('ignores an empty finish_reason', () => {
    const relay = relayOf()
    const reasons = parse(push(relay, says({ role: 'assistant' }, ''), says({ content: 'a' }, ''))).map(
      ({ choices }) => choices[0]?.finish_reason,
    )
    assert.deepEqual(reasons, [null, null])
    assert.ok(!relay.isComplete())
  })

  it('[E2] is incomplete without a finish_reason, even after [DONE]', () => {
    const relay = relayOf()
    push(relay, says({ role: 'assistant', content: 'a' }), '[DONE]')
    assert.ok(relay.isDone())
    assert.ok(!relay.isComplete())
  })

  it('breaks on an error or invalid JSON, even after a finish_reason', () => {
    for (const event of [{ error: { message: 'out of memory' } }, { error: 'x' }, '{"choices":', 'oops']) {
      const relay = relayOf()
      push(relay, says({ role: 'assistant', content: 'a' }, 'stop'))
      assert.ok(relay.isComplete())
      assert.equal(push(relay, event), '')
      assert.ok(relay.isBroken())
      assert.ok(!relay.isComplete())
    }
  })

  it('ignores an error of null', () => {
    const relay = relayOf()
    push(relay, chunk([{ index: 0, delta: { content: 'a' }, finish_reason: 'stop' }], { error: null }))
    assert.ok(!relay.isBroken())
    assert.ok(relay.isComplete())
  })

  it('has nothing after its end or a break', () => {
    const first = says({ role: 'assistant', content: '' })
    for (const end of ['[DONE]', { error: {} }]) {
      const relay = relayOf()
      assert.equal(parse(push(relay, first, end, says({ content: 'late' }))).length, 1)
      assert.equal(push(relay, says({ content: 'later' })), '')
      assert.equal(relay.deltaCount(), 0)
    }
  })

  it('keeps logprobs with the content they belong to', () => {
    const logprobs = { content: [{ token: 'é', logprob: -0.1, bytes: [195, 169], top_logprobs: [] }] }
    const relay = relayOf()
    const text = push(
      relay,
      says({ role: 'assistant', content: '' }),
      chunk([{ index: 0, delta: { content: 'é' }, logprobs, finish_reason: null }]),
      chunk([{ index: 0, delta: { role: 'assistant', content: 'é' }, logprobs, finish_reason: 'stop' }]),
    )
    assert.deepEqual(
      parse(text).map(({ choices }) => choices[0]?.logprobs),
      [null, logprobs, logprobs, null],
    )
  })

  it('[E2] reports the engine’s last count, and ends with it only if the caller requested usage', () => {
    const usage = (tokens: number): object => ({ usage: { prompt_tokens: 5, completion_tokens: tokens } })
    for (const includeUsage of [true, false]) {
      const relay = relayOf({ includeUsage })
      assert.equal(relay.reportedUsage(), undefined)
      const text = push(
        relay,
        chunk([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }], usage(0)),
        chunk([{ index: 0, delta: { content: 'a' }, finish_reason: null }], usage(1)),
        chunk([{ index: 0, delta: {}, finish_reason: 'stop' }], { usage: null }),
        chunk([], usage(2)),
        '[DONE]',
      )
      for (const event of parse(text)) assert.equal(event.usage, includeUsage ? null : undefined)
      const reported = relay.reportedUsage()
      assert.equal(reported?.outputTokens, 2)
      assert.deepEqual(
        received(relay.closing(reported)).map((it) => (it === '[DONE]' ? it : (JSON.parse(it) as Event).usage)),
        [
          ...(includeUsage
            ? [
                {
                  prompt_tokens: 5,
                  completion_tokens: 2,
                  total_tokens: 7,
                  prompt_tokens_details: { cached_tokens: 0 },
                  completion_tokens_details: { reasoning_tokens: 0 },
                },
              ]
            : []),
          '[DONE]',
        ],
      )
    }
  })

  it('[M2] adds up running counts of single choices, so that an abort is billed by their sum', () => {
    const usage = (tokens: number): object => ({ usage: { prompt_tokens: 5, completion_tokens: tokens } })
    const piece = (index: number, tokens: number): object =>
      chunk([{ index, delta: { content: 'x' }, finish_reason: null }], usage(tokens))
    const relay = relayOf({ choices: 2 })
    push(relay, piece(0, 1), piece(1, 1), piece(0, 2), piece(0, 3), piece(1, 2))
    assert.deepEqual([relay.reportedUsage()?.inputTokens, relay.reportedUsage()?.outputTokens], [5, 5])
    assert.equal(relay.deltasSinceReport(), 0)
    push(relay, chunk([], usage(6)))
    assert.equal(relay.reportedUsage()?.outputTokens, 6, 'the count of everything')
  })

  it('[M2] ignores an all-zero usage, which some servers put into every chunk', () => {
    const nothing = { usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } }
    const relay = relayOf()
    push(
      relay,
      chunk([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: '' }], nothing),
      chunk([{ index: 0, delta: { content: 'a' }, finish_reason: '' }], nothing),
    )
    assert.equal(relay.reportedUsage(), undefined)
    assert.equal(relay.deltaCount(), 1)
  })

  it('counts only deltas with content', () => {
    const relay = relayOf()
    push(
      relay,
      says({ role: 'assistant', content: '' }),
      says({ content: '' }),
      says({ content: null }),
      says({ content: 'a' }),
      says({ reasoning: '' }),
      says({ tool_calls: [] }),
      says({ content: '' }, 'stop'),
    )
    assert.equal(relay.deltaCount(), 1)
  })
})

describe('an event splitter', () => {
  it('refuses an event larger than 8 MiB, so that no engine can fill the memory', () => {
    // One endless line, or lines without end.
    for (const [start, piece] of [
      ['data: ', 'x'.repeat(1024 * 1024)],
      ['', `data: ${'x'.repeat(1024 * 1024)}\n`],
    ] as const) {
      const split = eventSplitter(() => false)
      split(Buffer.from(start))
      assert.throws(() => {
        for (let sent = 0; sent < 10; sent++) split(Buffer.from(piece))
      }, RangeError)
    }
  })
})
