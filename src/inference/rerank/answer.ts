import type { AnswerHead, ParsedAnswer, WholeAnswer } from '../../engines/job.ts'
import { noUsage } from '../../billing/rating/rating.ts'
import type { RankingDialect, ScoreScale } from '../../engines/dialects/dialect.ts'
import { joinScores, rank, scaleOf, type RankedDocument } from './scores.ts'

/** Writes a ranking, best first, in the schema of the endpoint. */
export type RenderRanking = (ranked: readonly RankedDocument[], head: AnswerHead, inputTokens: number) => object

/** The answer of /rerank. `documents` are the texts to return with their scores. */
export function renderRerank(top: number | undefined, documents: readonly string[] | undefined): RenderRanking {
  return (ranked, { id, model }, inputTokens) => ({
    id: `rerank-${id}`,
    model,
    results: ranked.slice(0, top).map(({ index, probability }) => ({
      index,
      relevance_score: probability,
      ...(documents ? { document: { text: documents[index] } } : {}),
    })),
    meta: { api_version: { version: '1' }, billed_units: { search_units: 1 } },
    usage: { prompt_tokens: inputTokens, total_tokens: inputTokens },
  })
}

/** The answer of /reranking. */
export function renderReranking(top: number | undefined): RenderRanking {
  return (ranked, _head, inputTokens) => ({
    rankings: ranked.slice(0, top).map(({ index, logit }) => ({ index, logit })),
    usage: { prompt_tokens: inputTokens, total_tokens: inputTokens },
  })
}

/**
 * How to read the answers of calls with `counts` documents each. A separate function, so that the closure
 * does not retain the request body.
 */
export function rankingAnswer(
  dialect: RankingDialect,
  counts: readonly number[],
  /** The scale of the scores, as configured by the operator. */
  configuredScale: ScoreScale | undefined,
  render: RenderRanking,
): WholeAnswer {
  return {
    kind: 'whole',
    async read(bodies, head, headers): Promise<ParsedAnswer | undefined> {
      const output = joinScores(dialect, bodies, headers, counts)
      if (!output) return undefined
      const ranked = rank(output.scores, configuredScale ?? scaleOf(output, dialect))
      const { inputTokens } = output
      return {
        usage: inputTokens === undefined ? undefined : { ...noUsage, inputTokens },
        outputBytes: () => 0,
        render: (usage) => JSON.stringify(render(ranked, head, usage.inputTokens)),
      }
    },
  }
}
