import { seededSamples } from '../host/onnx/seeded-samples.ts'
import { ggufFile, type Tensor, type Values } from './gguf-file.ts'

export const WIDTH = 32
const INNER = 64
const LAYERS = 2
const HEADS = 2
export const CONTEXT = 128
const specials = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
const NORMAL = 1
const CONTROL = 3

const pooling = { embedding: 1, ranking: 4 }

/**
 * A BERT that turns texts into vectors or scores pairs, like bge and bge-reranker: the same layers and names, at a size
 * that a test can make. Its weights are random but always the same, so its answers mean nothing and never change.
 */
export function smallEncoder(words: readonly string[], use: keyof typeof pooling): Buffer {
  const { values, tensors } = encoderParts(words, use)
  return ggufFile(values, tensors)
}

/** The same in two files, as `gguf-split` writes them. */
export function splitEncoder(words: readonly string[], use: keyof typeof pooling): readonly [Buffer, Buffer] {
  const { values, tensors } = encoderParts(words, use)
  const half = Math.ceil(tensors.length / 2)
  const split = (no: number): Values => ({
    'split.no': { uint16: no },
    'split.count': { uint16: 2 },
    'split.tensors.count': { int32: tensors.length },
  })
  return [ggufFile({ ...values, ...split(0) }, tensors.slice(0, half)), ggufFile(split(1), tensors.slice(half))]
}

function encoderParts(words: readonly string[], use: keyof typeof pooling) {
  const tokens = [...specials, ...words.map((word) => `\u2581${word}`)]
  const values = {
    'general.architecture': 'bert',
    'general.name': 'small encoder',
    'bert.context_length': CONTEXT,
    'bert.embedding_length': WIDTH,
    'bert.feed_forward_length': INNER,
    'bert.block_count': LAYERS,
    'bert.attention.head_count': HEADS,
    'bert.attention.layer_norm_epsilon': { float: 1e-12 },
    'bert.attention.causal': false,
    'bert.pooling_type': pooling[use],
    'tokenizer.ggml.model': 'bert',
    'tokenizer.ggml.pre': 'default',
    'tokenizer.ggml.tokens': tokens,
    'tokenizer.ggml.token_type': tokens.map((_, index) => (index < specials.length ? CONTROL : NORMAL)),
    'tokenizer.ggml.token_type_count': 2,
    'tokenizer.ggml.padding_token_id': 0,
    'tokenizer.ggml.unknown_token_id': 1,
    'tokenizer.ggml.cls_token_id': 2,
    'tokenizer.ggml.bos_token_id': 2,
    'tokenizer.ggml.seperator_token_id': 3,
    'tokenizer.ggml.eos_token_id': 3,
    'tokenizer.ggml.mask_token_id': 4,
  }
  const random = seededSamples(7)
  const weight = (name: string, ...dimensions: number[]): Tensor => ({
    name: `${name}.weight`,
    dimensions,
    data: Float32Array.from({ length: dimensions.reduce((a, b) => a * b) }, () => random() - 0.5),
  })
  const constant = (name: string, length: number, value: number): Tensor => ({
    name,
    dimensions: [length],
    data: new Float32Array(length).fill(value),
  })
  const linear = (name: string, from: number, to: number): Tensor[] => [
    weight(name, from, to),
    constant(`${name}.bias`, to, 0),
  ]
  const norm = (name: string): Tensor[] => [constant(`${name}.weight`, WIDTH, 1), constant(`${name}.bias`, WIDTH, 0)]
  const layers = Array.from({ length: LAYERS }, (_, layer) => {
    const name = (part: string): string => `blk.${layer}.${part}`
    return [
      ...['attn_q', 'attn_k', 'attn_v', 'attn_output'].flatMap((part) => linear(name(part), WIDTH, WIDTH)),
      ...norm(name('attn_output_norm')),
      ...linear(name('ffn_up'), WIDTH, INNER),
      ...linear(name('ffn_down'), INNER, WIDTH),
      ...norm(name('layer_output_norm')),
    ]
  })
  const tensors = [
    weight('token_embd', WIDTH, tokens.length),
    weight('token_types', WIDTH, 2),
    weight('position_embd', WIDTH, CONTEXT),
    ...norm('token_embd_norm'),
    ...layers.flat(),
    ...(use === 'ranking' ? [...linear('cls', WIDTH, WIDTH), ...linear('cls.output', WIDTH, 1)] : []),
  ]
  return { values, tensors }
}
