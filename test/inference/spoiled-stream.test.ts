import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallStream } from '../../src/inference/generation/generation-stream.ts'
import { chatStream } from '../../src/inference/chat/answer.ts'
import { completionsStream } from '../../src/inference/completions/answer.ts'
import { messagesEvents } from '../../src/inference/messages/stream.ts'
import { responsesEvents } from '../../src/inference/responses/stream.ts'

const head = { id: '1', created: 0, model: 'test/model' }
const limit = { maxTokens: 100, choices: 1, generated: 1, tokenizer: undefined }
const options = { includeUsage: false, limit }

interface Event {
  readonly choices: readonly Readonly<Record<string, unknown>>[]
}

function push(relay: CallStream, ...events: readonly string[]): readonly Event[] {
  const text = relay.push(Buffer.from(events.map((event) => `data: ${event}\n\n`).join('')))
  const parts = text.split('\n\n').filter((part) => part !== '')
  return parts.map((part) => JSON.parse(part.slice('data: '.length)) as Event)
}

const role = '{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}'

describe('an invalid event of an engine', () => {
  const spoiled = [
    '[]',
    '0',
    '"x"',
    '{"choices":{}}',
    '{"choices":"x"}',
    '{"choices":[null]}',
    '{"choices":[[]]}',
    '{"choices":[{"index":"0","delta":{"content":"x"},"text":"x","finish_reason":null}]}',
    '{"choices":[{"index":-1,"delta":{"content":"x"},"text":"x","finish_reason":null}]}',
    '{"choices":[{"index":0,"delta":"x","text":5,"finish_reason":null}]}',
    '{"choices":[{"index":0,"delta":{},"text":"","finish_reason":{"a":1}}]}',
    '{"error":"x","choices":[]}',
  ]
  for (const event of spoiled) {
    it(`breaks the stream: ${event}`, () => {
      for (const relay of [chatStream(head, options), completionsStream(head, options)]) {
        assert.deepEqual(push(relay, event), [])
        assert.equal(relay.isBroken(), true)
      }
    })
  }
})

describe('an event whose choices are in an unusual place', () => {
  const content = '{"index":0,"delta":{"content":"seen"},"finish_reason":null}'
  for (const event of [
    `{"x":{"choices":[1]},"choices":[${content}]}`,
    `{"choices":[${content}],"x":{"choices":[1]}}`,
    `{"choices":[1],"choices":[${content}]}`,
    `{"x":{"choices":[1]},"choices" : [${content}]}`,
  ]) {
    it(`shows the choices that were read, not others: ${event}`, () => {
      const relay = chatStream(head, options)
      assert.deepEqual(push(relay, role, event).at(-1)?.choices, [JSON.parse(content)])
      assert.equal(relay.deltaCount(), 1)
    })
  }

  it('gets its missing index', () => {
    const events = push(chatStream(head, options), role, '{"choices":[{"delta":{"content":"x"},"finish_reason":null}]}')
    assert.equal(events.at(-1)?.choices[0]?.['index'], 0)
  })

  it('omits a tool call that is text', () => {
    const call = '{"choices":[{"index":0,"delta":{"tool_calls":["ab"]},"finish_reason":null}]}'
    assert.equal(push(chatStream(head, options), role, call).length, 1)
  })
})

/** Streams of every form that an answer can have. Only /completions reads `text`, and no other field. */
const forms: Readonly<Record<string, (maxTokens?: number) => CallStream>> = {
  '/chat/completions': (maxTokens = 100) => chatStream(head, { ...options, limit: { ...limit, maxTokens } }),
  '/completions': (maxTokens = 100) => completionsStream(head, { ...options, limit: { ...limit, maxTokens } }),
  '/responses': (maxTokens = 100) =>
    chatStream(
      head,
      { ...options, limit: { ...limit, maxTokens } },
      responsesEvents(head, { tools: new Map(), settings: {}, sealsReasoning: false }),
    ),
  '/messages': (maxTokens = 100) =>
    chatStream(
      head,
      { ...options, limit: { ...limit, maxTokens } },
      messagesEvents(head, 7, { toolNames: new Map(), thinking: 'shown' }),
    ),
}

describe('a field of an event that has the wrong type', () => {
  const mark = 'engine nonsense'
  /** Every type that JSON has, and what looks like a list to code that asks for its length only. */
  const values = [mark, 7, true, {}, { mark }, { length: 2, mark }, [], [mark], [null, 7, [mark]]]
  const fields = ['content', 'reasoning_content', 'reasoning', 'refusal', 'tool_calls', 'role'] as const
  const texts: ReadonlySet<string> = new Set(['content', 'reasoning_content', 'reasoning', 'refusal'])
  const cases = fields.flatMap((field) =>
    values.filter((value) => !(texts.has(field) && typeof value === 'string')).map((value) => ({ field, value })),
  )

  const event = (choice: object, more: object = {}): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, finish_reason: null, ...choice }], ...more })}\n\n`

  for (const [form, open] of Object.entries(forms).filter(([name]) => name !== '/completions')) {
    it(`is omitted from ${form}, and the rest of its event is not`, () => {
      for (const { field, value } of cases) {
        // Alone, and beside a text, which makes the event look like any other.
        for (const delta of [{ [field]: value }, { content: 'seen', [field]: value }]) {
          const relay = open()
          const what = `${form} ${JSON.stringify(delta)}`
          const text = relay.push(
            Buffer.from(
              event({ delta: { role: 'assistant', content: '' } }) +
                event({ delta }) +
                event({ delta: { content: 'last' }, finish_reason: 'stop' }),
            ),
          )
          assert.ok(relay.isComplete(), what)
          assert.match(text, /last/, what)
          assert.equal(text.includes(mark), false, what)
          assert.equal(text.includes('seen'), delta.content === 'seen', what)
          for (const [, calls] of text.matchAll(/"tool_calls":(.)/g)) assert.equal(calls, '[', what)
        }
      }
    })

    it(`does not matter where the limit cuts ${form}`, () => {
      for (const { field, value } of cases) {
        const relay = open(1)
        const usage = { usage: { prompt_tokens: 1, completion_tokens: 9 } }
        const text = relay.push(
          Buffer.from(
            event({ delta: { content: 'seen' } }) + event({ delta: { content: 'more', [field]: value } }, usage),
          ),
        )
        assert.ok(relay.isComplete() && relay.isPastLimit(), form)
        assert.equal(text.includes(mark), false, form)
      }
    })
  }

  for (const [form, open] of Object.entries(forms)) {
    it(`does not count for ${form}`, () => {
      const counts = [mark, 7, true, [], {}, { prompt_tokens: '5' }, { prompt_tokens: 5, completion_tokens: mark }]
      for (const usage of counts) {
        const relay = open()
        relay.push(Buffer.from(event({ delta: { content: 'seen' }, text: 'seen', finish_reason: 'stop' }, { usage })))
        assert.ok(relay.isComplete(), form)
        assert.equal(relay.reportedUsage(), undefined, `${form} ${JSON.stringify(usage)}`)
        assert.equal(relay.deltasSinceReport(), 1)
      }
      for (const details of [mark, 7, [], { cached_tokens: mark }, { cached_tokens: -1 }]) {
        const relay = open()
        const usage = {
          prompt_tokens: 5,
          completion_tokens: 1,
          prompt_tokens_details: details,
          completion_tokens_details: details,
        }
        relay.push(Buffer.from(event({ delta: { content: 'seen' }, text: 'seen', finish_reason: 'stop' }, { usage })))
        const { inputTokens, cachedInputTokens, outputTokens } = relay.reportedUsage() ?? assert.fail(form)
        assert.deepEqual([inputTokens, cachedInputTokens, outputTokens], [5, 0, 1], JSON.stringify(details))
      }
    })

    it(`is ignored in ${form} if it is null`, () => {
      const relay = open()
      relay.push(
        Buffer.from(
          `data: {"choices":null,"usage":null,"error":null}\n\n` +
            event({ index: null, delta: null, text: null }) +
            event({ delta: { content: 'seen', tool_calls: null, refusal: null }, text: 'seen', finish_reason: 'stop' }),
        ),
      )
      assert.ok(relay.isComplete() && !relay.isBroken(), form)
      assert.equal(relay.deltaCount(), 1)
    })
  }
})
