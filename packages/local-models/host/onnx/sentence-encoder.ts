import { readFile } from 'node:fs/promises'
import { Tokenizer } from '@huggingface/tokenizers'
import type { Tensor } from 'onnxruntime-node'
import { HostError } from '../runtime/host-error.ts'
import { contextLengthExceeded } from '../runtime/context-length.ts'
import type { EngineModel } from '../runtime/engine-model.ts'
import type { OnnxLoading } from './model-loading.ts'
import { floats, int64, output, run } from './session.ts'

export interface SentenceEncoder {
  readonly contextTokens: number
  tokenize(text: string): readonly number[]
  /** Vectors of unit length, in the order of the token sequences. */
  encode(sequences: readonly (readonly number[])[], signal: AbortSignal): Promise<Float32Array[]>
  close(): Promise<void>
}

export async function loadSentenceEncoder(loading: OnnxLoading): Promise<EngineModel> {
  const encoder = await openSentenceEncoder(loading)
  return {
    memoryBytes: loading.memoryBytes,
    async embed({ texts, dimensions }, signal) {
      if (dimensions !== undefined) {
        throw new HostError('unsupported_parameter', "This model has a fixed size and does not support 'dimensions'.", {
          param: 'dimensions',
        })
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

export async function openSentenceEncoder(loading: OnnxLoading): Promise<SentenceEncoder> {
  const { open, path, contextTokens, settings } = loading
  const tokenizer = new Tokenizer(JSON.parse(await readFile(path('tokenizer'), 'utf8')) as object, {})
  const session = await open(path('model'))

  /** One text at a time: with eight-bit activations, the other texts of a batch would change a text's vector. */
  async function encodeOne(ids: readonly number[], signal: AbortSignal): Promise<Float32Array> {
    const dimensions = [1, ids.length]
    const inputs: Record<string, Tensor> = {
      input_ids: int64(ids, dimensions),
      attention_mask: int64(Array<number>(ids.length).fill(1), dimensions),
      token_type_ids: int64(Array<number>(ids.length).fill(0), dimensions),
    }
    const taken = Object.fromEntries(Object.entries(inputs).filter(([name]) => session.inputNames.includes(name)))
    const hidden = output(await run(session, taken, signal), 'last_hidden_state')
    const width = hidden.dims[2] ?? 0
    return unitLength(sumVector(floats(hidden), settings.pooling === 'cls' ? 1 : ids.length, width))
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

/** The sum over the first `tokens` positions, which has the direction of their mean. */
function sumVector(hidden: Float32Array, tokens: number, width: number): Float32Array {
  const sum = new Float32Array(width)
  for (let token = 0; token < tokens; token++) {
    for (let index = 0; index < width; index++) sum[index] = (sum[index] ?? 0) + (hidden[token * width + index] ?? 0)
  }
  return sum
}

function unitLength(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector) || 1
  return vector.map((value) => value / length)
}
