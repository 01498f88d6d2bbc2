import Type, { type Static } from 'typebox'

/** The wire shapes of /rerank and /reranking. */

const model = Type.String({ minLength: 1, description: 'A slug of the catalog, or a short id.' })
const top = Type.Optional(
  Type.Integer({
    minimum: 1,
    description: 'How many of the best to return; all by default, and never more than there are.',
  }),
)
const usage = Type.Object({ prompt_tokens: Type.Integer(), total_tokens: Type.Integer() })

export const rerankRequestSchema = Type.Object({
  model,
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
        'Documents are cut to so many tokens before they are ranked. Where the engine does not know how, they are cut by an estimate that is rather too short.',
    }),
  ),
})

export type RerankRequest = Static<typeof rerankRequestSchema>

export const rerankResponseSchema = Type.Object({
  id: Type.String(),
  model: Type.String(),
  results: Type.Array(
    Type.Object({
      index: Type.Integer(),
      relevance_score: Type.Number({ minimum: 0, maximum: 1 }),
      document: Type.Optional(Type.Object({ text: Type.String() })),
    }),
  ),
  meta: Type.Object({
    api_version: Type.Object({ version: Type.String() }),
    billed_units: Type.Object({ search_units: Type.Integer() }),
  }),
  usage,
})

export const rankingRequestSchema = Type.Object({
  model,
  query: Type.Object({ text: Type.String({ minLength: 1 }) }),
  passages: Type.Array(Type.Object({ text: Type.String() }), { minItems: 1, maxItems: 512 }),
  truncate: Type.Optional(Type.Enum(['NONE', 'END'])),
  top_n: top,
})

export type RankingRequest = Static<typeof rankingRequestSchema>

export const rankingResponseSchema = Type.Object({
  rankings: Type.Array(Type.Object({ index: Type.Integer(), logit: Type.Number() })),
  usage,
})
