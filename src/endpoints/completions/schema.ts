import Type, { type Static } from 'typebox'
import { chatRequestSchema, usageSchema } from '../chat/schema.ts'

/** The wire shapes of the legacy /completions. What it shares with chat is the same there. */

const { properties: chat } = chatRequestSchema

export const completionsRequestSchema = Type.Object({
  model: chat.model,
  prompt: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1, maxItems: 128 })]),
  max_tokens: Type.Optional(
    Type.Integer({ minimum: 1, description: 'At most so many tokens for each choice; 16 by default.' }),
  ),
  suffix: Type.Optional(Type.String()),
  echo: Type.Optional(Type.Boolean()),
  best_of: Type.Optional(Type.Integer({ minimum: 1, maximum: 20 })),
  logprobs: Type.Optional(Type.Integer({ minimum: 0, maximum: 5 })),
  stream: chat.stream,
  stream_options: chat.stream_options,
  temperature: chat.temperature,
  top_p: chat.top_p,
  frequency_penalty: chat.frequency_penalty,
  presence_penalty: chat.presence_penalty,
  seed: chat.seed,
  n: chat.n,
  stop: chat.stop,
  logit_bias: chat.logit_bias,
  top_k: chat.top_k,
  min_p: chat.min_p,
  repetition_penalty: chat.repetition_penalty,
  user: chat.user,
})

export type CompletionsRequest = Static<typeof completionsRequestSchema>

export const completionsResponseSchema = Type.Object({
  id: Type.String(),
  object: Type.Literal('text_completion'),
  created: Type.Integer(),
  model: Type.String(),
  choices: Type.Array(
    Type.Object({
      index: Type.Integer(),
      text: Type.String(),
      logprobs: Type.Union([Type.Object({}), Type.Null()]),
      finish_reason: Type.Enum(['stop', 'length', 'content_filter']),
    }),
  ),
  usage: usageSchema,
})
