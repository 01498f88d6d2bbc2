import { Type, type Static } from 'typebox'
import { idText, inputUsageSchema, modelParameter, serviceTier } from '../request/shared-schema.ts'

/** The wire shapes of /embeddings. */

const token = Type.Integer({ minimum: 0, maximum: 199_999 })

export const embeddingsRequestSchema = Type.Object({
  model: modelParameter,
  input: Type.Union(
    [
      Type.String({ minLength: 1 }),
      Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 2048 }),
      Type.Array(token, { minItems: 1, maxItems: 131_072 }),
      Type.Array(Type.Array(token, { minItems: 1, maxItems: 131_072 }), { minItems: 1, maxItems: 2048 }),
    ],
    { description: 'A text, an array of 1 to 2048 texts, or either of them as cl100k_base token ids.' },
  ),
  encoding_format: Type.Optional(Type.Enum(['float', 'base64'])),
  dimensions: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_536 })),
  user: Type.Optional(idText),
  service_tier: serviceTier,
})

export type EmbeddingsRequest = Static<typeof embeddingsRequestSchema>

export const embeddingsResponseSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      object: Type.Literal('embedding'),
      index: Type.Integer(),
      embedding: Type.Union([Type.Array(Type.Number()), Type.String()]),
    }),
    {
      example: [
        { object: 'embedding', index: 0, embedding: [0.021, -0.083, 0.047] },
        { object: 'embedding', index: 1, embedding: [-0.015, 0.062, 0.009] },
      ],
    },
  ),
  model: Type.String({ example: 'sentence-transformers/all-minilm-l6-v2' }),
  usage: inputUsageSchema(10),
})

export const embeddingsExample = {
  request: { model: 'sentence-transformers/all-minilm-l6-v2', input: ['A low dam', 'A tall tree'] },
}
