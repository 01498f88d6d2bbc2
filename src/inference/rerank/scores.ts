import type { ByteCollector } from '../../shared/byte-collector.ts'
import type { EngineHeaders } from '../../engines/job.ts'
import type { RankingDialect, RankingOutput, ScoreScale } from '../../engines/dialects/dialect.ts'
import { sumOfCounts, tryParseJson } from '../request/engine-operation.ts'

/** A document's index in the request, and its score on both scales. */
export interface RankedDocument {
  readonly index: number
  readonly probability: number
  readonly logit: number
}

/** Joins the scores of all calls. undefined unless every document was scored exactly once. */
export function joinScores(
  dialect: RankingDialect,
  bodies: readonly ByteCollector[],
  headers: readonly EngineHeaders[],
  counts: readonly number[],
): RankingOutput | undefined {
  const scores: { index: number; score: number }[] = []
  let inputTokens: number | undefined = 0
  let scale: ScoreScale | undefined
  for (const [position, count] of counts.entries()) {
    const body = bodies[position]
    const output = body && dialect.response(tryParseJson(body.whole()), headers[position] ?? {})
    if (!output || !coversAll(output.scores, count)) return undefined
    const before = position * dialect.batchSize
    for (const { index, score } of output.scores) scores.push({ index: before + index, score })
    inputTokens = sumOfCounts(inputTokens, output.inputTokens)
    scale ??= output.scale
  }
  return { scores, inputTokens, ...(scale ? { scale } : {}) }
}

function coversAll(scores: RankingOutput['scores'], count: number): boolean {
  const seen = new Set(scores.map(({ index }) => index))
  return seen.size === count && scores.length === count && scores.every(({ index }) => index < count)
}

/**
 * The scale of the scores. A server returns what its model computes, and not every model ends in probabilities: a score
 * beyond ±1 is neither a probability nor a cosine, so it must be a logit. Clamping logits to 0 and 1 would lose their
 * order.
 */
export function scaleOf({ scores, scale }: RankingOutput, dialect: RankingDialect): ScoreScale {
  const stated = scale ?? dialect.scale
  return stated === 'probability' && scores.some(({ score }) => Math.abs(score) > 1) ? 'logit' : stated
}

/** Best first, with each score on both scales. */
export function rank(scores: RankingOutput['scores'], scale: ScoreScale): readonly RankedDocument[] {
  const ranked = scores.map(({ index, score }) => {
    const probability = scale === 'probability' ? clamp(score, 0, 1) : 1 / (1 + Math.exp(-score))
    // A probability of exactly 0 or 1 has no finite logit, and JSON has no infinity.
    const inside = clamp(probability, 1e-15, 1 - 1e-15)
    return { index, probability, logit: scale === 'logit' ? score : Math.log(inside / (1 - inside)) }
  })
  return ranked.toSorted((one, other) => other.logit - one.logit || one.index - other.index)
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value))
}
