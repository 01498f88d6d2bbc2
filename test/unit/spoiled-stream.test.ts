import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallStream } from '../../src/endpoints/generation-stream.ts'
import { chatStream } from '../../src/endpoints/chat/stream.ts'
import { completionsStream } from '../../src/endpoints/completions/stream.ts'

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

describe('an event that is not what an engine should send', () => {
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

  it('gets the index that it lacks', () => {
    const events = push(chatStream(head, options), role, '{"choices":[{"delta":{"content":"x"},"finish_reason":null}]}')
    assert.equal(events.at(-1)?.choices[0]?.['index'], 0)
  })

  it('sends nothing of a tool call that is text', () => {
    const call = '{"choices":[{"index":0,"delta":{"tool_calls":["ab"]},"finish_reason":null}]}'
    assert.equal(push(chatStream(head, options), role, call).length, 1)
  })
})
