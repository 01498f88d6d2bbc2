import { Type, type Static, type TSchema } from 'typebox'
import { EXAMPLE_MODEL, exampleOf } from '../../server/common-schema.ts'
import {
  exampleCreated,
  generationParameters as shared,
  idText,
  metadata,
  modelParameter,
  nameText,
  packedText,
  serviceTier,
  wordText,
} from '../request/shared-schema.ts'

/** The wire shapes of /responses. Fields that are not listed are ignored. */

const part = Type.Object({
  type: Type.String({
    maxLength: 256,
    description: 'input_text, output_text, input_image, refusal or reasoning_text.',
  }),
  text: Type.Optional(Type.String()),
  refusal: Type.Optional(Type.String()),
  image_url: Type.Optional(Type.String()),
  detail: Type.Optional(Type.Enum(['auto', 'low', 'high', 'original'])),
})

const content = Type.Union([Type.String(), Type.Array(part, { maxItems: 1000 })])

const item = Type.Object({
  type: Type.Optional(
    Type.String({
      maxLength: 256,
      description:
        'message, reasoning, function_call, function_call_output, custom_tool_call or custom_tool_call_output. Others are left out of the prompt.',
    }),
  ),
  role: Type.Optional(Type.Enum(['system', 'developer', 'user', 'assistant'])),
  content: Type.Optional(content),
  call_id: Type.Optional(idText),
  name: Type.Optional(nameText),
  namespace: Type.Optional(nameText),
  arguments: Type.Optional(Type.String()),
  input: Type.Optional(Type.String()),
  output: Type.Optional(content),
  encrypted_content: Type.Optional(packedText),
})

const toolFields = {
  type: Type.String({
    maxLength: 256,
    description: 'function, custom or namespace. Tools of other types are left out.',
  }),
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  description: Type.Optional(Type.String()),
  parameters: Type.Optional(Type.Object({})),
  strict: Type.Optional(Type.Boolean()),
  format: Type.Optional(
    Type.Object({
      type: wordText,
      syntax: Type.Optional(wordText),
      definition: Type.Optional(Type.String()),
    }),
  ),
}
const innerTool = Type.Object(toolFields)
const tool = Type.Object({ ...toolFields, tools: Type.Optional(Type.Array(innerTool, { maxItems: 128 })) })

const effort = Type.Enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])

export const responsesRequestSchema = Type.Object({
  model: modelParameter,
  input: Type.Union([Type.String(), Type.Array(item, { maxItems: 10_000 })]),
  instructions: Type.Optional(Type.String()),
  stream: shared.stream,
  max_output_tokens: Type.Optional(Type.Integer({ minimum: 1 })),
  temperature: shared.temperature,
  top_p: shared.top_p,
  tools: Type.Optional(Type.Array(tool, { maxItems: 128 })),
  tool_choice: Type.Optional(
    Type.Union([
      Type.Enum(['none', 'auto', 'required']),
      Type.Object({
        type: wordText,
        name: Type.Optional(nameText),
        namespace: Type.Optional(nameText),
        mode: Type.Optional(wordText),
        tools: Type.Optional(Type.Array(Type.Object({ name: Type.Optional(nameText) }), { maxItems: 128 })),
      }),
    ]),
  ),
  parallel_tool_calls: Type.Optional(Type.Boolean()),
  text: Type.Optional(
    Type.Object({
      format: Type.Optional(
        Type.Union([
          Type.Object({ type: Type.Literal('text') }),
          Type.Object({ type: Type.Literal('json_object') }),
          Type.Object({
            type: Type.Literal('json_schema'),
            name: Type.String({ minLength: 1, maxLength: 64 }),
            description: Type.Optional(Type.String()),
            schema: Type.Object({}),
            strict: Type.Optional(Type.Boolean()),
          }),
        ]),
      ),
      verbosity: Type.Optional(wordText),
    }),
  ),
  reasoning: Type.Optional(Type.Object({ effort: Type.Optional(effort), summary: Type.Optional(wordText) })),
  include: Type.Optional(Type.Array(wordText, { maxItems: 100 })),
  store: Type.Optional(Type.Boolean({ description: 'Ignored: nothing is stored.' })),
  previous_response_id: Type.Optional(
    Type.String({ maxLength: 1024, description: 'Refused: send the whole conversation as input.' }),
  ),
  conversation: Type.Optional(Type.Union([idText, Type.Object({})], { description: 'Refused: nothing is stored.' })),
  background: Type.Optional(Type.Boolean({ description: 'true is refused.' })),
  prompt: Type.Optional(Type.Object({}, { description: 'Refused: send the text of the prompt.' })),
  metadata: Type.Optional(metadata),
  truncation: Type.Optional(Type.Enum(['auto', 'disabled'])),
  user: shared.user,
  service_tier: serviceTier,
  safety_identifier: Type.Optional(idText),
  prompt_cache_key: Type.Optional(idText),
})

export type ResponsesRequest = Static<typeof responsesRequestSchema>
export type ResponsesItem = Static<typeof item>
export type ResponsesPart = Static<typeof part>
export type ResponsesTool = Static<typeof tool>

const nullable = (schema: TSchema): TSchema => Type.Union([schema, Type.Null()])
const status = Type.Enum(['in_progress', 'completed', 'incomplete'])
const called = { call_id: Type.String(), name: Type.String(), namespace: Type.Optional(Type.String()) }

const outputItem = Type.Union([
  Type.Object({
    id: Type.String(),
    type: Type.Literal('message'),
    role: Type.Literal('assistant'),
    status,
    content: Type.Array(
      Type.Object({
        type: Type.Literal('output_text'),
        text: Type.String(),
        annotations: Type.Array(Type.Object({})),
        logprobs: Type.Array(Type.Object({})),
      }),
    ),
  }),
  Type.Object({
    id: Type.String(),
    type: Type.Literal('reasoning'),
    status,
    summary: Type.Array(Type.Object({})),
    content: Type.Array(Type.Object({ type: Type.Literal('reasoning_text'), text: Type.String() })),
    encrypted_content: Type.Optional(Type.String()),
  }),
  Type.Object({
    id: Type.String(),
    type: Type.Literal('function_call'),
    status,
    ...called,
    arguments: Type.String(),
  }),
  Type.Object({ id: Type.String(), type: Type.Literal('custom_tool_call'), status, ...called, input: Type.String() }),
])

const usage = Type.Object({
  input_tokens: Type.Integer({ example: 27 }),
  input_tokens_details: Type.Object({ cached_tokens: Type.Integer(), cache_write_tokens: Type.Integer() }),
  output_tokens: Type.Integer({ example: 14 }),
  output_tokens_details: Type.Object({ reasoning_tokens: Type.Integer() }),
  total_tokens: Type.Integer({ example: 41 }),
})

const text = 'A weir is a low dam that controls the flow of a river.'
const messageExample = {
  id: 'msg_01k3zq8v6t_0',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
}

export const responsesResponseSchema = Type.Object({
  id: Type.String({ example: 'resp_01k3zq8v6t' }),
  object: Type.Literal('response'),
  created_at: Type.Integer({ description: 'Unix seconds.', example: exampleCreated }),
  status: Type.Enum(['completed', 'incomplete', 'failed', 'in_progress']),
  model: Type.String({ example: EXAMPLE_MODEL }),
  output: Type.Array(outputItem, { example: [messageExample] }),
  error: nullable(Type.Object({ code: Type.String(), message: Type.String() })),
  incomplete_details: nullable(Type.Object({ reason: Type.String() })),
  usage: { ...nullable(usage), example: exampleOf(usage) },
  background: Type.Boolean(),
  instructions: Type.Null({ description: 'The prompt is not repeated.' }),
  max_output_tokens: nullable(Type.Integer({ example: 100 })),
  max_tool_calls: Type.Null(),
  metadata: Type.Object({}, { additionalProperties: Type.String() }),
  parallel_tool_calls: Type.Boolean({ example: true }),
  previous_response_id: Type.Null(),
  reasoning: Type.Object({ effort: nullable(Type.String()), summary: Type.Null() }),
  service_tier: Type.String({ example: 'default' }),
  store: Type.Literal(false),
  temperature: nullable(Type.Number()),
  text: Type.Object({ format: Type.Object({ type: Type.String({ example: 'text' }) }) }),
  tool_choice: Type.String({ example: 'auto' }),
  tools: Type.Array(Type.Object({}), { description: 'Empty: the tools are not repeated.', example: [] }),
  top_logprobs: Type.Integer(),
  top_p: nullable(Type.Number()),
  truncation: Type.String({ example: 'disabled' }),
})

const answer = exampleOf(responsesResponseSchema) as object

export const responsesExample = {
  request: {
    model: EXAMPLE_MODEL,
    instructions: 'You answer in one sentence.',
    input: 'What is a weir?',
    max_output_tokens: 100,
  },
  /** The first and the last events, and one from in between. */
  stream: [
    {
      type: 'response.created',
      sequence_number: 0,
      response: { ...answer, status: 'in_progress', output: [], usage: null },
    },
    {
      type: 'response.output_text.delta',
      sequence_number: 4,
      item_id: messageExample.id,
      output_index: 0,
      content_index: 0,
      delta: 'A weir',
      logprobs: [],
    },
    { type: 'response.completed', sequence_number: 20, response: answer },
  ]
    .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join(''),
}
