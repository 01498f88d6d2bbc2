import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseCatalog } from '../../src/catalog/file.ts'
import { engineKinds, type EngineKind } from '../../src/catalog/model.ts'
import type { EngineRequest } from '../../src/engines/job.ts'
import { dialects } from '../../src/engines/dialects/index.ts'
import {
  engineParameters,
  parameterSupport,
  supportFor,
  type EngineOperation,
  type SupportByName,
} from '../../src/engines/dialects/parameter-support.ts'
import { audioRequestSchema } from '../../src/inference/audio/schema.ts'
import { chatRequestSchema } from '../../src/inference/chat/schema.ts'
import { completionsRequestSchema } from '../../src/inference/completions/schema.ts'
import { embeddingsRequestSchema } from '../../src/inference/embeddings/schema.ts'
import { imagesRequestSchema } from '../../src/inference/images/schema.ts'
import { forwardedParameters } from '../../src/inference/request/parameters.ts'
import { rerankingRequestSchema, rerankRequestSchema } from '../../src/inference/rerank/schema.ts'
import { madeJob, parsedBody } from '../support/made-job.ts'

/** Every parameter of every endpoint reaches every kind of engine, or is refused. */

const operations = Object.keys(engineParameters) as EngineOperation[]
const every = [...new Set(operations.flatMap((operation) => [...engineParameters[operation]] as string[]))]

/** What Weir does itself, whatever the engine is. */
const weirsOwn = [
  'model',
  'messages',
  'prompt',
  'input',
  'query',
  'documents',
  'passages',
  'file',
  'max_tokens',
  'max_completion_tokens',
  'stream',
  'stream_options',
  'encoding_format',
  'top_n',
  'return_documents',
  'truncate',
  'size',
  'user',
  'metadata',
  'store',
  'service_tier',
  'safety_identifier',
  'prompt_cache_key',
]

const schemas: Readonly<Record<EngineOperation, readonly object[]>> = {
  chat: [chatRequestSchema.properties],
  completions: [completionsRequestSchema.properties],
  embeddings: [embeddingsRequestSchema.properties],
  ranking: [rerankRequestSchema.properties, rerankingRequestSchema.properties],
  images: [imagesRequestSchema.properties],
  speech: [audioRequestSchema.properties],
}

describe('the table of parameters', () => {
  for (const operation of operations) {
    it(`has every parameter of ${operation} that Weir does not handle itself`, () => {
      // Of images, Weir counts them and asks for base64. The prompt of a recording is a parameter.
      const own = new Set([...weirsOwn, ...(operation === 'images' ? ['n', 'response_format'] : [])])
      if (operation === 'speech') own.delete('prompt')
      const known = schemas[operation].flatMap((properties) => Object.keys(properties)).filter((name) => !own.has(name))
      assert.deepEqual([...engineParameters[operation]].toSorted(), [...new Set(known)].toSorted())
    })
  }

  it('has the operations of every kind, and no others', () => {
    for (const kind of engineKinds) {
      const offered = operations.filter((operation) => dialects[kind][operation])
      assert.deepEqual(Object.keys(parameterSupport[kind]).toSorted(), offered.toSorted(), kind)
    }
  })
})

const models = parseCatalog(
  JSON.stringify({
    models: engineKinds.map((kind) => ({
      id: `test/${kind}`,
      categories: ['llm', 'embedding', 'reranker', 'image', 'audio'],
      rerank_schema: 'documents',
      context_length: 8192,
      supported_parameters: every,
      serverless: { engine: { kind, ...(kind === 'embedded' ? {} : { urls: ['http://127.0.0.1:1'] }) } },
    })),
  }),
  'catalog.yaml',
  () => undefined,
)

const tool = { type: 'function', function: { name: 'weather' } }

/** A value that is not the default, and whatever it is only allowed with. */
const samples: Readonly<Record<string, object>> = {
  temperature: { temperature: 0.625 },
  top_p: { top_p: 0.875 },
  top_k: { top_k: 37 },
  min_p: { min_p: 0.125 },
  frequency_penalty: { frequency_penalty: 0.375 },
  presence_penalty: { presence_penalty: 0.25 },
  repetition_penalty: { repetition_penalty: 1.1875 },
  logit_bias: { logit_bias: { 11: 7 } },
  seed: { seed: 4321 },
  stop: { stop: ['STOP'] },
  n: { n: 3 },
  best_of: { best_of: 3 },
  logprobs: { logprobs: true },
  top_logprobs: { top_logprobs: 4, logprobs: true },
  response_format: { response_format: { type: 'json_object' } },
  tools: { tools: [tool] },
  tool_choice: { tool_choice: 'required', tools: [tool] },
  parallel_tool_calls: { parallel_tool_calls: false, tools: [tool] },
  reasoning_effort: { reasoning_effort: 'low' },
  chat_template_kwargs: { chat_template_kwargs: { colour: 'blue' } },
  echo: { echo: true },
  suffix: { suffix: 'SUFFIX' },
  dimensions: { dimensions: 64 },
  max_tokens_per_doc: { max_tokens_per_doc: 77 },
  quality: { quality: 'hd' },
  style: { style: 'vivid' },
  background: { background: 'opaque' },
  output_format: { output_format: 'webp' },
  negative_prompt: { negative_prompt: 'NEGATIVE' },
  steps: { steps: 31 },
}

/** The least request of each operation, and its endpoint. */
const requests: Readonly<Partial<Record<EngineOperation, readonly [body: object, path: string]>>> = {
  chat: [{ messages: [{ role: 'user', content: 'Hi' }] }, '/chat/completions'],
  completions: [{ prompt: 'Hi' }, '/completions'],
  embeddings: [{ input: 'Hi' }, '/embeddings'],
  ranking: [{ query: 'Hi', documents: ['Hello'] }, '/rerank'],
  images: [{ prompt: 'Hi' }, '/images/generations'],
}

async function textOf(body: EngineRequest['body']): Promise<string> {
  if (Buffer.isBuffer(body)) return body.toString()
  const pieces: Buffer[] = []
  for await (const piece of body.open()) pieces.push(piece)
  return Buffer.concat(pieces).toString()
}

async function sentTo(kind: EngineKind, operation: EngineOperation, sample: object): Promise<readonly string[]> {
  const model = models.find(({ id }) => id === `test/${kind}`)!
  const [body, path] = requests[operation]!
  const whole = parsedBody(JSON.stringify({ model: model.id, ...body, ...sample }))
  const { calls } = await madeJob(path, whole, model, model.serverless!)
  return Promise.all(calls.map((call) => textOf(call.body)))
}

for (const kind of engineKinds) {
  describe(`an engine of kind ${kind}`, () => {
    for (const operation of operations.filter((it) => it in requests && dialects[kind][it])) {
      for (const [name, support] of Object.entries(supportFor(kind, operation))) {
        const sample = operation === 'completions' && name === 'logprobs' ? { logprobs: 2 } : samples[name]!
        const given = (sample as Readonly<Record<string, unknown>>)[name]

        if (support === 'refused') {
          it(`does not accept ${name} for ${operation}: it is refused`, async () => {
            await assert.rejects(sentTo(kind, operation, sample), { code: 'unsupported_parameter', param: name })
          })
        } else if (support === 'weir') {
          it(`never receives ${name} for ${operation}: Weir handles it`, async () => {
            for (const text of await sentTo(kind, operation, sample)) assert.ok(!text.includes(`"${name}"`), text)
          })
        } else if (support === 'taken') {
          it(`accepts ${name} for ${operation}`, async () => {
            for (const text of await sentTo(kind, operation, sample)) {
              // Some image servers read their arguments from the prompt.
              const seen = (JSON.parse(text) as Readonly<Record<string, unknown>>)[name]
              if (operation !== 'images') assert.deepEqual(seen, given)
              assert.ok(
                text.includes(typeof given === 'object' ? name : JSON.stringify(given).replaceAll('"', '')),
                text,
              )
            }
          })
        } else {
          it(`accepts ${name} for ${operation} as ${support.as}`, async () => {
            for (const text of await sentTo(kind, operation, sample)) {
              const seen = JSON.parse(text) as Readonly<Record<string, unknown>>
              const expected: unknown = support.value ? support.value(given, { ...sample }) : given
              assert.deepEqual(seen[support.as], expected)
              if (support.as !== name) assert.ok(!(name in seen), text)
            }
          })
        }
      }
    }
  })
}

describe('what was seen in the sources and answers of servers', () => {
  it('is in the table: names', () => {
    for (const kind of ['llamacpp', 'llamacpp_python', 'localai'] as const) {
      for (const operation of ['chat', 'completions'] as const) {
        assert.deepEqual(supportFor(kind, operation)['repetition_penalty'], { as: 'repeat_penalty' })
      }
    }
    assert.deepEqual(supportFor('localai', 'images')['steps'], { as: 'step' })
  })

  it('is in the table: what is ignored', () => {
    const ignored: Readonly<Partial<Record<EngineKind, readonly string[]>>> = {
      vllm: ['best_of', 'suffix'],
      sglang: ['best_of', 'suffix'],
      llamacpp: ['best_of', 'echo', 'suffix'],
      llamacpp_python: ['best_of'],
      ollama: ['top_k', 'min_p', 'repetition_penalty', 'logit_bias', 'best_of', 'echo'],
      localai: ['best_of', 'suffix'],
    }
    for (const [kind, names] of Object.entries(ignored)) {
      const support = supportFor(kind as EngineKind, 'completions')
      assert.deepEqual(
        Object.keys(support).filter((name) => support[name] === 'refused'),
        names,
        kind,
      )
    }
    for (const kind of ['llamacpp', 'llamacpp_python', 'localai'] as const) {
      assert.equal(supportFor(kind, 'embeddings')['dimensions'], 'refused', kind)
    }
  })
})

describe('a translated parameter', () => {
  const send = (kind: EngineKind, request: Readonly<Record<string, unknown>>) => {
    const support: SupportByName = supportFor(kind, 'chat')
    return forwardedParameters(request, new Set(Object.keys(request)), support)
  }

  it('keeps the caller’s arguments for the template', () => {
    const { keeps, translated } = send('llamacpp', {
      reasoning_effort: 'none',
      chat_template_kwargs: { colour: 'blue', reasoning_effort: 'low' },
    })
    const merged = { reasoning_effort: 'low', enable_thinking: false, colour: 'blue' }
    assert.deepEqual(translated, { chat_template_kwargs: merged })
    assert.ok(!keeps('chat_template_kwargs'), 'the field is sent once')
  })

  it('turns top_k off with 0 if the engine does not accept -1', () => {
    assert.deepEqual(send('llamacpp_python', { top_k: -1 }).translated, { top_k: 0 })
    assert.deepEqual(send('llamacpp_python', { top_k: 40 }).translated, { top_k: 40 })
  })

  it('passes a schema in the form that the server reads', () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } }
    const format = { type: 'json_schema', json_schema: { name: 'a', schema } }
    assert.deepEqual(send('llamacpp_python', { response_format: format }).translated, {
      response_format: { type: 'json_object', schema },
    })
    const object = { response_format: { type: 'json_object' } }
    assert.deepEqual(send('llamacpp_python', object).translated, object)
  })
})
