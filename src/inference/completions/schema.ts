import { EXAMPLE_MODEL } from '../../server/common-schema.ts'
import { Type, type Static } from 'typebox'
import {
  exampleCreated,
  generationParameters as shared,
  generationUsageSchema,
  modelParameter,
  serviceTier,
} from '../request/shared-schema.ts'

/** The wire shapes of the legacy /completions. */

export const completionsRequestSchema = Type.Object({
  model: modelParameter,
  prompt: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1, maxItems: 128 })]),
  max_tokens: Type.Optional(
    Type.Integer({ minimum: 1, description: 'The most tokens to generate for each choice. 16 by default.' }),
  ),
  suffix: Type.Optional(Type.String()),
  echo: Type.Optional(Type.Boolean()),
  best_of: Type.Optional(Type.Integer({ minimum: 1, maximum: 20 })),
  logprobs: Type.Optional(Type.Integer({ minimum: 0, maximum: 5 })),
  stream: shared.stream,
  stream_options: shared.stream_options,
  temperature: shared.temperature,
  top_p: shared.top_p,
  frequency_penalty: shared.frequency_penalty,
  presence_penalty: shared.presence_penalty,
  seed: shared.seed,
  n: shared.n,
  stop: shared.stop,
  logit_bias: shared.logit_bias,
  top_k: shared.top_k,
  min_p: shared.min_p,
  repetition_penalty: shared.repetition_penalty,
  user: shared.user,
  service_tier: serviceTier,
})

export type CompletionsRequest = Static<typeof completionsRequestSchema>

export const completionsResponseSchema = Type.Object({
  id: Type.String({ example: 'cmpl-01k3zq8v6t' }),
  object: Type.Literal('text_completion'),
  created: Type.Integer({ example: exampleCreated }),
  model: Type.String({ example: EXAMPLE_MODEL }),
  choices: Type.Array(
    Type.Object({
      index: Type.Integer(),
      text: Type.String({ example: ' a low dam across a river.' }),
      logprobs: Type.Union([Type.Object({}), Type.Null()]),
      finish_reason: Type.Enum(['stop', 'length', 'content_filter']),
    }),
  ),
  usage: generationUsageSchema(4, 7),
})

export const completionsExample = {
  request: { model: EXAMPLE_MODEL, prompt: 'A weir is', max_tokens: 20 },
  stream: `data: {"id":"cmpl-01k3zq8v6t","object":"text_completion","created":1795000000,"model":"qwen/qwen2.5-coder-0.5b-instruct","choices":[{"index":0,"text":" a low dam","logprobs":null,"finish_reason":null}]}

data: {"id":"cmpl-01k3zq8v6t","object":"text_completion","created":1795000000,"model":"qwen/qwen2.5-coder-0.5b-instruct","choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"stop"}]}

data: [DONE]

`,
}
