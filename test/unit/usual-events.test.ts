import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatStream } from '../../src/endpoints/chat/stream.ts'
import { completionsStream } from '../../src/endpoints/completions/stream.ts'
import { eventPattern } from '../../src/endpoints/event-pattern.ts'
import type { CallStream } from '../../src/endpoints/generation-stream.ts'
import { simulationSeed } from '../simulation/seed.ts'
import { chanceOf, type Chance } from '../support/fuzz/chance.ts'

/**
 * Events that are like an earlier one are relayed without being parsed. The same events with white space that differs
 * from event to event are parsed, each of them, and must come out the same.
 */
const seed = simulationSeed()
const STREAMS = 3000

const TEXTS = [
  'a',
  ' weir',
  '\u5830',
  '\u00e9',
  '"',
  '\\',
  '\n',
  '\u0007',
  '\u2028',
  '\ud83d',
  '"content":"x"',
  '"}]',
  'x'.repeat(300),
  '',
  ' ',
]

/** The JSON of an event, as an engine might write it. */
function eventOf(chance: Chance, isChat: boolean, habits: readonly boolean[]): string {
  const unusual = (probability = 0.03): boolean => chance.is(probability)
  const text = Array.from({ length: 1 + chance.below(3) }, () => (unusual(0.2) ? chance.pick(TEXTS) : 'word ')).join('')
  const name = isChat ? 'content' : 'text'
  const written = unusual() ? text.replace('w', '\\u0077') : JSON.stringify(text).slice(1, -1)
  const field = `"${name}"${habits[0] ? ': ' : ':'}${unusual() ? 'null' : `"${written}"`}`
  const others = [
    habits[1] || unusual() ? `"reasoning_content":${chance.pick(['null', '""', '"why"'])},` : '',
    habits[2] || unusual() ? '"role":"assistant",' : '',
    unusual() ? '"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"1"}}],' : '',
    unusual() ? `"${name}":"word ",` : '',
  ]
  const output = isChat ? `"delta":{${others.join('')}${field}}` : `${unusual() ? `"${name}":"no",` : ''}${field}`
  const logprobs = habits[3]
    ? chance.pick([
        '"logprobs":null,',
        '"logprobs":{"content":[]},',
        '"logprobs":{"tokens":["a"],"token_logprobs":[-1]},',
      ])
    : ''
  const reason = unusual(0.02) ? chance.pick(['"stop"', '"length"', '"abort"']) : 'null'
  const index = unusual() ? chance.pick(['', '"index":1,', '"index":"0",']) : '"index":0,'
  const choice = `{${index}${output},${logprobs}"finish_reason":${reason}}`
  const usage =
    habits[4] || unusual() ? `,"usage":${chance.pick(['null', '{"prompt_tokens":3,"completion_tokens":2}'])}` : ''
  const top = unusual()
    ? chance.pick([`"${name}":"word ",`, '"error":{"message":"no"},', `"note":"\\"${name}\\":",`])
    : ''
  const all = `{${top}"id":"x","choices":[${choice}${unusual(0.01) ? `,${choice}` : ''}]${usage}}`
  return unusual(0.01) ? all.slice(0, -1) : all
}

function relayOf(isChat: boolean, maxTokens: number, choices: number): CallStream {
  return (isChat ? chatStream : completionsStream)(
    { id: 'r1', created: 7, model: 'meta/x' },
    { includeUsage: true, limit: { maxTokens, choices, generated: choices, tokenizer: undefined } },
  )
}

function seenOf(relay: CallStream, events: readonly string[]): unknown {
  const text = events.map((json) => relay.push(Buffer.from(`data: ${json}\n\n`)))
  const flags = [relay.isDone(), relay.isBroken(), relay.isComplete(), relay.isPastLimit()]
  return { text, flags, usage: relay.reportedUsage(), counts: [relay.deltaCount(), relay.deltasSinceReport()] }
}

/** The same JSON, which is like no other event. */
const unlike = (json: string, number: number): string => json.replace('{', `{${' '.repeat(number + 1)}`)

describe(`events like an earlier one, WEIR_SEED=${seed}`, () => {
  it(`[E2] are relayed as if they had been parsed, in ${STREAMS} streams`, () => {
    for (let input = 0; input < STREAMS; input++) {
      const chance = chanceOf(seed, input)
      const isChat = chance.is(0.7)
      const habits = Array.from({ length: 5 }, () => chance.is(0.15))
      const events = Array.from({ length: 30 }, () => eventOf(chance, isChat, habits))
      const limits = [isChat, chance.pick([5, 20, 1000]), chance.is(0.9) ? 1 : 2] as const
      const seen = seenOf(relayOf(...limits), events)
      try {
        assert.deepEqual(seen, seenOf(relayOf(...limits), events.map(unlike)))
      } catch (error) {
        throw new Error(`input ${input} of WEIR_SEED=${seed}:\n${events.join('\n')}`, { cause: error })
      }
    }
  })

  it('have nothing but another text between the same bytes', () => {
    const pattern = eventPattern('{"delta":{"content":"a"},"x":1}', 'content', 'a')
    assert.equal(pattern?.textIn('{"delta":{"content":"weir"},"x":1}'), 'weir')
    for (const other of [
      '{"delta":{"content":""},"x":1}',
      '{"delta":{"content":"a\\n"},"x":1}',
      '{"delta":{"content":"a\n"},"x":1}',
      '{"delta":{"content":"a","role":"b"},"x":1}',
      '{"delta":{"content":"a"},"x":2}',
      '{"delta":{"content":"},"x":1}',
    ]) {
      assert.equal(pattern?.textIn(other), undefined, other)
    }
    assert.equal(eventPattern('{"content":"a","delta":{"content":"a"}}', 'content', 'a'), undefined)
    assert.equal(eventPattern('{"y":"\\"content\\":","delta":{"content":"a"}}', 'content', 'a'), undefined)
    assert.equal(eventPattern('{"delta":{"content" :"a"}}', 'content', 'a'), undefined)
  })
})
