import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { everyAdminRoute, everyPublicRoute } from '../support/openapi.ts'
import type { Schema } from '../support/schema-samples.ts'

/** Where a text is part of the prompt. The size of the body and the context of the model limit it. */
const promptTexts: Readonly<Record<string, readonly string[]>> = {
  '/chat/completions': [
    'messages[].content',
    'messages[].content[].text',
    'messages[].content[].image_url',
    'messages[].content[].image_url.url',
    'messages[].tool_calls[].function.arguments',
    'messages[].refusal',
    'messages[].reasoning_content',
    'tools[].function.description',
    'response_format.json_schema.description',
  ],
  '/responses': [
    'input',
    ...['content', 'output'].flatMap((field) =>
      ['', '[].text', '[].refusal', '[].image_url'].map((inside) => `input[].${field}${inside}`),
    ),
    'input[].arguments',
    'input[].input',
    'instructions',
    'tools[].description',
    'tools[].format.definition',
    'tools[].tools[].description',
    'tools[].tools[].format.definition',
    'text.format.description',
  ],
  '/messages': messagesTexts(),
  '/messages/count_tokens': messagesTexts(),
  '/completions': ['prompt', 'prompt[]', 'suffix'],
  '/embeddings': ['input', 'input[]'],
  '/rerank': ['query', 'documents[]', 'documents[].text'],
  '/reranking': ['query.text', 'passages[].text'],
}

function messagesTexts(): readonly string[] {
  const source = ['source.data', 'source.url', 'source.content']
  const block = ['text', ...source, 'content', 'content[].text', ...source.map((it) => `content[].${it}`), 'thinking']
  return [
    'messages[].content',
    'system',
    ...['messages[].content[]', 'system[]'].flatMap((place) => block.map((it) => `${place}.${it}`)),
    'tools[].description',
  ]
}

/** Every schema in a schema, with its place. */
function inside(schema: Schema, place = ''): readonly (readonly [place: string, schema: Schema])[] {
  const { anyOf = [], properties = {}, items, additionalProperties: others } = schema
  return [
    [place, schema],
    ...anyOf.flatMap((it) => inside(it, place)),
    ...Object.entries(properties).flatMap(([name, it]) => inside(it, place === '' ? name : `${place}.${name}`)),
    ...(items ? inside(items, `${place}[]`) : []),
    ...(typeof others === 'object' ? inside(others, `${place}.*`) : []),
  ]
}

const bodies = [...everyPublicRoute(), ...everyAdminRoute()].flatMap(({ method, path, operation }) =>
  operation?.request ? [{ name: `${method} ${path}`, path, schema: operation.request.schema }] : [],
)

describe('the body of a request', () => {
  assert.ok(bodies.length > 20)
  for (const { name, path, schema } of bodies) {
    it(`has a limit on every text and list that is not part of the prompt: ${name}`, () => {
      const allowed = new Set(promptTexts[path.replace(/^(\/api)?\/v1/, '')])
      const unlimited = inside(schema).filter(
        ([place, { type, const: constant, maxLength, maxItems, format }]) =>
          (type === 'string' &&
            constant === undefined &&
            maxLength === undefined &&
            format !== 'binary' &&
            !allowed.has(place)) ||
          (type === 'array' && maxItems === undefined),
      )
      assert.deepEqual(
        unlimited.map(([place]) => place),
        [],
      )
    })
  }

  it('has every text that is listed here as part of the prompt', () => {
    for (const [path, places] of Object.entries(promptTexts)) {
      const { schema } = bodies.find((it) => it.path === `/api/v1${path}`) ?? assert.fail(path)
      const found = inside(schema)
      for (const wanted of places) {
        const texts = found.filter(([place, { type }]) => place === wanted && type === 'string')
        assert.ok(texts.length > 0, `${path} has no text at ${wanted}`)
      }
    }
  })
})
