import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { EngineClient, StreamSeen } from '../../src/operate/doctor/doctor-engine-client.ts'
import { questions, questionsFor, type QuestionName } from '../../src/operate/doctor/doctor-engine-questions.ts'
import type { ProbeAnswer } from '../../src/operate/doctor/doctor-engine-recognition.ts'
import type { EngineKind } from '../../src/catalog/model.ts'

const look = (json: unknown, status = 200): ProbeAnswer => ({
  status,
  headers: {},
  text: JSON.stringify(json) ?? '',
  json,
})
const refusal: ProbeAnswer = { status: 400, headers: {}, text: 'not\n  here', json: undefined }
const streamed = (changes: Partial<StreamSeen>): StreamSeen => ({
  status: 200,
  events: [],
  isDone: true,
  text: '',
  ...changes,
})

/** Asks one question of a server that gives these answers, in turn. */
async function asked(
  question: QuestionName,
  answers: readonly (ProbeAnswer | StreamSeen)[],
  kind: EngineKind = 'vllm',
) {
  const calls: [string, object][] = []
  const left = [...answers]
  const next = (path: string, body: object) => {
    calls.push([path, body])
    return left.shift() ?? assert.fail(`${path} was not expected`)
  }
  const client: EngineClient = {
    get: async () => undefined,
    post: async (path, body) => next(path, body) as ProbeAnswer,
    async stream(path, body, enough) {
      const seen = next(path, body) as StreamSeen
      if (!enough) return seen
      const taken = seen.events.findIndex((_, index) => enough(seen.events.slice(0, index + 1)))
      return { ...seen, events: taken < 0 ? seen.events : seen.events.slice(0, taken + 1) }
    },
  }
  const { state, detail } = await questions[question]({ client, kind, model: 'm' })
  return { said: `${state}: ${detail}`, calls }
}

const said = async (...given: Parameters<typeof asked>) => (await asked(...given)).said
const choices = (...list: readonly object[]) => look({ choices: list })

const hello = { model: 'm', messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 8, temperature: 0 }
const CHAT = '/chat/completions'

describe('the doctor’s questions to a server', () => {
  it('are about chats, vectors or both, depending on its kind', () => {
    const chats: readonly QuestionName[] = [
      'chat',
      'stream',
      'usage',
      'stop reason',
      'abort',
      'n',
      'logprobs',
      'tools',
      'tool stream',
      'reasoning',
      'json schema',
    ]
    const vectors = ['embeddings', 'rerank']
    const all: readonly EngineKind[] = ['vllm', 'openai', 'llamacpp', 'ollama', 'sglang']
    for (const kind of all) assert.deepEqual(questionsFor(kind), [...chats, ...vectors])
    for (const kind of ['tei', 'infinity', 'cohere', 'jina'] as const) assert.deepEqual(questionsFor(kind), vectors)
    for (const kind of ['sdcpp', 'speaches', 'whispercpp'] as const) assert.deepEqual(questionsFor(kind), [])
  })

  it('start with a short chat, and report how many tokens it counted', async () => {
    const usage = { prompt_tokens: 3, completion_tokens: 2 }
    const { said: answer, calls } = await asked('chat', [look({ choices: [{}], usage })])
    assert.equal(answer, 'yes: usage 3 + 2 tokens')
    assert.deepEqual(calls, [[CHAT, hello]])
    assert.equal(await said('chat', [look({ choices: [{}], usage: { prompt_tokens: 1 } })]), 'yes: usage 1 token')
    assert.equal(await said('chat', [look({ choices: [{}], usage: null })]), 'yes: no usage')
    assert.equal(await said('chat', [look({ choices: [{}], usage: 'much' })]), 'yes: no usage')
    assert.equal(await said('chat', [look({ choices: [] })]), 'no: status 200: {"choices":[]}')
    assert.equal(await said('chat', [look({ choices: 'one' })]), 'no: status 200: {"choices":"one"}')
    assert.equal(await said('chat', [refusal]), 'no: status 400: not here')
    const long = { ...refusal, text: 'x'.repeat(121) }
    assert.equal(await said('chat', [long]), `no: status 400: ${'x'.repeat(120)}`)
  })

  it('continue with a stream, whose last usage counts', async () => {
    const events = [
      { usage: { prompt_tokens: 1 } },
      { usage: { prompt_tokens: 3, completion_tokens: 9 } },
      { usage: null },
    ]
    const { said: answer, calls } = await asked('stream', [streamed({ events })])
    assert.equal(answer, 'yes: 3 events, usage 3 + 9 tokens')
    assert.deepEqual(calls, [[CHAT, { ...hello, stream_options: { include_usage: true } }]])
    assert.equal(
      await said('stream', [streamed({ events: [{}], isDone: false })]),
      'yes: 1 event, no usage, without [DONE]',
    )
    assert.equal(await said('stream', [streamed({ status: 500 })]), 'no: status 500 and no events')
    assert.equal(await said('stream', [streamed({ status: 400, text: 'no\nstreams' })]), 'no: status 400: no streams')
  })

  it('abort a long stream after a few tokens, and check whether the next call is answered', async () => {
    const events = [1, 2, 3, 4, 5, 6]
    const { said: answer, calls } = await asked('abort', [streamed({ events }), choices({})])
    assert.match(answer, /^yes: the next call was answered \d{1,4} ms after a caller left$/)
    assert.deepEqual(calls, [
      [
        CHAT,
        {
          model: 'm',
          messages: [{ role: 'user', content: 'Count from 1 to 1000 in words.' }],
          max_tokens: 300,
          temperature: 0,
          stream_options: { include_usage: true },
        },
      ],
      [CHAT, { ...hello, max_tokens: 1 }],
    ])
    assert.equal(await said('abort', [streamed({})]), 'no: there is no stream to leave')
    assert.equal(await said('abort', [streamed({ events }), refusal]), 'no: status 400: not here')
  })

  it('abort the stream after the fourth event', async () => {
    const seen: number[] = []
    const client: EngineClient = {
      get: async () => undefined,
      post: async () => choices({}),
      async stream(_path, _body, enough) {
        const events = [1, 2, 3, 4, 5]
        seen.push(...events.filter((count) => enough?.(events.slice(0, count))))
        return streamed({ events })
      },
    }
    await questions.abort({ client, kind: 'vllm', model: 'm' })
    assert.deepEqual(seen, [4, 5])
  })

  it('expect two choices for n: 2', async () => {
    const { said: answer, calls } = await asked('n', [choices({}, {})])
    assert.equal(answer, 'yes: two choices')
    assert.deepEqual(calls, [[CHAT, { ...hello, n: 2 }]])
    assert.equal(await said('n', [choices({})]), 'no: 1 choice for n: 2')
    assert.equal(await said('n', [refusal]), 'no: status 400: not here')
  })

  it('expect log probabilities of the tokens', async () => {
    const { said: answer, calls } = await asked('logprobs', [choices({ logprobs: { content: [{}, {}] } })])
    assert.equal(answer, 'yes: for 2 tokens')
    assert.deepEqual(calls, [[CHAT, { ...hello, max_tokens: 2, logprobs: true, top_logprobs: 2 }]])
    assert.equal(await said('logprobs', [choices({ logprobs: { content: [{}] } })]), 'yes: for 1 token')
    assert.equal(await said('logprobs', [choices({ logprobs: { content: [] } })]), 'no: none in the answer')
    assert.equal(await said('logprobs', [choices({ logprobs: { content: 'many' } })]), 'no: none in the answer')
    assert.equal(await said('logprobs', [choices({ logprobs: null })]), 'no: none in the answer')
    assert.equal(await said('logprobs', [choices({})]), 'no: none in the answer')
    assert.equal(await said('logprobs', [refusal]), 'no: status 400: not here')
  })

  it('expect the tool to be called by its name', async () => {
    const calling = (name: string, changes: object = {}, written = '{"city":"Paris"}') =>
      choices({
        finish_reason: 'tool_calls',
        message: { tool_calls: [{ function: { name, arguments: written } }] },
        ...changes,
      })
    const { said: answer, calls } = await asked('tools', [calling('get_weather')])
    assert.equal(answer, 'yes: the model called the tool')
    const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
    assert.deepEqual(calls, [
      [
        CHAT,
        {
          model: 'm',
          messages: [{ role: 'user', content: 'What is the weather in Paris? Use the tool.' }],
          max_tokens: 64,
          temperature: 0,
          tools: [{ type: 'function', function: { name: 'get_weather', description: 'Get the weather', parameters } }],
        },
      ],
    ])
    const ignored = 'no: accepted, but the model did not call the tool'
    const without = [{}, { message: {} }, { message: { tool_calls: [] } }, { message: { tool_calls: [{}] } }]
    for (const choice of without) assert.equal(await said('tools', [choices(choice)]), ignored)
    assert.equal(await said('tools', [calling('other')]), ignored)
    const written = { message: { content: '<tool_call>{"name": "get_weather"}</tool_call>' } }
    assert.equal(
      await said('tools', [choices(written)]),
      'no: the call is in the text of the answer: the server does not read it',
    )
    assert.equal(
      await said('tools', [calling('get_weather', { finish_reason: 'stop' })]),
      'no: finish_reason "stop" instead of tool_calls',
    )
    assert.equal(
      await said('tools', [calling('get_weather', {}, '{"city":')]),
      'no: the arguments of the call are not JSON for its schema',
    )
    assert.equal(await said('tools', [refusal]), 'no: status 400: not here')
  })

  it('expect the pieces of a streamed call to make up the call', async () => {
    const piece = (call: object) => ({ choices: [{ delta: { tool_calls: [{ index: 0, ...call }] } }] })
    const first = piece({ id: 'c', function: { name: 'get_weather', arguments: '' } })
    const rest = ['{"city"', ':"Paris"}'].map((part) => piece({ function: { arguments: part } }))
    const end = (reason: string | null) => ({ choices: [{ delta: {}, finish_reason: reason }] })
    const streaming = (...events: readonly object[]) => said('tool stream', [streamed({ events })])
    assert.equal(await streaming(first, ...rest, end('tool_calls'), { choices: [] }), 'yes: 3 pieces')
    assert.equal(await streaming(first, ...rest, end('stop')), 'no: finish_reason "stop" instead of tool_calls')
    assert.equal(await streaming(first, ...rest), 'no: finish_reason null instead of tool_calls')
    const second = piece({ index: 1, id: 'd', function: { name: 'get_weather', arguments: '{' } })
    assert.equal(await streaming(first, ...rest, second, end('length')), 'yes: 3 pieces')
    const lost = 'no: the pieces with index 0 do not make up the JSON of the arguments'
    assert.equal(await streaming(first, ...rest.slice(1), end('tool_calls')), lost)
    assert.equal(await streaming(first, ...rest, ...rest, end('tool_calls')), lost)
    const nameless = 'no: the first piece has no id or no name'
    assert.equal(await streaming(...rest, end('tool_calls')), nameless)
    assert.equal(await streaming(piece({ function: { name: 'get_weather' } }), end('tool_calls')), nameless)
    const elsewhere = piece({ index: 1, function: { arguments: '{"city":"Paris"}' } })
    assert.equal(await streaming(first, elsewhere, end('tool_calls')), lost)
    const text = { choices: [{ delta: { content: '{"name": "get_weather"}' } }] }
    assert.equal(
      await streaming(text, end('stop')),
      'no: the call is in the text of the answer: the server does not read it',
    )
    assert.equal(await streaming(end('stop')), 'no: accepted, but the model did not call the tool')
    assert.equal(await said('tool stream', [streamed({ status: 400, text: 'no tools' })]), 'no: status 400: no tools')
    assert.equal(await said('tool stream', [streamed({ status: 500 })]), 'no: status 500 and no events')
  })

  it('expect reasoning in a field of its own', async () => {
    const thinking = (message: object) => said('reasoning', [choices({ message })])
    assert.equal(await thinking({ content: 'Yes.', reasoning_content: 'Hm.' }), 'yes: in reasoning_content')
    assert.equal(await thinking({ content: null, reasoning: 'Hm.' }), 'yes: in reasoning')
    assert.equal(await thinking({ content: 'Yes.' }), 'yes: none, and no tags in the text')
    const misplaced = 'no: the reasoning is in the text of the answer, with its tags'
    assert.equal(await thinking({ content: '<think>Hm.' }), misplaced)
    assert.equal(await thinking({ content: 'Hm.</think>Yes.' }), misplaced)
    assert.equal(await said('reasoning', [refusal]), 'no: status 400: not here')
  })

  it('expect usage in answers and in streams', async () => {
    const counted = { usage: { prompt_tokens: 3, completion_tokens: 2 } }
    const reports = (answer: object, ...events: readonly object[]) =>
      said('usage', [look({ choices: [{}], ...answer }), streamed({ events })])
    assert.equal(await reports(counted, {}, counted), 'yes: in answers and in streams')
    assert.equal(await reports({}, counted), 'no: none in an answer')
    assert.equal(await reports(counted, { usage: null }), 'no: none in a stream with include_usage')
    assert.equal(await reports({}), 'no: none in an answer and in a stream with include_usage')
    assert.equal(await said('usage', [refusal]), 'no: status 400: not here')
  })

  it('expect the stop reason of an answer that was cut off', async () => {
    const stopped = (...reasons: readonly (string | null)[]) =>
      said('stop reason', [
        choices({ finish_reason: reasons[0] }),
        streamed({ events: [{ choices: [{ finish_reason: reasons[1] }] }, { choices: [] }] }),
      ])
    assert.equal(await stopped('length', 'length'), 'yes: length for an answer that max_tokens cut off')
    assert.equal(await stopped('stop'), 'no: finish_reason "stop" for an answer that max_tokens cut off')
    assert.equal(await stopped('length', 'stop'), 'no: finish_reason "stop" for a stream that max_tokens cut off')
    assert.equal(await stopped('length', null), 'no: finish_reason null for a stream that max_tokens cut off')
    assert.equal(await said('stop reason', [refusal]), 'no: status 400: not here')
  })

  it('expect an answer that follows the schema', async () => {
    const saying = (content?: unknown) => choices({ message: { content } })
    const { said: answer, calls } = await asked('json schema', [saying('{"city":"Paris"}')])
    assert.equal(answer, 'yes: the answer follows it')
    const schema = {
      type: 'object',
      properties: { city: { type: 'string', maxLength: 20 } },
      required: ['city'],
      additionalProperties: false,
    }
    assert.deepEqual(calls, [
      [
        CHAT,
        {
          model: 'm',
          messages: [{ role: 'user', content: 'Name the capital of France.' }],
          max_tokens: 64,
          temperature: 0,
          response_format: { type: 'json_schema', json_schema: { name: 'city', strict: true, schema } },
        },
      ],
    ])
    for (const content of ['Paris', '{"city":"Paris","more":1}', '{}', undefined]) {
      assert.equal(await said('json schema', [saying(content)]), 'no: the answer does not follow it')
    }
    assert.equal(await said('json schema', [choices({})]), 'no: the answer does not follow it')
    assert.equal(await said('json schema', [refusal]), 'no: status 400: not here')
  })

  it('expect a vector for a text, in the format of its kind', async () => {
    const usage = { prompt_tokens: 5 }
    const { said: answer, calls } = await asked('embeddings', [look({ data: [{ embedding: [1, 2, 3] }], usage })])
    assert.equal(answer, 'yes: 3 numbers, usage 5 tokens')
    assert.deepEqual(calls, [['/embeddings', { model: 'm', input: ['A weir holds water.'] }]])
    const tei = await asked('embeddings', [look([[1, 2]])], 'tei')
    assert.equal(tei.said, 'yes: 2 numbers, usage in a header')
    assert.deepEqual(tei.calls, [['//embed', { inputs: ['A weir holds water.'] }]])
    for (const json of [{}, { data: [] }, { data: [{}] }, [[1, 2]]]) {
      assert.equal(await said('embeddings', [look(json)]), `no: status 200: ${JSON.stringify(json)}`)
    }
    assert.equal(await said('embeddings', [look([])], 'tei'), 'no: status 200: []')
    assert.equal(await said('embeddings', [refusal], 'tei'), 'no: status 400: not here')
    assert.equal(await said('embeddings', [refusal]), 'no: status 400: not here')
  })

  it('expect scores for two documents, in the format of its kind', async () => {
    const documents = ['A weir is a barrier across a river.', 'Bread is baked.']
    const results = [{ relevance_score: 0.98765, score: 1 }, { score: 0.1 }]
    const { said: answer, calls } = await asked('rerank', [look({ results })])
    assert.equal(answer, 'yes: scores 0.988 and 0.100')
    assert.deepEqual(calls, [['/rerank', { model: 'm', query: 'What is a weir?', documents }]])
    assert.equal(await said('rerank', [look({ data: [{ score: 0.5 }] })]), 'yes: scores 0.500')
    const tei = await asked('rerank', [look(results)], 'tei')
    assert.equal(tei.said, 'yes: scores 0.988 and 0.100')
    assert.deepEqual(tei.calls, [['//rerank', { query: 'What is a weir?', texts: documents, raw_scores: true }]])
    assert.equal(await said('rerank', [look(results)]), `no: status 200: ${JSON.stringify(results)}`)
    assert.equal(await said('rerank', [look({ results: [] })]), 'no: status 200: {"results":[]}')
    assert.equal(await said('rerank', [refusal]), 'no: status 400: not here')
    assert.equal(await said('rerank', [refusal], 'tei'), 'no: status 400: not here')
  })
})
