import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import type { Model } from '../../src/catalog/model.ts'
import { ApiError } from '../../src/shared/errors.ts'
import type { AnswerHead } from '../../src/engines/job.ts'
import { madeBody, HEADROOM } from '../../src/shared/json/json-body.ts'
import { noUsage } from '../../src/billing/rating/rating.ts'
import { conversation, textPart } from '../../src/inference/chat/conversation.ts'
import type { ChatDelta, ChatEvents } from '../../src/inference/chat/form.ts'
import type { ChatMessage } from '../../src/inference/chat/schema.ts'
import { chatStream } from '../../src/inference/chat/answer.ts'
import { chatToolName } from '../../src/inference/chat/tool-names.ts'
import { messagesFromTurns as fromTurns } from '../../src/inference/messages/turns.ts'
import { messagesEvents } from '../../src/inference/messages/stream.ts'
import { messagesFromItems as fromItems } from '../../src/inference/responses/turns.ts'
import { responsesEvents } from '../../src/inference/responses/stream.ts'

/** What the two other forms of a chat hold to, whatever is said and whatever the model writes. */

const head: AnswerHead = { id: 'id', created: 1, model: 'meta/test' }
const usage = {
  prompt_tokens: 10,
  completion_tokens: 3,
  total_tokens: 13,
  prompt_tokens_details: { cached_tokens: 4 },
  completion_tokens_details: { reasoning_tokens: 1 },
}

/** What a model may write: pieces of reasoning, text and calls. The calls follow one another. */
const written: fc.Arbitrary<readonly ChatDelta[]> = fc
  .array(fc.constantFrom('think', 'say', 'call', 'go on', 'nothing'), { maxLength: 30 })
  .map((steps) => {
    let calls = 0
    let isCalling = false
    return steps.map((step, number): ChatDelta => {
      const continues = step === 'go on' && isCalling
      isCalling = step === 'call' || continues
      if (step === 'think') return { reasoning_content: `t${number} é` }
      if (step === 'say') return { content: `s${number} 水` }
      if (step === 'call') {
        const index = calls++
        return {
          tool_calls: [
            { index, id: `call_${index}`, type: 'function', function: { name: 'f', arguments: '' } },
            { index, function: { arguments: '{"input":' } },
          ],
        }
      }
      if (continues) return { tool_calls: [{ index: calls - 1, function: { arguments: '"x"}' } }] }
      return {}
    })
  })

type Event = Readonly<Record<string, unknown>> & { readonly type: string }

function eventsOf(events: ChatEvents, deltas: readonly ChatDelta[], reason: string | undefined): Event[] {
  // An engine may be silent before its first token.
  let text = events.idle()
  for (const [at, delta] of deltas.entries()) text += events.delta(delta) + (at % 4 === 3 ? events.idle() : '')
  if (reason !== undefined) events.finish({ reason, stop: undefined })
  text += reason === undefined ? events.failure(new ApiError('upstream_error', 'It broke.')) : events.closing(usage)
  return text.split('\n\n').flatMap((event) => {
    if (event === '') return []
    const [name, data] = event.split('\n')
    const parsed = JSON.parse(data?.replace('data: ', '') ?? '') as Event
    assert.equal(name, `event: ${parsed.type}`)
    return [parsed]
  })
}

const endings = fc.constantFrom('stop', 'length', 'tool_calls', 'content_filter', undefined)

describe('the events of /messages', () => {
  for (const thinking of ['shown', 'sealed', 'hidden'] as const) {
    it(`[A2] open and close one block after the other, and send everything once (thinking ${thinking})`, () => {
      fc.assert(
        fc.property(written, endings, (deltas, reason) => {
          const events = eventsOf(
            messagesEvents(head, 7, { toolNames: new Map([['f', 'own name']]), thinking }),
            [{}, ...deltas],
            reason,
          )
          let open = -1
          let next = 0
          let text = ''
          for (const [at, event] of events.entries()) {
            const { type, index, delta } = event as Event & { index: number; delta?: Record<string, string> }
            if (at === 0) assert.equal(type, 'message_start')
            if (type === 'content_block_start') {
              assert.deepEqual([open, index], [-1, next++])
              open = index
              const { content_block: block } = event as unknown as { content_block: { type: string; name?: string } }
              if (block.type === 'tool_use') assert.equal(block.name, 'own name')
            } else if (type === 'content_block_delta') {
              assert.equal(index, open)
              text += delta?.['text'] ?? delta?.['thinking'] ?? ''
              if (thinking === 'sealed' && delta?.['signature']) {
                text += Buffer.from(delta['signature'], 'base64').toString()
              }
            } else if (type === 'content_block_stop') {
              assert.equal(index, open)
              open = -1
            }
          }
          const types = events.map(({ type }) => type).filter((type) => type !== 'ping')
          if (reason === undefined) assert.equal(types.at(-1), 'error')
          else {
            assert.equal(open, -1)
            assert.deepEqual(types.slice(-2), ['message_delta', 'message_stop'])
          }
          const said = deltas.map(({ content, reasoning_content: thought }) =>
            thinking === 'hidden' ? (content ?? '') : (thought ?? content ?? ''),
          )
          if (reason !== undefined) assert.equal(text, said.join(''))
          assert.equal(types.filter((type) => type === 'message_start').length, 1)
        }),
      )
    })
  }
})

describe('the events of /responses', () => {
  for (const kind of ['function', 'custom'] as const) {
    it(`[A1] add, fill and finish one item after the other, and repeat them at the end (${kind} calls)`, () => {
      fc.assert(
        fc.property(written, endings, (deltas, reason) => {
          const tools = new Map([['f', { kind, name: 'own name', namespace: 'space' }]])
          const events = eventsOf(
            responsesEvents(head, { tools, settings: {}, sealsReasoning: true }),
            [{}, ...deltas],
            reason,
          )
          const done: object[] = []
          let open: string | undefined
          for (const [number, event] of events.entries()) {
            assert.equal(event['sequence_number'], number)
            const { type, item, item_id: id, output_index: index } = event as Event & { item?: { id: string } }
            if (type === 'response.output_item.added') {
              assert.deepEqual([open, index], [undefined, done.length])
              open = item?.id
            } else if (type === 'response.output_item.done') {
              assert.deepEqual([item?.id, index], [open, done.length])
              done.push(item ?? {})
              open = undefined
            } else if (id !== undefined) assert.deepEqual([id, index], [open, done.length])
          }
          const last = events.at(-1) as unknown as Event & { response: { status: string; output: object[] } }
          const status =
            reason === undefined
              ? 'failed'
              : reason === 'length' || reason === 'content_filter'
                ? 'incomplete'
                : 'completed'
          assert.deepEqual([last.type, last.response.status], [`response.${status}`, status])
          assert.deepEqual(last.response.output, done)
          assert.equal(events.filter(({ type }) => /completed|incomplete|failed/.test(type)).length, 1)
          assert.deepEqual(
            events.slice(0, 2).map(({ type }) => type),
            ['response.created', 'response.in_progress'],
          )
          const statuses = (done as { status: string }[]).map((item) => item.status)
          if (reason === 'length') assert.equal(statuses.at(-1) ?? 'incomplete', 'incomplete')
          else assert.ok(statuses.every((it) => it === 'completed'))
          for (const item of done as { type: string; name?: string; namespace?: string }[]) {
            if (item.type.endsWith('call')) assert.deepEqual([item.name, item.namespace], ['own name', 'space'])
          }
        }),
      )
    })
  }
})

describe('the other forms of a chat', () => {
  const forms = {
    '/messages': () => messagesEvents(head, 7, { toolNames: new Map(), thinking: 'shown' }),
    '/responses': () => responsesEvents(head, { tools: new Map(), settings: {}, sealsReasoning: false }),
  }

  for (const [path, open] of Object.entries(forms)) {
    it(`[A8] have an event for every pause, before the first token and after it (${path})`, () => {
      const events = open()
      for (const text of [events.idle(), events.delta({ content: 'A' }), events.idle(), events.idle()]) {
        assert.match(text, /^event: /)
      }
    })

    it(`[A10] end for the first reason that the engine gives (${path})`, () => {
      const limit = { maxTokens: 10, choices: 1, generated: 1, tokenizer: undefined }
      const relay = chatStream(head, { includeUsage: false, limit }, open())
      for (const reason of ['length', 'stop']) {
        const event = { choices: [{ index: 0, delta: { content: 'A' }, finish_reason: reason }] }
        relay.push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
      }
      assert.match(relay.closing(noUsage), /"stop_reason":"max_tokens"|"reason":"max_output_tokens"/)
    })
  }
})

const model = { id: 'x/y', categories: ['llm'] } as unknown as Model

/** The messages of every beginning of a conversation. */
function beginnings<Turn>(turns: readonly Turn[], translate: (some: Turn[]) => ChatMessage[]): ChatMessage[][] {
  return turns.map((_, count) => translate(turns.slice(0, count + 1)))
}

/** Each conversation starts with all messages of the one before, as far as those were complete. */
function requireStableStarts(all: readonly ChatMessage[][]): void {
  for (const [count, longer] of all.entries()) {
    const shorter = all[count - 1]
    if (!shorter) continue
    // Only the last message may still grow: two texts of a user in a row are one message.
    const kept = shorter.slice(0, -1)
    assert.deepEqual(longer.slice(0, kept.length), kept)
    assert.ok(JSON.stringify(longer).length >= JSON.stringify(shorter).length)
  }
}

describe('a growing conversation', () => {
  it('[A9] keeps its beginning on /messages, whatever follows', () => {
    const turns = [
      { role: 'user' as const, content: [{ type: 'text', text: 'Fix it.', cache_control: { type: 'ephemeral' } }] },
      { role: 'system' as const, content: 'The folder is empty.' },
      {
        role: 'assistant' as const,
        content: [
          { type: 'thinking', thinking: '', signature: Buffer.from('Hm.').toString('base64') },
          { type: 'text', text: 'Looking.' },
          { type: 'tool_use', id: 'call_1', name: 'Read', input: { z: 1, a: [2], '10': 1, '2': 1 } },
        ],
      },
      { role: 'user' as const, content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'text' }] },
      { role: 'assistant' as const, content: 'Done.' },
      { role: 'user' as const, content: 'Thanks.' },
    ]
    const all = beginnings(turns, (messages) => fromTurns({ system: 'Be brief.', messages }, model))
    requireStableStarts(all)
    assert.deepEqual(
      all.at(-1)?.map(({ role }) => role),
      ['system', 'user', 'assistant', 'tool', 'assistant', 'user'],
    )
    assert.equal(all.at(-1)?.[2]?.reasoning_content, 'Hm.')
  })

  it('[A9] keeps its beginning on /responses, whatever follows', () => {
    const without = { add() {}, hint: () => undefined, warnings: [] }
    const items = [
      { type: 'message', role: 'developer' as const, content: 'Be brief.' },
      { type: 'message', role: 'user' as const, content: [{ type: 'input_text', text: '<environment/>' }] },
      { type: 'message', role: 'user' as const, content: 'Fix it.' },
      { type: 'reasoning', content: [{ type: 'reasoning_text', text: 'Hm.' }] },
      { type: 'message', role: 'assistant' as const, content: [{ type: 'output_text', text: 'Looking.' }] },
      { type: 'function_call', call_id: 'call_1', name: 'read', arguments: '{"z":1, "a":2}' },
      { type: 'function_call', call_id: 'call_2', name: 'read', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'one' },
      { type: 'function_call_output', call_id: 'call_2', output: 'two' },
      { type: 'message', role: 'developer' as const, content: 'The mode has changed.' },
      { type: 'message', role: 'assistant' as const, content: [{ type: 'output_text', text: 'Done.' }] },
    ]
    const all = beginnings(items, (input) => fromItems({ input }, model, without))
    requireStableStarts(all)
    assert.deepEqual(
      all.at(-1)?.map(({ role }) => role),
      ['system', 'user', 'assistant', 'tool', 'tool', 'user', 'assistant'],
    )
    // The arguments are those that the model wrote, byte by byte.
    assert.equal(all.at(-1)?.[2]?.tool_calls?.[0]?.function.arguments, '{"z":1, "a":2}')
  })

  it('[A5] gives a tool the same name in every turn, whatever other tools there are', () => {
    const long = `mcp__${'x'.repeat(80)}__tool`
    assert.equal(chatToolName(long), chatToolName(long))
    assert.match(chatToolName(long), /^[a-zA-Z0-9_.-]{64}$/)
    assert.notEqual(chatToolName(long), chatToolName(`${long}2`))
    assert.equal(chatToolName('plain_name-1.2'), 'plain_name-1.2')
  })

  it('[A5] omits images of tools for a model without vision, and tells the model', () => {
    const chat = conversation(model)
    chat.result('call_1', [textPart('A map:'), { type: 'image_url', image_url: { url: 'data:,' } }])
    assert.deepEqual(chat.messages(), [
      {
        role: 'tool',
        tool_call_id: 'call_1',
        content: `A map:\n\n[${model.id} does not accept images, so they were left out.]`,
      },
    ])
  })
})

describe('a body that was generated here', () => {
  it('has its fields as if it had been scanned', () => {
    const value = { model: 'x', messages: [{ content: 'é'.repeat(200_000) }], absent: undefined, stream: true }
    const { bytes, scan } = madeBody(value)
    assert.deepEqual(JSON.parse(bytes.subarray(HEADROOM).toString()), JSON.parse(JSON.stringify(value)))
    assert.deepEqual(
      scan.fields.map(({ name, start, valueStart, end }) => [
        name,
        JSON.parse(`{${bytes.subarray(start, end).toString()}}`),
        bytes.subarray(valueStart, valueStart + 1).toString(),
      ]),
      [
        ['model', { model: 'x' }, '"'],
        ['messages', { messages: value.messages }, '['],
        ['stream', { stream: true }, 't'],
      ],
    )
    assert.equal(madeBody({}).bytes.subarray(HEADROOM).toString(), '{}')
  })
})
