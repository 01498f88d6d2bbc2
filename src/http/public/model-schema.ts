import Type from 'typebox'
import { categories, modes } from '../../core/catalog.ts'
import { listSchema, nullable } from '../common-schema.ts'

/** How models are described, in GET /models and GET /models/{slug}. */

const decimal = (): Type.TString => Type.String({ description: 'A decimal in AUD, excluding GST.' })
const decimalOrNull = () => nullable(Type.String(), 'A decimal in AUD, excluding GST, or null.')

export const modelEntrySchema = Type.Object({
  id: Type.String({ description: 'The canonical slug, <provider>/<model>.' }),
  object: Type.Literal('model'),
  created: Type.Integer(),
  owned_by: Type.String(),
  name: Type.String(),
  context_length: Type.Integer(),
  max_completion_tokens: Type.Integer(),
  default_max_tokens: Type.Integer({
    description: 'The output limit of a request that does not set one. Less if a long input leaves no room for it.',
  }),
  architecture: Type.Object({
    modality: Type.String(),
    input_modalities: Type.Array(Type.String()),
    output_modalities: Type.Array(Type.String()),
    tokenizer: nullable(Type.String()),
    instruct_type: nullable(Type.String()),
  }),
  pricing: Type.Object({
    currency: Type.Literal('AUD'),
    tax: Type.Literal('excl_gst'),
    prompt: decimal(),
    completion: decimal(),
    input_cache_read: decimalOrNull(),
    per_million_tokens: Type.Object({ input: decimal(), output: decimal(), cached_input: decimalOrNull() }),
    per_image: decimalOrNull(),
    image_prices: Type.Array(
      Type.Object({
        size: Type.String({ description: 'auto: the price of a request that names no size.' }),
        quality: nullable(Type.String(), 'null: every quality that is not listed.'),
        per_image: decimal(),
      }),
      { description: 'Prices by size and quality. Every other image costs per_image.' },
    ),
    per_audio_minute: decimalOrNull(),
    dedicated_per_hour: decimalOrNull(),
    dedicated_per_hour_indicative: Type.Optional(Type.Boolean()),
  }),
  model_categories: Type.Array(Type.Enum([...categories])),
  supported_parameters: Type.Array(Type.String()),
  modes: Type.Array(Type.Enum([...modes])),
  endpoints: Type.Array(Type.String()),
  available: Type.Boolean(),
  unavailable_reason: Type.Optional(Type.Enum(['model_access_denied', 'model_not_configured', 'model_unavailable'])),
})

/** The limits of the queue in front of a model. */
export const limitsSchema = Type.Object({
  token_budget: Type.Integer(),
  max_concurrent_requests: Type.Integer(),
  max_queue_depth: Type.Integer(),
  max_wait_ms: Type.Integer(),
})

export const modelDetailSchema = Type.Object({
  ...modelEntrySchema.properties,
  description: Type.String(),
  aliases: Type.Array(Type.String()),
  queue_limits: nullable(limitsSchema),
})

export const modelListSchema = listSchema(modelEntrySchema)
