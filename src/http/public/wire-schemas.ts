import Type from 'typebox'
import { errorTable } from '../../core/errors.ts'
import { categories, modes } from '../../core/catalog.ts'

/** The wire shapes of what is not inference: documented from here. */

const decimal = (): Type.TString => Type.String({ description: 'A decimal in AUD, excluding GST.' })
const decimalOrNull = () => Type.Union([decimal(), Type.Null()])

export const errorSchema = Type.Object({
  error: Type.Object({
    message: Type.String(),
    type: Type.Enum([...new Set(Object.values(errorTable).map(({ type }) => type))]),
    param: Type.Union([Type.String(), Type.Null()]),
    code: Type.Enum(Object.keys(errorTable)),
  }),
})

export const modelEntrySchema = Type.Object({
  id: Type.String({ description: 'The canonical slug, <provider>/<model>.' }),
  object: Type.Literal('model'),
  created: Type.Integer(),
  owned_by: Type.String(),
  name: Type.String(),
  context_length: Type.Integer(),
  max_completion_tokens: Type.Integer(),
  default_max_tokens: Type.Integer({ description: 'The output allowed where a request does not say.' }),
  architecture: Type.Object({
    modality: Type.String(),
    input_modalities: Type.Array(Type.String()),
    output_modalities: Type.Array(Type.String()),
    tokenizer: Type.Union([Type.String(), Type.Null()]),
    instruct_type: Type.Union([Type.String(), Type.Null()]),
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
        size: Type.String({ description: 'auto: where a request names none.' }),
        quality: Type.Union([Type.String(), Type.Null()], { description: 'null: any that is not listed.' }),
        per_image: decimal(),
      }),
      { description: 'Prices by size and quality; every other image is at per_image.' },
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
  unavailable_reason: Type.Optional(Type.Enum(['model_access_denied', 'model_not_configured'])),
})

const limitsSchema = Type.Object({
  token_budget: Type.Integer(),
  max_concurrent_requests: Type.Integer(),
  max_queue_depth: Type.Integer(),
  max_wait_ms: Type.Integer(),
})

export const modelDetailSchema = Type.Object({
  ...modelEntrySchema.properties,
  description: Type.String(),
  aliases: Type.Array(Type.String()),
  queue_limits: Type.Union([limitsSchema, Type.Null()]),
})

export const modelListSchema = Type.Object({ object: Type.Literal('list'), data: Type.Array(modelEntrySchema) })

export const queueStatusSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      object: Type.Literal('queue.status'),
      model: Type.String(),
      in_flight_requests: Type.Integer(),
      committed_tokens: Type.Integer(),
      available_budget: Type.Integer(),
      queue_depth: Type.Integer(),
      limits: limitsSchema,
    }),
  ),
})
