import { readFile } from 'node:fs/promises'
import { Tokenizer } from '@huggingface/tokenizers'
import type { Tensor } from 'onnxruntime-node'
import { contextLengthExceeded, EngineError } from '../runtime/engine-model.ts'
import type { EngineModel } from '../runtime/engine-model.ts'
import type { OnnxLoading } from './model-loading.ts'
import { floats, int64, output, run } from './session.ts'

export interface SentenceEncoder {
  contextTokens: number
  tokenize(text: string): number[]
  /** Unit-length vectors of token sequences, in the order given. */
  encode(sequences: readonly number[][], signal: AbortSignal): Promise<Float32Array[]>
  close(): Promise<void>
}

export async function openSentenceEncoder({
  open,
  path,
  contextTokens,
  settings,
}: OnnxLoading): Promise<SentenceEncoder> {
  const tokenizer = new Tokenizer(JSON.parse(await readFile(path('tokenizer'), 'utf8')) as object, {})
  const session = await open(path('model'))

  /** One text at a time: with eight-bit activations the neighbours in a batch would change a text's vector. */
  async function encodeOne(ids: readonly number[], signal: AbortSignal): Promise<Float32Array> {
    const dims = [1, ids.length]
    const inputs: Record<string, Tensor> = {
      input_ids: int64(ids, dims),
      attention_mask: int64(Array<number>(ids.length).fill(1), dims),
      token_type_ids: int64(Array<number>(ids.length).fill(0), dims),
    }
    const taken = Object.fromEntries(Object.entries(inputs).filter(([name]) => session.inputNames.includes(name)))
    const hidden = output(await run(session, taken, signal), 'last_hidden_state')
    return meanVector(floats(hidden), settings.pooling === 'cls' ? 1 : ids.length, hidden.dims[2] ?? 0)
  }

  return {
    contextTokens,
    tokenize: (text) => tokenizer.encode(text).ids,
    async encode(sequences, signal) {
      const vectors: Float32Array[] = []
      for (const ids of sequences) vectors.push(await encodeOne(ids, signal))
      return vectors
    },
    close: () => session.release(),
  }
}

/** The mean over the first `tokens` positions: all of them, or only the first where a model gathers itself there. */
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

export async function loadSentenceEncoder(loading: OnnxLoading): Promise<EngineModel> {
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
