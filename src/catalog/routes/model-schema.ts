import { Type, type TString } from 'typebox'
import { categories, modes } from '../model.ts'
import type { Engine } from '../../engines/engine.ts'
import { runStates } from '../../engines/on-demand/decisions.ts'
import { unavailableReasons } from '../unavailable-model.ts'
import { EXAMPLE_MODEL, exampleOf, listSchema, nullable } from '../../server/common-schema.ts'

/** How models are described, in GET /models and GET /models/{slug}. */

const decimal = (example: string): TString => Type.String({ description: 'A decimal in AUD, excluding GST.', example })
const decimalOrNull = () => nullable(Type.String(), 'A decimal in AUD, excluding GST, or null.')

const perMillionTokens = (input: string, output: string) =>
  Type.Object({ input: decimal(input), output: decimal(output), cached_input: decimalOrNull() })

export const engineStartSchema = Type.Object(
  {
    state: Type.Enum([...runStates], { example: 'starting' }),
    ready_in_ms: nullable(
      Type.Integer({ example: 12_000 }),
      'How long a start still takes, by earlier ones. null: it is ready, or nothing is known.',
    ),
  },
  { description: 'Only for a model whose engine starts when it is needed. A request starts it and waits for it.' },
)

export function engineStartView(engine: Engine | undefined): object | undefined {
  const start = engine?.start?.()
  return start && { state: start.state, ready_in_ms: start.readyInMs ?? null }
}

const modelEntrySchema = Type.Object({
  id: Type.String({ description: 'The canonical slug, <provider>/<model>.', example: EXAMPLE_MODEL }),
  object: Type.Literal('model'),
  created: Type.Integer({ example: 1795000000 }),
  owned_by: Type.String({ example: 'huggingfacetb' }),
  name: Type.String({ example: 'SmolLM2 135M Instruct' }),
  context_length: Type.Integer({ example: 8192 }),
  max_completion_tokens: Type.Integer({ example: 8192 }),
  default_max_tokens: Type.Integer({
    description: 'The output limit of a request that does not set one. Less if a long input leaves no room for it.',
    example: 2048,
  }),
  architecture: Type.Object({
    modality: Type.String({ example: 'text->text' }),
    input_modalities: Type.Array(Type.String({ example: 'text' })),
    output_modalities: Type.Array(Type.String({ example: 'text' })),
    tokenizer: nullable(Type.String()),
    instruct_type: nullable(Type.String()),
  }),
  pricing: Type.Object({
    currency: Type.Literal('AUD'),
    tax: Type.Literal('excl_gst'),
    prompt: decimal('0.0000001'),
    completion: decimal('0.0000002'),
    input_cache_read: decimalOrNull(),
    per_million_tokens: perMillionTokens('0.10', '0.20'),
    per_image: decimalOrNull(),
    image_prices: Type.Array(
      Type.Object({
        size: Type.String({ description: 'auto: the price of a request that names no size.' }),
        quality: nullable(Type.String(), 'null: every quality that is not listed.'),
        per_image: decimal('0.12'),
      }),
      { description: 'Prices by size and quality. Every other image costs per_image.', example: [] },
    ),
    per_audio_minute: decimalOrNull(),
    batch: nullable(
      Type.Object({ per_million_tokens: perMillionTokens('0.05', '0.10') }),
      'The prices of the tiers flex and batch; null: the same as others.',
    ),
    dedicated_per_hour: decimalOrNull(),
    dedicated_per_hour_indicative: Type.Optional(Type.Boolean()),
  }),
  model_categories: Type.Array(Type.Enum([...categories])),
  supported_parameters: Type.Array(Type.String(), { example: ['temperature', 'top_p', 'stop', 'seed'] }),
  modes: Type.Array(Type.Enum([...modes])),
  endpoints: Type.Array(Type.String(), { example: ['/chat/completions', '/completions'] }),
  available: Type.Boolean({ example: true }),
  unavailable_reason: Type.Optional(Type.Enum([...unavailableReasons])),
  unavailable_message: Type.Optional(Type.String({ description: 'The same as a sentence, with what can be done.' })),
  engine: Type.Optional(engineStartSchema),
})

/** The limits of the queue in front of a model. */
export const limitsSchema = Type.Object({
  token_budget: Type.Integer({ example: 16384 }),
  max_concurrent_requests: Type.Integer({ example: 4 }),
  max_queue_depth: Type.Integer({ example: 100 }),
  max_wait_ms: Type.Integer({ example: 60000 }),
  max_requests_per_workspace: Type.Optional(
    Type.Integer({
      example: 8,
      description: 'Requests that your workspace may have there, waiting and running together.',
    }),
  ),
})

export const modelDetailSchema = Type.Object({
  ...modelEntrySchema.properties,
  description: Type.String({ example: 'A small model for chat.' }),
  aliases: Type.Array(Type.String({ example: 'smollm2' })),
  queue_limits: { ...nullable(limitsSchema), example: exampleOf(limitsSchema) },
})

export const modelListSchema = listSchema(modelEntrySchema)
