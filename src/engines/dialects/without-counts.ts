import type { Dialect } from './dialect.ts'

/** The same server, with its token counts ignored. */
export function withoutCounts({ chat, completions, embeddings, ranking, ...others }: Dialect): Dialect {
  const usageOf = (): undefined => undefined
  return {
    ...others,
    ...(chat && { chat: { ...chat, usageOf } }),
    ...(completions && { completions: { ...completions, usageOf } }),
    ...(embeddings && { embeddings: { ...embeddings, response: uncounted(embeddings.response) } }),
    ...(ranking && { ranking: { ...ranking, response: uncounted(ranking.response) } }),
  }
}

/** Reads the same answers, ignoring their counts. */
export function uncounted<
  Given extends readonly unknown[],
  Output extends { readonly inputTokens: number | undefined },
>(response: (...given: Given) => Output | undefined): (...given: Given) => Output | undefined {
  return (...given) => {
    const output = response(...given)
    return output && { ...output, inputTokens: undefined }
  }
}
