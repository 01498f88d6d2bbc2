import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LlamaModel, Token } from 'node-llama-cpp'
import { forcedCall } from '../host/llama/chat-events.ts'
import { tokenText } from '../host/llama/token-text.ts'
import { forcedCallSchema } from '../host/llama/tool-calls.ts'
import type { EngineChatRequest, TextEvent } from '../host/runtime/engine-model.ts'
import type { JsonObject } from '../host/runtime/json-value.ts'

/** A model whose tokens are single bytes. */
const bytewise = {
  detokenize: (tokens: readonly number[]) => Buffer.from(tokens).toString('utf8'),
} as unknown as LlamaModel

describe('the text of tokens', () => {
  it('arrives in whole characters, and what is left at the end is shown', () => {
    const text = tokenText(bytewise, [])
    const shown = [...Buffer.from('a€😀')].map((byte) => text.push(byte as Token))
    assert.deepEqual(shown, ['a', '', '', '€', '', '', '', '😀'])
    assert.equal(text.push(0xe2 as Token), '')
    assert.equal(text.flush(), '\uFFFD')
  })

  it('is not held for more than the four bytes of a character', () => {
    const text = tokenText(bytewise, [])
    const shown = Array.from({ length: 4 }, () => text.push(0xff as Token))
    assert.deepEqual(shown, ['', '', '', '\uFFFD'.repeat(4)])
  })
})

describe('a forced call', () => {
  async function eventsOf(...texts: readonly string[]): Promise<readonly TextEvent[]> {
    async function* events(): AsyncGenerator<TextEvent> {
      yield { kind: 'prompt', promptTokens: 3, cachedTokens: 0 }
      for (const text of texts) yield { kind: 'text', text, completionTokens: 1 }
      yield { kind: 'end', finishReason: 'length', completionTokens: 9 }
    }
    return Array.fromAsync(forcedCall(events()))
  }

  it('is one event, and ends the answer', async () => {
    const [, ...events] = await eventsOf('{"name":"find",', '"arguments":{"q":1}}')
    assert.deepEqual(events, [
      { kind: 'tool_call', index: 0, name: 'find', arguments: '{"q":1}', completionTokens: 9 },
      { kind: 'end', finishReason: 'tool_calls', completionTokens: 9 },
    ])
  })

  it('that was cut off is none: the answer ends as the model ended it', async () => {
    const [, ...events] = await eventsOf('{"name":"find",')
    assert.deepEqual(events, [{ kind: 'end', finishReason: 'length', completionTokens: 9 }])
  })

  it('may have a schema that refers to itself: it is followed for eight levels', () => {
    const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } }
    const parameters: JsonObject = { $ref: '#/$defs/node', $defs: { node } }
    const request = { tools: [{ name: 'find', parameters }], toolChoice: 'required' } as unknown as EngineChatRequest
    const text = JSON.stringify(forcedCallSchema(request))
    assert.equal(text.split('"next"').length - 1, 9)
    assert.ok(text.includes('"next":true') && !text.includes('$ref'))
  })
})
