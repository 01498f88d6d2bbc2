import type { LaneLimits } from './admission/lane.ts'
import type { ImagePrice } from './money/image-prices.ts'
import type { Rates } from './money/rating.ts'

export const categories = ['llm', 'vision', 'embedding', 'reranker', 'image', 'audio'] as const
export type Category = (typeof categories)[number]

export const modes = ['serverless', 'dedicated'] as const
export type Mode = (typeof modes)[number]

/** The kinds of inference server that Weir can talk to; src/dialects has the differences between them. */
export const engineKinds = [
  'embedded',
  'openai',
  'vllm',
  'sglang',
  'llamacpp',
  'llamacpp_python',
  'ollama',
  'tei',
  'infinity',
  'nim',
  'litellm',
  'cohere',
  'jina',
  'localai',
  'sdcpp',
  'speaches',
  'whispercpp',
] as const
export type EngineKind = (typeof engineKinds)[number]

/** infinity counts characters unless it was started with lengths_via_tokenize, and an answer does not say which. */
export const miscountingKinds: ReadonlySet<EngineKind> = new Set(['infinity'])

/** How the addresses of an engine share the calls: by what is in their caches, or by how busy they are. */
export const balances = ['prefix', 'least_busy'] as const
export type BalanceKind = (typeof balances)[number]

/** An engine as the catalog describes it. */
export interface EngineDescription {
  readonly kind: EngineKind
  readonly urls: readonly string[]
  /** The name that the engine knows the model by. */
  readonly model: string
  readonly apiKey: string | undefined
  /** What a reranker's scores are, when they differ from what its kind usually returns. */
  readonly scores: 'probability' | 'logit' | undefined
  /** Whether its token counts are billed, or an estimate because it counts something else. */
  readonly usage: 'reported' | 'estimated'
  readonly balance: BalanceKind
  /** How many tokens of prompts the cache of each address holds; undefined: what the server says, if it does. */
  readonly cacheTokens: number | undefined
  /** Whether one workspace may profit from what another one sent. */
  readonly sharePrefixes: boolean
  readonly firstByteTimeoutMs: number
  readonly idleTimeoutMs: number
  /** `path` is on the server itself, whatever the path in its address; undefined: the usual one of its kind. */
  readonly health: { readonly path: string | undefined; readonly intervalMs: number }
}

/** How an engine is asked whether it is well. */
export interface HealthCheck {
  /** Relative to the engine's base address, or to its root when it starts with two slashes. */
  readonly path: string
  /** Whether the server answers at once, even while it generates, and does not interrupt what it generates. */
  readonly isCheap: boolean
  readonly intervalMs: number
}

/** How an engine is asked how many tokens its cache holds. */
export interface CacheSizeQuestion {
  /** As in `HealthCheck`. */
  readonly path: string
  /** undefined if the answer does not say. */
  read(answer: string): number | undefined
}

/** What the servers of an engine are asked besides their work. Those that are missing are not asked. */
export interface EngineQuestions {
  readonly health?: HealthCheck
  readonly cacheSize?: CacheSizeQuestion | undefined
}

/** One place where a model runs, with its own queue. */
export interface Deployment {
  /** The name of its queue: unique, and stable across reloads. */
  readonly lane: string
  readonly mode: Mode
  /** The workspace that a dedicated deployment is reserved for. */
  readonly workspace: string | undefined
  readonly engine: EngineDescription | undefined
  readonly limits: LaneLimits
  /** What the file says, where an operator has set other limits. */
  readonly limitsInFile?: LaneLimits
  /** An indicative price in AUD per hour, as written in the catalog. */
  readonly perHour: string | undefined
}

export interface Model {
  readonly id: string
  readonly aliases: readonly string[]
  readonly name: string
  readonly description: string
  readonly categories: readonly Category[]
  readonly contextLength: number
  readonly maxCompletionTokens: number
  readonly defaultMaxTokens: number
  readonly supportedParameters: readonly string[]
  readonly tokenizer: string | undefined
  readonly instructType: string | undefined
  readonly rerankSchema: 'documents' | 'passages' | undefined
  /** The only workspaces that see the model; undefined means everyone. */
  readonly visibleTo: readonly string[] | undefined
  readonly rates: Rates
  /** Prices of the sizes and qualities that have their own. */
  readonly imagePrices: readonly ImagePrice[]
  readonly serverless: Deployment | undefined
  readonly dedicated: readonly Deployment[]
}

export function deploymentsOf(model: Model): readonly Deployment[] {
  return model.serverless ? [model.serverless, ...model.dedicated] : model.dedicated
}

export function isVisible(model: Model, workspace: string): boolean {
  return model.visibleTo === undefined || model.visibleTo.includes(workspace)
}

/** Prefers the workspace's own capacity over the shared one. */
export function deploymentFor(model: Model, workspace: string): Deployment | undefined {
  return model.dedicated.find((deployment) => deployment.workspace === workspace) ?? model.serverless
}

export function modesOf(model: Model): readonly Mode[] {
  return modes.filter((mode) => (mode === 'serverless' ? model.serverless !== undefined : model.dedicated.length > 0))
}

/** The paths below /api/v1 that the model can be called on. */
export function endpointsOf(model: Model): readonly string[] {
  const endpoints = new Set<string>()
  for (const category of model.categories) for (const path of endpointsByCategory(category, model)) endpoints.add(path)
  return [...endpoints]
}

function endpointsByCategory(category: Category, model: Model): readonly string[] {
  switch (category) {
    case 'llm':
    case 'vision':
      return ['/chat/completions']
    case 'embedding':
      return ['/embeddings']
    case 'reranker':
      return [model.rerankSchema === 'passages' ? '/reranking' : '/rerank']
    case 'image':
      return ['/images/generations']
    case 'audio':
      return ['/audio/transcriptions', '/audio/translations']
  }
}
