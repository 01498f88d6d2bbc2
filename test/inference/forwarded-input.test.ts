import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { parseCatalog } from '../../src/catalog/file.ts'
import { deploymentsOf, type Deployment, type Model } from '../../src/catalog/model.ts'
import type { Job } from '../../src/engines/job.ts'
import type { JsonBody } from '../../src/shared/json/json-body.ts'
import { textTokens } from '../../src/shared/tokens/token-estimate.ts'
import { chatRequestSchema } from '../../src/inference/chat/schema.ts'
import { completionsRequestSchema } from '../../src/inference/completions/schema.ts'
import { dataUrl, png } from '../support/image-samples.ts'
import { madeJob, parsedBody } from '../support/made-job.ts'

fc.configureGlobal({ seed: 1 })

/** Whatever is forwarded to an engine is charged, because an engine may read it. */

const every = [...Object.keys(chatRequestSchema.properties), ...Object.keys(completionsRequestSchema.properties)]

const [model] = parseCatalog(
  JSON.stringify({
    models: [
      {
        id: 'meta/a',
        categories: ['llm', 'vision'],
        context_length: 100_000_000,
        tokenizer: 'llama3',
        supported_parameters: [...new Set(every)],
        serverless: { engine: { kind: 'openai', urls: ['http://127.0.0.1:1'] } },
      },
    ],
  }),
  'catalog.yaml',
  () => undefined,
)
const where: [Model, Deployment] = [model!, deploymentsOf(model!)[0]!]

function bodyOf(value: object): JsonBody {
  return parsedBody(JSON.stringify({ model: 'meta/a', max_tokens: 1, ...value }))
}

const hello = { role: 'user', content: 'Hello' }
const chat = (value: object): Promise<Job> =>
  madeJob('/chat/completions', bodyOf({ messages: [hello], ...value }), ...where)
const complete = (value: object): Promise<Job> => madeJob('/completions', bodyOf(value), ...where)
const say = (...messages: readonly object[]): Promise<Job> => chat({ messages: [hello, ...messages] })
const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }
const tool = { type: 'function', function: { name: 'f' } }

/** Everywhere that a caller can put text of any length, and a request with the text there. */
const places: Readonly<Record<string, (text: string) => Promise<Job>>> = {
  content: (text) => say({ role: 'user', content: text }),
  'a content part': (text) => say({ role: 'user', content: [{ type: 'text', text }] }),
  reasoning_content: (text) => say({ role: 'assistant', content: '', reasoning_content: text }),
  refusal: (text) => say({ role: 'assistant', content: '', refusal: text }),
  tool_call_id: (text) => say({ role: 'tool', content: '', tool_call_id: text }),
  'the id of a tool call': (text) => say({ role: 'assistant', tool_calls: [{ ...call, id: text }] }),
  'the name in a tool call': (text) =>
    say({ role: 'assistant', tool_calls: [{ ...call, function: { name: text, arguments: '' } }] }),
  'the arguments of a tool call': (text) =>
    say({ role: 'assistant', tool_calls: [{ ...call, function: { name: 'f', arguments: text } }] }),
  'the description of a tool': (text) =>
    chat({ tools: [{ type: 'function', function: { name: 'f', description: text } }] }),
  'the parameters of a tool': (text) =>
    chat({ tools: [{ ...tool, function: { name: 'f', parameters: { [text]: 1 } } }] }),
  'an unknown field of a tool': (text) => chat({ tools: [{ ...tool, more: text }] }),
  'an unknown field of tool_choice': (text) =>
    chat({ tools: [tool], tool_choice: { type: 'function', function: { name: 'f' }, more: text } }),
  response_format: (text) =>
    chat({ response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { description: text } } } }),
  chat_template_kwargs: (text) => chat({ chat_template_kwargs: { system: [text] } }),
  'a name in chat_template_kwargs': (text) => chat({ chat_template_kwargs: { [text]: true } }),
  stop: (text) => chat({ stop: text }),
  logit_bias: (text) => chat({ logit_bias: { [text]: 1 } }),
  'a prompt': (text) => complete({ prompt: text }),
  'one of several prompts': (text) => complete({ prompt: ['Hello', text] }),
  suffix: (text) => complete({ prompt: 'Hello', suffix: text }),
  'the stop of a completion': (text) => complete({ prompt: 'Hello', stop: ['.', text] }),
}

/** The most characters of those that have a limit. */
const limits: Readonly<Record<string, number>> = {
  tool_call_id: 1024,
  'the id of a tool call': 1024,
  'the name in a tool call': 256,
  stop: 1024,
  logit_bias: 64,
  'the stop of a completion': 1024,
}

describe('what is forwarded to an engine is charged', () => {
  for (const [place, request] of Object.entries(places)) {
    it(`[Q1] ${place}`, async () => {
      await fc.assert(
        fc.asyncProperty(fc.string({ unit: 'grapheme', minLength: 30, maxLength: 200 }), async (any) => {
          const text = any.slice(0, limits[place]).toWellFormed()
          const more = (await request(text)).cost - (await request('w')).cost
          const { charged } = textTokens(text, 'llama3')
          // Quotes and brackets come with some of them, and rounding.
          assert.ok(Math.abs(more - charged) <= 25, `${more} is charged for ${charged}`)
        }),
        { numRuns: 50 },
      )
      if (limits[place] !== undefined) {
        await request('w'.repeat(limits[place]))
        return assert.rejects(request('w'.repeat(limits[place] + 1)), { code: 'invalid_value' })
      }
      const large = await request('w'.repeat(2_000_000))
      assert.ok(large.cost > 500_000, `two megabytes are charged as ${large.cost}`)
    })
  }

  it('[Q1] a number with thousands of digits', async () => {
    const numbers = `{"model":"meta/a","messages":[{"role":"user","content":"Hello"}],"chat_template_kwargs":{"a":${'7'.repeat(4000)}}}`
    assert.ok((await madeJob('/chat/completions', parsedBody(numbers), ...where)).cost > 2000)
  })

  it('[Q1] but not the base64 of an image, which counts by itself', async () => {
    const look = (more: number): Promise<Job> =>
      say({ role: 'user', content: [{ type: 'image_url', image_url: { url: dataUrl('png', png({ more })) } }] })
    assert.equal((await look(1_000_000)).cost, (await look(0)).cost)
  })

  it('[Q1] and not the JSON around an ordinary chat, nor settings', async () => {
    const texts = ['You are a helpful assistant.', 'What is a weir?', 'A low dam across a river.', 'And a lock?']
    const messages = texts.map((content, index) => ({ role: ['system', 'user', 'assistant', 'user'][index], content }))
    const settings = { temperature: 0.7, top_p: 0.95, seed: 1234, stop: ['\n\n'], reasoning_effort: 'high', n: 1 }
    const job = await chat({ messages, ...settings })
    const expected = texts.reduce((sum, text) => sum + 8 + textTokens(text, 'llama3').charged, 0)
    assert.equal(job.cost, expected + 1)
  })
})

describe('the context check', () => {
  it('does not count what many chat templates leave out', async () => {
    const text = 'w '.repeat(1000)
    const plain = await say({ role: 'assistant', content: 'Hi' })
    const thought = await say({ role: 'assistant', content: 'Hi', reasoning_content: text, refusal: text, name: 'me' })
    assert.equal(thought.likelyInputTokens, plain.likelyInputTokens)
    assert.ok((await say({ role: 'assistant', content: text })).likelyInputTokens > plain.likelyInputTokens + 200)
    assert.equal((await chat({ chat_template_kwargs: { text } })).likelyInputTokens, (await chat({})).likelyInputTokens)
    assert.ok(
      (await chat({ tools: [{ ...tool, function: { name: 'f', description: text } }] })).likelyInputTokens > 200,
    )
  })
})
