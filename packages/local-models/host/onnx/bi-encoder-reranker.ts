import { contextLengthExceeded } from '../runtime/context-length.ts'
import type { EngineModel } from '../runtime/engine-model.ts'
import type { OnnxLoading } from './model-loading.ts'
import { openSentenceEncoder } from './sentence-encoder.ts'

/** Ranks by the cosine of separate embeddings. The catalog says that it is a bi-encoder. */
export async function loadReranker(loading: OnnxLoading): Promise<EngineModel> {
  const encoder = await openSentenceEncoder(loading)
  return {
    memoryBytes: loading.memoryBytes,
    async score({ query, documents, maxTokensPerDocument, truncate }, signal) {
      const limit = encoder.contextTokens
      const fit = (text: string, maxTokens: number): readonly number[] => {
        const ids = encoder.tokenize(text)
        if (ids.length <= maxTokens) return ids
        if (!truncate) throw contextLengthExceeded(limit, ids.length)
        // The last token closes the sequence and must stay.
        return [...ids.slice(0, maxTokens - 1), ...ids.slice(-1)]
      }
      const documentLimit = Math.max(2, Math.min(limit, maxTokensPerDocument ?? limit))
      const sequences = [fit(query, limit), ...documents.map((document) => fit(document, documentLimit))]
      const [queryVector = new Float32Array(), ...vectors] = await encoder.encode(sequences, signal)
      return {
        logits: vectors.map((vector) => logitOfCosine(dotProduct(queryVector, vector))),
        promptTokens: sequences.reduce((sum, ids) => sum + ids.length, 0),
      }
    },
    close: () => encoder.close(),
  }
}

/**
 * Cosines of this family of models lie between 0 and 0.8, and those of unrelated texts below 0.2. Stretched around 0.3,
 * their sigmoid uses the whole range from 0 to 1. The order stays the same.
 */
function logitOfCosine(cosine: number): number {
  return (cosine - 0.3) * 10
}

function dotProduct(one: Float32Array, other: Float32Array): number {
  let sum = 0
  for (let index = 0; index < one.length; index++) sum += (one[index] ?? 0) * (other[index] ?? 0)
  return sum
}
