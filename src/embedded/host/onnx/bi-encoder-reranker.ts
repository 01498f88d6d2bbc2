import { contextLengthExceeded } from '../runtime/engine-model.ts'
import type { EngineModel } from '../runtime/engine-model.ts'
import type { OnnxLoading } from './model-loading.ts'
import { openSentenceEncoder } from './sentence-encoder.ts'

/**
 * Cosines of this family gather between 0 and 0.8 with unrelated text below 0.2: stretched around 0.3, their sigmoid
 * uses the whole of 0–1. It changes no order.
 */
const logitOfCosine = (cosine: number) => (cosine - 0.3) * 10

/** Ranks by the cosine of separate embeddings: a bi-encoder, and labelled so in the catalog. */
export async function loadReranker(loading: OnnxLoading): Promise<EngineModel> {
  const encoder = await openSentenceEncoder(loading)
  return {
    memoryBytes: loading.memoryBytes,
    async score({ query, documents, maxTokensPerDocument, truncate }, signal) {
      const limit = encoder.contextTokens
      const fit = (text: string, max: number) => {
        const ids = encoder.tokenize(text)
        if (ids.length <= max) return ids
        if (!truncate) throw contextLengthExceeded(limit, ids.length)
        // The last token closes the sequence and must stay.
        return [...ids.slice(0, max - 1), ...ids.slice(-1)]
      }
      const documentLimit = Math.max(2, Math.min(limit, maxTokensPerDocument ?? limit))
      const sequences = [fit(query, limit), ...documents.map((document) => fit(document, documentLimit))]
      const [queryVector = new Float32Array(), ...vectors] = await encoder.encode(sequences, signal)
      return {
        logits: vectors.map((vector) => logitOfCosine(dot(queryVector, vector))),
        promptTokens: sequences.reduce((sum, ids) => sum + ids.length, 0),
      }
    },
    close: () => encoder.close(),
  }
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let index = 0; index < a.length; index++) sum += (a[index] ?? 0) * (b[index] ?? 0)
  return sum
}
