import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { chatStream } from '../../src/inference/chat/answer.ts'
import { completionsStream } from '../../src/inference/completions/answer.ts'
import type { CallStream } from '../../src/inference/generation/generation-stream.ts'
import { chatLogprobs, textLogprobs } from '../../src/inference/generation/engine-output.ts'

const head = { id: 'r1', created: 7, model: 'meta/x' }
const options = { includeUsage: false, limit: { maxTokens: 100, choices: 1, generated: 1, tokenizer: undefined } }

const ofChat = (...tokens: string[]): object => ({
  content: tokens.map((token) => ({
    token,
    logprob: -0.5,
    bytes: [...Buffer.from(token)],
    top_logprobs: [
      { token, logprob: -0.5, bytes: [...Buffer.from(token)] },
      { token: 'x', logprob: -2, bytes: [120] },
    ],
  })),
})
const ofText = (start: number, ...tokens: string[]): object => ({
  tokens,
  token_logprobs: tokens.map(() => -0.5),
  top_logprobs: tokens.map((token) => ({ [token]: -0.5, x: -2 })),
  text_offset: tokens.map((_, index) => start + Array.from(tokens.slice(0, index).join('')).length),
})

function logprobsFrom(relay: CallStream, stream: Buffer): unknown[] {
  const text = Buffer.from(relay.push(stream), 'latin1').toString('utf8')
  return [...text.matchAll(/^data: (.*)$/gm)]
    .map(([, json]) => (JSON.parse(json ?? '') as { choices: { logprobs?: unknown }[] }).choices[0]?.logprobs)
    .filter(Boolean)
}

const asStream = (...choices: object[]): Buffer =>
  Buffer.from(choices.map((choice) => `data: ${JSON.stringify({ choices: [choice] })}\n\n`).join(''))

describe('the log probabilities of a text completion', () => {
  it('[E3] have the format of text completions if the engine sends that of chats', () => {
    assert.deepEqual(textLogprobs(ofChat(' a', '👋', 'b'), 0), ofText(0, ' a', '👋', 'b'))
    assert.deepEqual(textLogprobs({ content: [{ token: 'a' }] }, 3), {
      tokens: ['a'],
      token_logprobs: [null],
      top_logprobs: [null],
      text_offset: [3],
    })
    assert.deepEqual(textLogprobs(ofText(0, 'a'), 0), ofText(0, 'a'))
    assert.equal(textLogprobs(undefined, 0), null)
  })

  it('[E3] continue their offsets through a stream, in characters', () => {
    const piece = (text: string): object => ({ index: 0, text, logprobs: ofChat(text), finish_reason: null })
    const relay = completionsStream(head, options)
    assert.deepEqual(logprobsFrom(relay, asStream(piece('Grüße'), piece(' 👋'), piece('!'))), [
      ofText(0, 'Grüße'),
      ofText(5, ' 👋'),
      ofText(7, '!'),
    ])
    const file = new URL('../fixtures/dialects/llamacpp/completions-logprobs.stream', import.meta.url)
    const recorded = logprobsFrom(completionsStream(head, options), readFileSync(file)) as { text_offset: number[] }[]
    assert.deepEqual(
      recorded.flatMap((it) => it.text_offset),
      [0, 6, 7, 8],
    )
  })

  it('[E3] are forwarded unchanged if they have the right format', () => {
    const piece = { index: 0, text: 'é', logprobs: ofText(4, 'é'), finish_reason: null }
    assert.deepEqual(logprobsFrom(completionsStream(head, options), asStream(piece)), [ofText(4, 'é')])
  })
})

describe('the log probabilities of a chat', () => {
  it('[E1] have the format of chats if the engine sends that of text completions', () => {
    assert.deepEqual(chatLogprobs(ofText(0, 'é')), { ...ofChat('é'), refusal: null })
    assert.deepEqual(chatLogprobs(ofChat('a')), ofChat('a'))
    assert.equal(chatLogprobs(undefined), null)
    const piece = (logprobs: object): object => ({ index: 0, delta: { content: 'é' }, logprobs, finish_reason: null })
    const relay = chatStream(head, options)
    assert.deepEqual(logprobsFrom(relay, asStream(piece(ofText(0, 'é')), piece(ofText(1, 'é')), piece(ofChat('é')))), [
      { ...ofChat('é'), refusal: null },
      { ...ofChat('é'), refusal: null },
      ofChat('é'),
    ])
  })
})
