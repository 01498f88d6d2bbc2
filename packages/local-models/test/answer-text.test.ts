import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { answerParts, type ModelAnswerPart } from '../host/llama/answer-parts.ts'
import { splitAnswer } from '../host/llama/chat-events.ts'
import type { TextEvent } from '../host/runtime/engine-model.ts'
import { stopText } from '../host/runtime/stop-text.ts'

/** The text in pieces of random length, as tokens bring it. */
const pieces = (text: string) =>
  fc.array(fc.integer({ min: 1, max: 4 }), { minLength: text.length, maxLength: text.length }).map((lengths) => {
    const parts: string[] = []
    for (let at = 0, index = 0; at < text.length; at += lengths[index++] ?? 1)
      parts.push(text.slice(at, at + (lengths[index] ?? 1)))
    return parts
  })

describe('stop text', () => {
  it('shows everything before the first stop string and nothing after it, however the text is split', () => {
    const alphabet = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 30 })
    const stops = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 4 }), {
      maxLength: 3,
    })
    fc.assert(
      fc.property(alphabet, stops, fc.integer({ min: 1, max: 5 }), (text, list, size) => {
        const watch = stopText(list)
        let shown = ''
        for (let at = 0; at < text.length && watch.found() === undefined; at += size)
          shown += watch.push(text.slice(at, at + size))
        shown += watch.flush()
        const found = list.map((stop) => text.indexOf(stop)).filter((index) => index >= 0)
        if (found.length === 0) assert.equal(shown, text)
        // In pieces, a stop string that ends earlier is found before one that only begins earlier.
        else
          assert.ok(watch.found() !== undefined && text.startsWith(shown) && !list.some((stop) => shown.includes(stop)))
      }),
    )
  })
})

describe('answer parts', () => {
  const options = { thinks: true, startsThinking: false, tools: ['find'] }
  const joined = (parts: readonly ModelAnswerPart[]) => {
    const text = (kind: string) =>
      parts.flatMap((part) => (part.kind === kind && 'text' in part ? part.text : [])).join('')
    return {
      text: text('text'),
      reasoning: text('reasoning'),
      calls: parts.flatMap((part) => (part.kind === 'tool_call' ? part.call : [])),
    }
  }
  const answer =
    '<think>hm < 3</think>Let me look.<tool_call>\n{"name": "find", "arguments": {"q": "a<b"}}\n</tool_call> ok'

  it('separate reasoning, text and tool calls, however the text is split', () => {
    fc.assert(
      fc.property(pieces(answer), (cut) => {
        const parts = answerParts(options)
        const found = joined([...cut.flatMap((piece) => parts.push(piece)), ...parts.flush()])
        assert.deepEqual(found, {
          text: 'Let me look. ok',
          reasoning: 'hm < 3',
          calls: [{ name: 'find', arguments: '{"q":"a<b"}' }],
        })
      }),
    )
  })

  it('read a call without tags, however the text is split, if it is all of the answer and names a tool', () => {
    const json = '{\n  "name": "find",\n  "arguments": {"q": "x"}\n}'
    const bare = [
      json,
      `\n${json}\n`,
      `\`\`\`json\n${json}\n\`\`\``,
      `<tools>\n${json}\n</tools>`,
      `<think>hm</think>\n\n${json}`,
    ]
    for (const text of bare) {
      fc.assert(
        fc.property(pieces(text), (cut) => {
          const parts = answerParts(options)
          const found = joined([...cut.flatMap((piece) => parts.push(piece)), ...parts.flush()])
          assert.deepEqual([found.text, found.calls], ['', [{ name: 'find', arguments: '{"q":"x"}' }]])
        }),
        { numRuns: 20 },
      )
    }
    const others = [
      json.replace('find', 'other'),
      `${json} is JSON.`,
      '{"q": "x"}',
      '```js\nfind()\n```',
      `So: ${json}`,
    ]
    for (const text of others) {
      const parts = answerParts(options)
      assert.deepEqual(joined([...parts.push(text), ...parts.flush()]), { text, reasoning: '', calls: [] })
    }
    const without = answerParts({ ...options, tools: [] })
    assert.equal(joined([...without.push(json), ...without.flush()]).text, json)
  })

  it('show text as it arrives, even if tools may be called', () => {
    const parts = answerParts(options)
    assert.deepEqual(parts.push('Hello'), [{ kind: 'text', text: 'Hello' }])
    assert.deepEqual(parts.push(' {'), [{ kind: 'text', text: ' {' }])
  })

  it('start with reasoning if the prompt opened it', () => {
    const parts = answerParts({ ...options, startsThinking: true })
    assert.deepEqual(joined([...parts.push('so</think>yes'), ...parts.flush()]), {
      text: 'yes',
      reasoning: 'so',
      calls: [],
    })
  })

  it('show an invalid call as text, and keep tags that were not requested', () => {
    const broken = answerParts(options)
    assert.equal(joined([...broken.push('<tool_call>oops'), ...broken.flush()]).text, 'oops')
    const plain = answerParts({ thinks: false, startsThinking: false, tools: [] })
    assert.equal(joined([...plain.push('<think>x'), ...plain.flush()]).text, '<think>x')
  })
})

describe('tool calls', () => {
  const call = '<tool_call>{"name":"f","arguments":{}}</tool_call>'

  /** The kinds of the events, and how many tokens were generated. */
  async function eventsOf(maxCalls: number): Promise<{ kinds: string[]; generated: number }> {
    let generated = 0
    async function* written(): AsyncGenerator<TextEvent> {
      for (const text of [call, call, 'Bye.']) yield { kind: 'text', text, completionTokens: ++generated }
      yield { kind: 'end', finishReason: 'stop', completionTokens: generated }
    }
    const kinds: string[] = []
    const parts = answerParts({ thinks: false, startsThinking: false, tools: ['f'] })
    for await (const event of splitAnswer(written(), parts, maxCalls)) {
      kinds.push(event.kind === 'end' ? event.finishReason : event.kind)
    }
    return { kinds, generated }
  }

  it('may be several in one answer', async () => {
    assert.deepEqual(await eventsOf(Infinity), {
      kinds: ['tool_call', 'tool_call', 'text', 'tool_calls'],
      generated: 3,
    })
  })

  it('end the answer with the first one, if no more are allowed', async () => {
    assert.deepEqual(await eventsOf(1), { kinds: ['tool_call', 'tool_calls'], generated: 1 })
  })
})
