import { Type, type TString } from 'typebox'
import { categories, modes } from '../model.ts'
import { unavailableReasons } from '../unavailable-model.ts'
import { listSchema, nullable } from '../../server/common-schema.ts'

/** How models are described, in GET /models and GET /models/{slug}. */

const decimal = (): TString => Type.String({ description: 'A decimal in AUD, excluding GST.' })
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
  unavailable_reason: Type.Optional(Type.Enum([...unavailableReasons])),
  unavailable_message: Type.Optional(Type.String({ description: 'The same as a sentence, with what can be done.' })),
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

export const modelEntryExample = {
  id: 'huggingfacetb/smollm2-135m-instruct',
  object: 'model',
  created: 1795000000,
  owned_by: 'huggingfacetb',
  name: 'SmolLM2 135M Instruct',
  context_length: 8192,
  max_completion_tokens: 8192,
  default_max_tokens: 2048,
  architecture: {
    modality: 'text->text',
    input_modalities: ['text'],
    output_modalities: ['text'],
    tokenizer: null,
    instruct_type: null,
  },
  pricing: {
    currency: 'AUD',
    tax: 'excl_gst',
    prompt: '0.0000001',
    completion: '0.0000002',
    input_cache_read: null,
    per_million_tokens: { input: '0.10', output: '0.20', cached_input: null },
    per_image: null,
    image_prices: [],
    per_audio_minute: null,
    dedicated_per_hour: null,
  },
  model_categories: ['llm'],
  supported_parameters: ['temperature', 'top_p', 'stop', 'seed'],
  modes: ['serverless'],
  endpoints: ['/chat/completions', '/completions'],
  available: true,
}

export const limitsExample = {
  token_budget: 16384,
  max_concurrent_requests: 4,
  max_queue_depth: 100,
  max_wait_ms: 60000,
}

export const modelDetailExample = {
  ...modelEntryExample,
  description: 'A small model for chat.',
  aliases: ['smollm2'],
  queue_limits: limitsExample,
}

export const modelListExample = { object: 'list', data: [modelEntryExample] }
