import { Type, type Static } from 'typebox'
import { inputUsageSchema, modelParameter, serviceTier } from '../request/shared-schema.ts'

const top = Type.Optional(
  Type.Integer({ minimum: 1, description: 'How many of the best results to return. All by default.' }),
)

/** The wire shapes of /rerank, which is Cohere's schema: documents in, scores from 0 to 1 out. */

export const rerankRequestSchema = Type.Object({
  model: modelParameter,
  query: Type.String({ minLength: 1 }),
  documents: Type.Array(Type.Union([Type.String(), Type.Object({ text: Type.String() })]), {
    minItems: 1,
    maxItems: 1000,
  }),
  top_n: top,
  return_documents: Type.Optional(Type.Boolean()),
  max_tokens_per_doc: Type.Optional(
    Type.Integer({
      minimum: 1,
      description:
        'Documents are truncated to this many tokens before they are ranked. If the engine cannot do it, an estimate is used that keeps slightly fewer.',
    }),
  ),
  service_tier: serviceTier,
})

export type RerankRequest = Static<typeof rerankRequestSchema>

export const rerankResponseSchema = Type.Object({
  id: Type.String({ example: 'rerank-01k3zq8v6t' }),
  model: Type.String({ example: 'baai/bge-reranker-v2-m3' }),
  results: Type.Array(
    Type.Object({
      index: Type.Integer(),
      relevance_score: Type.Number({ minimum: 0, maximum: 1, example: 0.97 }),
      document: Type.Optional(Type.Object({ text: Type.String() }, { example: { text: 'A weir is a low dam.' } })),
    }),
  ),
  meta: Type.Object({
    api_version: Type.Object({ version: Type.String({ example: '2' }) }),
    billed_units: Type.Object({ search_units: Type.Integer({ example: 1 }) }),
  }),
  usage: inputUsageSchema(24),
})

/** The wire shapes of /reranking, which is NVIDIA's schema: passages in, raw logits out. */

export const rerankingRequestSchema = Type.Object({
  model: modelParameter,
  query: Type.Object({ text: Type.String({ minLength: 1 }) }),
  passages: Type.Array(Type.Object({ text: Type.String() }), { minItems: 1, maxItems: 512 }),
  truncate: Type.Optional(Type.Enum(['NONE', 'END'])),
  top_n: top,
  service_tier: serviceTier,
})

export type RerankingRequest = Static<typeof rerankingRequestSchema>

export const rerankingResponseSchema = Type.Object({
  rankings: Type.Array(Type.Object({ index: Type.Integer(), logit: Type.Number() }), {
    example: [
      { index: 0, logit: 4.25 },
      { index: 1, logit: -7.5 },
    ],
  }),
  usage: inputUsageSchema(24),
})

export const rerankExample = {
  request: {
    model: 'baai/bge-reranker-v2-m3',
    query: 'What holds back a river?',
    documents: ['A weir is a low dam.', 'A heron eats fish.'],
    top_n: 1,
    return_documents: true,
  },
}

export const rerankingExample = {
  request: {
    model: 'nvidia/llama-3.2-nv-rerankqa-1b-v2',
    query: { text: 'What holds back a river?' },
    passages: [{ text: 'A weir is a low dam.' }, { text: 'A heron eats fish.' }],
  },
}
