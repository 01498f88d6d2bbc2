import { EXAMPLE_MODEL } from '../../server/common-schema.ts'
import { Type, type Static } from 'typebox'
import {
  exampleCreated,
  generationParameters as shared,
  generationUsageSchema,
  idText,
  metadata,
  modelParameter,
  nameText,
  serviceTier,
} from '../request/shared-schema.ts'

/** The wire shapes of /chat/completions. Validation, types and the OpenAPI document all come from here. */

const textPart = Type.Object({ type: Type.Literal('text'), text: Type.String() })

const imagePart = Type.Object({
  type: Type.Literal('image_url'),
  image_url: Type.Union([
    Type.Object({
      url: Type.String({ minLength: 1 }),
      detail: Type.Optional(Type.Enum(['auto', 'low', 'high', 'original'])),
    }),
    Type.String({ minLength: 1 }),
  ]),
})

const toolCall = Type.Object({
  id: idText,
  type: Type.Literal('function'),
  function: Type.Object({ name: nameText, arguments: Type.String() }),
})

const message = Type.Object({
  role: Type.Enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: Type.Optional(
    Type.Union([Type.String(), Type.Array(Type.Union([textPart, imagePart]), { minItems: 1, maxItems: 1000 })]),
  ),
  name: Type.Optional(nameText),
  tool_calls: Type.Optional(Type.Array(toolCall, { maxItems: 128 })),
  tool_call_id: Type.Optional(idText),
  refusal: Type.Optional(Type.String()),
  reasoning_content: Type.Optional(Type.String()),
})

const functionName = Type.String({
  maxLength: 64,
  pattern: '^[a-zA-Z0-9_.-]{1,64}$',
  expected: 'a name of 1 to 64 letters, digits, "_", "." and "-"',
})

const tool = Type.Object({
  type: Type.Literal('function'),
  function: Type.Object({
    name: functionName,
    description: Type.Optional(Type.String()),
    parameters: Type.Optional(Type.Object({})),
    strict: Type.Optional(Type.Boolean()),
  }),
})

const tokenLimit = Type.Optional(Type.Integer({ minimum: 1 }))

export const chatRequestSchema = Type.Object({
  model: modelParameter,
  messages: Type.Array(message, { minItems: 1, maxItems: 10_000 }),
  stream: shared.stream,
  stream_options: shared.stream_options,
  max_tokens: tokenLimit,
  max_completion_tokens: tokenLimit,
  temperature: shared.temperature,
  top_p: shared.top_p,
  frequency_penalty: shared.frequency_penalty,
  presence_penalty: shared.presence_penalty,
  logprobs: Type.Optional(Type.Boolean()),
  top_logprobs: Type.Optional(Type.Integer({ minimum: 0, maximum: 20 })),
  seed: shared.seed,
  n: shared.n,
  stop: shared.stop,
  tools: Type.Optional(Type.Array(tool, { maxItems: 128 })),
  tool_choice: Type.Optional(
    Type.Union([
      Type.Enum(['none', 'auto', 'required']),
      Type.Object({ type: Type.Literal('function'), function: Type.Object({ name: nameText }) }),
    ]),
  ),
  parallel_tool_calls: Type.Optional(Type.Boolean()),
  response_format: Type.Optional(
    Type.Union([
      Type.Object({ type: Type.Literal('text') }),
      Type.Object({ type: Type.Literal('json_object') }),
      Type.Object({
        type: Type.Literal('json_schema'),
        json_schema: Type.Object({
          name: functionName,
          description: Type.Optional(Type.String()),
          schema: Type.Optional(Type.Object({})),
          strict: Type.Optional(Type.Boolean()),
        }),
      }),
    ]),
  ),
  logit_bias: shared.logit_bias,
  top_k: shared.top_k,
  min_p: shared.min_p,
  repetition_penalty: shared.repetition_penalty,
  reasoning_effort: Type.Optional(Type.Enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])),
  chat_template_kwargs: Type.Optional(Type.Object({})),
  user: shared.user,
  metadata: Type.Optional(metadata),
  store: Type.Optional(Type.Boolean()),
  service_tier: serviceTier,
  safety_identifier: Type.Optional(idText),
  prompt_cache_key: Type.Optional(idText),
})

export type ChatRequest = Static<typeof chatRequestSchema>
export type ChatMessage = Static<typeof message>
export type ImagePart = Static<typeof imagePart>

export const chatResponseSchema = Type.Object({
  id: Type.String({ example: 'chatcmpl-01k3zq8v6t' }),
  object: Type.Literal('chat.completion'),
  created: Type.Integer({ description: 'Unix seconds.', example: exampleCreated }),
  model: Type.String({ example: EXAMPLE_MODEL }),
  choices: Type.Array(
    Type.Object({
      index: Type.Integer(),
      message: Type.Object({
        role: Type.Literal('assistant'),
        content: Type.Union([
          Type.String({ example: 'A weir is a low dam that controls the flow of a river.' }),
          Type.Null(),
        ]),
        refusal: Type.Union([Type.String(), Type.Null()]),
        reasoning_content: Type.Optional(Type.String()),
        tool_calls: Type.Optional(
          Type.Array(
            Type.Object({
              id: Type.String(),
              type: Type.Literal('function'),
              function: Type.Object({ name: Type.String(), arguments: Type.String() }),
            }),
          ),
        ),
      }),
      logprobs: Type.Union([Type.Object({}), Type.Null()]),
      finish_reason: Type.Enum(['stop', 'length', 'tool_calls', 'content_filter']),
    }),
  ),
  service_tier: Type.Optional(Type.Enum(['flex', 'batch'], { description: 'Left out if it is the default tier.' })),
  usage: generationUsageSchema(27, 14),
})

export const chatExample = {
  request: {
    model: EXAMPLE_MODEL,
    messages: [
      { role: 'system', content: 'You answer in one sentence.' },
      { role: 'user', content: 'What is a weir?' },
    ],
    max_tokens: 100,
  },
  stream: `data: {"id":"chatcmpl-01k3zq8v6t","object":"chat.completion.chunk","created":1795000000,"model":"qwen/qwen2.5-coder-0.5b-instruct","choices":[{"index":0,"delta":{"role":"assistant","content":"A weir"},"logprobs":null,"finish_reason":null}]}

data: {"id":"chatcmpl-01k3zq8v6t","object":"chat.completion.chunk","created":1795000000,"model":"qwen/qwen2.5-coder-0.5b-instruct","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}

data: [DONE]

`,
}
