import { readFile } from 'node:fs/promises'
import { Tokenizer } from '@huggingface/tokenizers'
import { contextLengthExceeded, EngineError } from '../engine-model.ts'
import type { EngineModel } from '../engine-model.ts'
import type { ModelLoading } from './runtime.ts'
import { floats, int64, output, run } from './session.ts'

/** Texts of one padded batch: more gains nothing on a CPU and makes an abort slow. */
const batchSize = 8

export interface SentenceEncoder {
  contextTokens: number
  tokenize(text: string): number[]
  /** Unit-length vectors of token sequences, in the order given. */
  encode(sequences: readonly number[][], signal: AbortSignal): Promise<Float32Array[]>
  close(): Promise<void>
}

export async function openSentenceEncoder({ open, path }: ModelLoading): Promise<SentenceEncoder> {
  const tokenizer = new Tokenizer(JSON.parse(await readFile(path('tokenizer'), 'utf8')) as object, {})
  const session = await open(path('model'))

  async function encodeBatch(batch: readonly number[][], signal: AbortSignal): Promise<Float32Array[]> {
    const length = Math.max(...batch.map((ids) => ids.length))
    const dims = [batch.length, length]
    const padded = (value: (id: number) => number) =>
      int64(
        batch.flatMap((ids) => Array.from({ length }, (_, index) => (index < ids.length ? value(ids[index] ?? 0) : 0))),
        dims,
      )
    const inputs = { input_ids: padded((id) => id), attention_mask: padded(() => 1), token_type_ids: padded(() => 0) }
    const hidden = output(await run(session, inputs, signal), 'last_hidden_state')
    const width = hidden.dims[2] ?? 0
    return batch.map((ids, row) => meanVector(floats(hidden).subarray(row * length * width), ids.length, width))
  }

  return {
    contextTokens: 512,
    tokenize: (text) => tokenizer.encode(text).ids,
    async encode(sequences, signal) {
      // Neighbours in length share a batch, so little is wasted on padding.
      const order = [...sequences.keys()].sort((a, b) => (sequences[a]?.length ?? 0) - (sequences[b]?.length ?? 0))
      const vectors: Float32Array[] = []
      for (let start = 0; start < order.length; start += batchSize) {
        const rows = order.slice(start, start + batchSize)
        const encoded = await encodeBatch(
          rows.map((row) => sequences[row] ?? []),
          signal,
        )
        rows.forEach((row, index) => (vectors[row] = encoded[index] ?? new Float32Array()))
      }
      return vectors
    },
    close: () => session.release(),
  }
}

function meanVector(hidden: Float32Array, tokens: number, width: number): Float32Array {
  const mean = new Float32Array(width)
  for (let token = 0; token < tokens; token++) {
    for (let index = 0; index < width; index++) mean[index] = (mean[index] ?? 0) + (hidden[token * width + index] ?? 0)
  }
  return normalise(mean)
}

function normalise(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector) || 1
  return vector.map((value) => value / length)
}

export async function loadSentenceEncoder(loading: ModelLoading): Promise<EngineModel> {
  const encoder = await openSentenceEncoder(loading)
  return {
    memoryBytes: loading.memoryBytes,
    async embed({ texts, dimensions }, signal) {
      if (dimensions !== undefined) {
        throw new EngineError(
          400,
          'unsupported_parameter',
          "This model has a fixed size: 'dimensions' is not supported.",
          'dimensions',
        )
      }
      const sequences = texts.map((text) => encoder.tokenize(text))
      const longest = Math.max(...sequences.map((ids) => ids.length))
      if (longest > encoder.contextTokens) throw contextLengthExceeded(encoder.contextTokens, longest)
      const vectors = await encoder.encode(sequences, signal)
      return { vectors, promptTokens: sequences.reduce((sum, ids) => sum + ids.length, 0) }
    },
    close: () => encoder.close(),
  }
}
