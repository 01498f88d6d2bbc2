import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { EngineRequest } from '../../src/engines/job.ts'
import { chatStream } from '../../src/inference/chat/answer.ts'
import { generationCalls, joinedStream } from '../../src/inference/generation/generation-calls.ts'
import type { GenerationOptions } from '../../src/inference/generation/generation-options.ts'

async function bodyOf({ body }: EngineRequest): Promise<{ text: string; length: number }> {
  if (Buffer.isBuffer(body)) return { text: body.toString(), length: body.length }
  const pieces: Buffer[] = []
  for await (const piece of body.open()) pieces.push(piece)
  return { text: Buffer.concat(pieces).toString(), length: body.length }
}

describe('the calls of a request for several choices', () => {
  const shared = Buffer.from('{"model":"m","max_tokens":5}')
  const callsOf = (split: { choices: number; seed: number | undefined }, prompts: readonly string[]) => {
    const bodies = [shared, ...prompts.map((prompt) => Buffer.from(JSON.stringify({ prompt })))]
    return generationCalls({ path: '/completions' }, { bodies, isStream: false, split, inputName: 'prompt' })
  }

  it('are the same without a seed, and share one body', () => {
    const calls = callsOf({ choices: 3, seed: undefined }, [])
    assert.deepEqual(
      calls.map(({ body, repeatsInput }) => [body === shared, repeatsInput]),
      [
        [true, false],
        [true, true],
        [true, true],
      ],
    )
  })

  it('have one prompt each, a seed of their own, and their true length', async () => {
    const calls = callsOf({ choices: 2, seed: -1 }, ['a"b', 'ö'])
    const bodies = await Promise.all(calls.map(bodyOf))
    assert.deepEqual(
      bodies.map(({ text }) => JSON.parse(text) as object),
      [
        { prompt: 'a"b', seed: -1, model: 'm', max_tokens: 5 },
        { prompt: 'a"b', seed: 0, model: 'm', max_tokens: 5 },
        { prompt: 'ö', seed: -1, model: 'm', max_tokens: 5 },
        { prompt: 'ö', seed: 0, model: 'm', max_tokens: 5 },
      ],
    )
    for (const { text, length } of bodies) assert.equal(length, Buffer.byteLength(text))
    assert.deepEqual(
      calls.map(({ repeatsInput }) => repeatsInput),
      [false, true, false, true],
    )
    const again = await bodyOf(calls[0]!)
    assert.equal(again.text, bodies[0]?.text, 'a body can be sent twice')
  })
})

describe('the streams of several calls', () => {
  const head = { id: 'r1', created: 7, model: 'meta/x' }

  function relayOf(choices: number, prompts = 1) {
    const options: GenerationOptions = {
      limit: { maxTokens: 10, choices, generated: choices, tokenizer: undefined },
      includeUsage: true,
      prompts,
      oneChoicePerCall: true,
    }
    const relay = joinedStream(options, (part) => chatStream(head, part))
    const say = (...events: readonly (object | string)[]): string =>
      relay.push(
        Buffer.from(events.map((it) => `data: ${typeof it === 'string' ? it : JSON.stringify(it)}\n\n`).join('')),
      )
    return { relay, say }
  }

  const delta = (content: string): object => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })
  const end = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }
  const count = (input: number, output: number): object => ({
    choices: [],
    usage: { prompt_tokens: input, completion_tokens: output, completion_tokens_details: { reasoning_tokens: 1 } },
  })

  it('are one answer, which is complete when all of them are', () => {
    const { relay, say } = relayOf(2)
    say(delta('a'), delta('b'), end, count(9, 2), '[DONE]')
    assert.deepEqual([relay.isDone(), relay.isComplete()], [true, false])
    assert.equal(relay.next(), true)
    assert.deepEqual([relay.isDone(), relay.isComplete()], [false, false])
    const text = say(delta('c'), delta('é'), end, '[DONE]')
    assert.deepEqual(
      [...text.matchAll(/"index":(\d)/g)].map(([, index]) => index),
      ['1', '1', '1', '1'],
    )
    assert.match(Buffer.from(text, 'latin1').toString('utf8'), /"content":"é"/)
    assert.equal(relay.isComplete(), true)
    assert.equal(relay.next(), false, 'there is no third')
    assert.equal(relay.deltaCount(), 4)
    assert.equal(relay.deltasSinceReport(), 2, 'those of the second, which counted nothing')
    assert.equal(relay.reportedUsage()?.outputTokens, 2)
  })

  it('are not followed by another when one is incomplete or broken', () => {
    const { relay, say } = relayOf(2)
    say(delta('a'), '[DONE]')
    assert.equal(relay.next(), false)
    const broken = relayOf(2)
    broken.say(delta('a'), end, { error: 'no' })
    assert.equal(broken.relay.isBroken(), true)
    assert.equal(broken.relay.next(), false)
  })

  it('count the input once for each prompt, and the output and reasoning of every choice', () => {
    const { relay, say } = relayOf(4, 2)
    for (const [input, output] of [
      [9, 2],
      [9, 3],
      [20, 4],
      [20, 5],
    ] as const) {
      say(delta('a'), end, count(input, output), '[DONE]')
      relay.next()
    }
    const usage = relay.reportedUsage()
    assert.ok(usage)
    assert.deepEqual([usage.inputTokens, usage.outputTokens], [29, 14])
    assert.match(relay.closing(usage), /"completion_tokens":14,.*"reasoning_tokens":4/)
  })

  it('end each at the limit of one choice', () => {
    const { relay, say } = relayOf(2)
    for (let call = 0; call < 2; call++) {
      for (let token = 0; token < 12; token++) say(delta('x '))
      assert.equal(relay.isDone(), true)
      relay.next()
    }
    assert.deepEqual([relay.isPastLimit(), relay.isComplete(), relay.deltaCount()], [true, true, 20])
  })
})
