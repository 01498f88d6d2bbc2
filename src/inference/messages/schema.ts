import { EXAMPLE_MODEL } from '../../server/common-schema.ts'
import { Type, type Static } from 'typebox'
import {
  generationParameters as shared,
  idText,
  modelParameter,
  nameText,
  packedText,
  stopTexts,
  wordText,
} from '../request/shared-schema.ts'

/** The wire shapes of /messages. Fields that are not listed, such as cache_control, are ignored. */

const source = Type.Object({
  type: wordText,
  media_type: Type.Optional(wordText),
  data: Type.Optional(Type.String()),
  url: Type.Optional(Type.String()),
  content: Type.Optional(Type.Union([Type.String(), Type.Array(Type.Object({}), { maxItems: 1000 })])),
})

/** The allowed blocks of a tool's result. */
const resultBlock = Type.Object({
  type: wordText,
  text: Type.Optional(Type.String()),
  source: Type.Optional(source),
})

const block = Type.Object({
  type: Type.String({
    maxLength: 256,
    description: 'text, image, document, tool_use, tool_result or thinking. Others are left out of the prompt.',
  }),
  text: Type.Optional(Type.String()),
  source: Type.Optional(source),
  id: Type.Optional(idText),
  name: Type.Optional(nameText),
  input: Type.Optional(Type.Object({})),
  tool_use_id: Type.Optional(idText),
  content: Type.Optional(Type.Union([Type.String(), Type.Array(resultBlock, { maxItems: 1000 })])),
  is_error: Type.Optional(Type.Boolean()),
  thinking: Type.Optional(Type.String()),
  signature: Type.Optional(packedText),
})

const message = Type.Object({
  role: Type.Enum(['user', 'assistant', 'system']),
  content: Type.Union([Type.String(), Type.Array(block, { maxItems: 1000 })]),
})

const tool = Type.Object({
  type: Type.Optional(
    Type.String({ maxLength: 256, description: 'custom, or absent. Tools of other types are left out.' }),
  ),
  name: Type.String({ minLength: 1, maxLength: 256 }),
  description: Type.Optional(Type.String()),
  input_schema: Type.Optional(Type.Object({})),
  strict: Type.Optional(Type.Boolean()),
})

const outputFormat = Type.Object({ type: Type.Literal('json_schema'), schema: Type.Object({}) })

/** The fields that make up the prompt. */
const prompt = {
  model: modelParameter,
  messages: Type.Array(message, { minItems: 1, maxItems: 10_000 }),
  system: Type.Optional(Type.Union([Type.String(), Type.Array(block, { maxItems: 1000 })])),
  tools: Type.Optional(Type.Array(tool, { maxItems: 128 })),
  tool_choice: Type.Optional(
    Type.Object({
      type: Type.Enum(['auto', 'any', 'tool', 'none']),
      name: Type.Optional(nameText),
      disable_parallel_tool_use: Type.Optional(Type.Boolean()),
    }),
  ),
  thinking: Type.Optional(
    Type.Object({
      type: Type.String({
        maxLength: 256,
        description: 'enabled or adaptive: show the reasoning of models that have one.',
      }),
      display: Type.Optional(wordText),
    }),
  ),
  output_config: Type.Optional(
    Type.Object({
      effort: Type.Optional(Type.Enum(['low', 'medium', 'high', 'xhigh', 'max'])),
      format: Type.Optional(outputFormat),
    }),
  ),
  output_format: Type.Optional(outputFormat),
}

export const messagesRequestSchema = Type.Object({
  ...prompt,
  max_tokens: Type.Integer({ minimum: 1 }),
  stream: shared.stream,
  temperature: shared.temperature,
  top_p: shared.top_p,
  top_k: shared.top_k,
  stop_sequences: Type.Optional(stopTexts),
  metadata: Type.Optional(Type.Object({ user_id: Type.Optional(idText) })),
  service_tier: Type.Optional(
    Type.Enum(['auto', 'standard_only'], { description: 'Both mean that the request has its turn in the queue.' }),
  ),
})

export const countTokensRequestSchema = Type.Object(prompt)

export type CountTokensRequest = Static<typeof countTokensRequestSchema>
export type MessagesRequest = Static<typeof messagesRequestSchema>
export type MessageBlock = Static<typeof block>
export type ResultBlock = Static<typeof resultBlock>
export type MessagesTool = Static<typeof tool>

const usage = Type.Object({
  input_tokens: Type.Integer({ description: 'Without the cached ones.', example: 27 }),
  cache_creation_input_tokens: Type.Integer(),
  cache_read_input_tokens: Type.Integer(),
  output_tokens: Type.Integer({ example: 14 }),
  output_tokens_details: Type.Object({ thinking_tokens: Type.Integer() }),
  service_tier: Type.Enum(['standard', 'batch'], { description: 'Lines of batches have the tier batch.' }),
})

export const messagesResponseSchema = Type.Object({
  id: Type.String({ example: 'msg_01k3zq8v6t' }),
  type: Type.Literal('message'),
  role: Type.Literal('assistant'),
  model: Type.String({ example: EXAMPLE_MODEL }),
  content: Type.Array(
    Type.Union([
      Type.Object({ type: Type.Literal('text'), text: Type.String() }),
      Type.Object({ type: Type.Literal('thinking'), thinking: Type.String(), signature: Type.String() }),
      Type.Object({ type: Type.Literal('tool_use'), id: Type.String(), name: Type.String(), input: Type.Object({}) }),
    ]),
    { example: [{ type: 'text', text: 'A weir is a low dam that controls the flow of a river.' }] },
  ),
  stop_reason: Type.Enum(['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'refusal']),
  stop_sequence: Type.Union([Type.String(), Type.Null()]),
  stop_details: Type.Null(),
  usage,
})

export const messagesErrorSchema = Type.Object({
  type: Type.Literal('error'),
  error: Type.Object({
    type: Type.String(),
    message: Type.String(),
    code: Type.String({ description: 'The same code as on the other endpoints.' }),
    param: Type.Union([Type.String(), Type.Null()]),
  }),
  request_id: Type.String(),
})

export const countTokensResponseSchema = Type.Object({ input_tokens: Type.Integer({ example: 27 }) })

const request = {
  model: EXAMPLE_MODEL,
  system: 'You answer in one sentence.',
  messages: [{ role: 'user', content: 'What is a weir?' }],
}

export const messagesExample = {
  request: { ...request, max_tokens: 100 },
  stream: `event: message_start
data: {"type":"message_start","message":{"id":"msg_01k3zq8v6t","type":"message","role":"assistant","model":"qwen/qwen2.5-coder-0.5b-instruct","content":[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"usage":{"input_tokens":27,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0,"output_tokens_details":{"thinking_tokens":0},"service_tier":"standard"}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"A weir"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null},"usage":{"input_tokens":27,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":2,"output_tokens_details":{"thinking_tokens":0}}}

event: message_stop
data: {"type":"message_stop"}

`,
}

export const countTokensExample = request
