import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { chatStream } from '../../src/inference/chat/answer.ts'
import { toolCallPieces, wholeToolCalls } from '../../src/inference/chat/tool-calls.ts'

const idOf = (index: number): string => `made-${index}`
const part = (name: string | undefined, text: string, more: object = {}): object => ({
  index: 0,
  ...more,
  function: { ...(name === undefined ? {} : { name }), arguments: text },
})

describe('the pieces of a tool call', () => {
  it('[E2] have id and name once, however often the engine repeats them', () => {
    const pieces = toolCallPieces(idOf)
    const given = { id: 'a', type: 'function' }
    assert.deepEqual(
      [part('f', '', given), part('f', '{', given), part('f', '}', given), part('f', '', given)].flatMap((it) =>
        pieces([it]),
      ),
      [
        { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } },
        { index: 0, function: { arguments: '{' } },
        { index: 0, function: { arguments: '}' } },
      ],
    )
  })

  it('[E2] are another call if they have another id and a name, even with the same index', () => {
    const pieces = toolCallPieces(idOf)
    const read = [part('f', '{}', { id: 'a' }), part('f', '{}', { id: 'b' }), part(undefined, ' ', { id: 'c' })]
    assert.deepEqual(
      read.flatMap((it) => pieces([it])).map((it) => (it as { index: number }).index),
      [0, 1, 1],
    )
  })

  it('[E2] have an id and an index even if the engine sends none', () => {
    const pieces = toolCallPieces(idOf)
    const two = [{ function: { name: 'f', arguments: '{}' } }, { index: null, function: { name: 'g', arguments: {} } }]
    assert.deepEqual(pieces(two), [
      { index: 0, id: 'made-0', type: 'function', function: { name: 'f', arguments: '{}' } },
      { index: 1, id: 'made-1', type: 'function', function: { name: 'g', arguments: '{}' } },
    ])
  })

  it('[E2] keep a name that arrives late or in pieces, and arguments without a name', () => {
    const pieces = toolCallPieces(idOf)
    const read = [part(undefined, 'x'), part(undefined, '', { id: 'a' }), part('get_', ''), part('rain', '{}')]
    assert.deepEqual(
      read.flatMap((it) => pieces([it])),
      [
        { index: 0, type: 'function', function: { arguments: 'x' } },
        { index: 0, id: 'a', function: { arguments: '' } },
        { index: 0, function: { name: 'get_', arguments: '' } },
        { index: 0, function: { name: 'rain', arguments: '{}' } },
      ],
    )
  })

  it('[E2] are not repeated beside a text, which is relayed alone', () => {
    const limit = { maxTokens: 100, choices: 1, generated: 1, tokenizer: undefined }
    const relay = chatStream({ id: 'r1', created: 7, model: 'meta/x' }, { includeUsage: false, limit })
    const call = { index: 0, id: 'a', type: 'function', function: { name: 'get_weather', arguments: '' } }
    const text = [{}, { content: 'seen' }].map((more) => {
      const choice = { index: 0, delta: { ...more, tool_calls: [call] }, finish_reason: null }
      return relay.push(Buffer.from(`data: ${JSON.stringify({ choices: [choice] })}\n\n`))
    })
    assert.equal(text.join('').split('get_weather').length - 1, 1)
    assert.match(text[1] ?? '', /"delta":\{"content":"seen"\}/)
  })

  it('[E12] do not count against max_tokens when they are repeated', () => {
    const limit = { maxTokens: 12, choices: 1, generated: 1, tokenizer: undefined }
    const relay = chatStream({ id: 'r1', created: 7, model: 'meta/x' }, { includeUsage: false, limit })
    const url = new URL('../fixtures/dialects/openai/chat-llama-cpp-python-tools.stream', import.meta.url)
    const text = relay.push(readFileSync(url))
    assert.ok(relay.isComplete() && !relay.isPastLimit())
    assert.equal(text.split('get_weather').length - 1, 2, 'in the id and in the name')
  })
})

describe('the tool calls of a whole answer', () => {
  it('[E1] have an id, a type, a name and arguments as JSON', () => {
    assert.deepEqual(wholeToolCalls([{ function: { name: 'f', arguments: { a: 1 } } }, { id: 'b' }], idOf), [
      { id: 'made-0', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
      { id: 'b', type: 'function', function: { name: '', arguments: '' } },
    ])
  })
})
