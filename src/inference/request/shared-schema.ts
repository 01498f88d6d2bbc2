import { Type } from 'typebox'

/**
 * The wire shapes that several endpoints share. Every text that is not part of the prompt has a maximum length. The limits
 * are far above what the OpenAI and Anthropic APIs allow.
 */

/** A type, a tier or the like: one of a few words. */
export const wordText = Type.String({ maxLength: 256 })
/** The name of a tool or a function. */
export const nameText = Type.String({ maxLength: 256 })
/** The id of a call, a user, a session or the like. */
export const idText = Type.String({ maxLength: 1024 })
/** A model's reasoning, packed for its caller to send back. */
export const packedText = Type.String({ maxLength: 1_048_576 })
const stopText = Type.String({ maxLength: 1024 })

export const stopTexts = Type.Array(stopText, { maxItems: 4 })

export const metadata = Type.Object(
  {},
  { maxProperties: 16, propertyNames: { maxLength: 64 }, additionalProperties: Type.String({ maxLength: 512 }) },
)

export const MAX_MODEL_NAME = 256

export const modelParameter = Type.String({
  minLength: 1,
  maxLength: MAX_MODEL_NAME,
  description: 'The slug or short id of a model in the catalog.',
})

export const serviceTier = Type.Optional(
  Type.Enum(['auto', 'default', 'flex'], {
    description:
      'flex: idle capacity only, at the batch price; refused if there is none. auto and default are the same: the request has its turn in the queue.',
  }),
)

const penalty = Type.Optional(Type.Number({ minimum: -2, maximum: 2 }))

/** The parameters of text generation, for chat and text completion alike. */
export const generationParameters = {
  stream: Type.Optional(Type.Boolean()),
  stream_options: Type.Optional(Type.Object({ include_usage: Type.Optional(Type.Boolean()) })),
  temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
  top_p: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
  frequency_penalty: penalty,
  presence_penalty: penalty,
  seed: Type.Optional(Type.Integer({ minimum: -(2 ** 63), maximum: 2 ** 63 })),
  n: Type.Optional(Type.Integer({ minimum: 1, maximum: 128 })),
  stop: Type.Optional(Type.Union([stopText, stopTexts])),
  logit_bias: Type.Optional(
    Type.Object(
      {},
      { propertyNames: { maxLength: 64 }, additionalProperties: Type.Number({ minimum: -100, maximum: 100 }) },
    ),
  ),
  top_k: Type.Optional(Type.Integer({ minimum: -1 })),
  min_p: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
  repetition_penalty: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
  user: Type.Optional(idText),
}

/** The time in examples. */
export const exampleCreated = 1795000000

/** The usage of chat and text completion, with that of an example. */
export const generationUsageSchema = (input: number, output: number) =>
  Type.Object({
    prompt_tokens: Type.Integer({ example: input }),
    completion_tokens: Type.Integer({ example: output }),
    total_tokens: Type.Integer({ example: input + output }),
    prompt_tokens_details: Type.Object({ cached_tokens: Type.Integer() }),
    completion_tokens_details: Type.Object({ reasoning_tokens: Type.Integer() }),
  })

/** The usage of endpoints that generate no text. */
export const inputUsageSchema = (input: number) =>
  Type.Object({ prompt_tokens: Type.Integer({ example: input }), total_tokens: Type.Integer({ example: input }) })
