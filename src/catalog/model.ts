import type { LaneLimits } from '../queue/lane.ts'
import type { BatchPrices, ImagePrice } from '../billing/rating/price-kinds.ts'
import type { Rates } from '../billing/rating/rating.ts'

export const categories = ['llm', 'vision', 'embedding', 'reranker', 'image', 'audio'] as const
export type Category = (typeof categories)[number]

export const modes = ['serverless', 'dedicated'] as const
export type Mode = (typeof modes)[number]

/** The kinds of inference server that Weir can talk to; src/engines/dialects has the differences between them. */
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

/** The kinds that can apply an adapter to their model; src/engines/dialects/adapters.ts says how. */
export const adapterKinds = ['vllm', 'sglang', 'llamacpp'] as const satisfies readonly EngineKind[]
export type AdapterKind = (typeof adapterKinds)[number]

/** infinity counts characters unless it was started with lengths_via_tokenize, and its answers do not show which. */
export const miscountingKinds: ReadonlySet<EngineKind> = new Set(['infinity'])

/** How calls are balanced over the addresses of an engine: by the content of their caches, or by load. */
export const balances = ['prefix', 'least_busy'] as const
export type BalanceKind = (typeof balances)[number]

/** An engine as the catalog describes it. */
export interface EngineDescription {
  readonly kind: EngineKind
  readonly urls: readonly string[]
  /** The name that the engine knows the model by. */
  readonly model: string
  readonly apiKey: string | undefined
  /** The scale of a reranker's scores, if it differs from the usual one of its kind. */
  readonly scores: 'probability' | 'logit' | undefined
  /** Whether its token counts are billed, or an estimate because it counts something else. */
  readonly usage: 'reported' | 'estimated'
  readonly balance: BalanceKind
  /** How many tokens of prompts the cache of each address holds; undefined: what the server reports, if it does. */
  readonly cacheTokens: number | undefined
  /** Whether a workspace may benefit from cached prompts of another. */
  readonly sharePrefixes: boolean
  readonly firstByteTimeoutMs: number
  readonly idleTimeoutMs: number
  /** `path` is on the server itself, whatever the path in its address; undefined: the usual one of its kind. */
  readonly health: { readonly path: string | undefined; readonly intervalMs: number }
  /** How Weir starts it; undefined: it runs anyway. */
  readonly run?: EngineRun | undefined
}

/** A process that Weir starts when it is needed. */
export interface EngineRun {
  /** `${PORT}` stands for the port, here and in `env`. */
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly port: number
  /** On the server itself; undefined: the path of the health check. */
  readonly readyPath: string | undefined
  readonly startTimeoutMs: number
  /** undefined: it keeps running. */
  readonly stopAfterIdleMs: number | undefined
  /** Where it runs, and how much memory there is. */
  readonly device: { readonly name: string; readonly bytes: number } | undefined
  /** What it takes of its device; undefined: it is measured. */
  readonly bytes: number | undefined
  /** At most one engine of a group runs at a time. */
  readonly group: string | undefined
  readonly isPinned: boolean
  readonly isPreloaded: boolean
  /** What it takes of its device while it sleeps; undefined: it cannot sleep. */
  readonly sleep: { readonly bytes: number } | undefined
}

/** How to check the health of an engine. */
export interface HealthCheck {
  /** Relative to the engine's base address, or to its root when it starts with two slashes. */
  readonly path: string
  /** Whether the server answers immediately, even while it generates, and does not interrupt generation. */
  readonly isCheap: boolean
  readonly intervalMs: number
}

/** How to ask an engine how many tokens its cache holds. */
export interface CacheSizeQuery {
  /** As in `HealthCheck`. */
  readonly path: string
  /** undefined if the answer does not contain it. */
  read(answer: string): number | undefined
}

/** How to ask an engine for its own load. */
export interface LoadQuery {
  /** As in `HealthCheck`. */
  readonly path: string
  /** undefined if the answer does not contain it. */
  read(answer: string): ReportedLoad | undefined
}

/** The load of a server by its own count, which includes the calls of others. */
export interface ReportedLoad {
  readonly running: number
  readonly waiting: number
  /** The part of its cache that is used, from 0 to 1; undefined if it does not report it. */
  readonly cacheUse: number | undefined
}

/** How to load an adapter into a server. */
export interface AdapterLoading {
  /** The first request. */
  request(adapter: Adapter): AdapterRequest
  /** What its answer means. */
  read(adapter: Adapter, answer: AdapterAnswer): AdapterStep
  /** Whether a call was refused because the server does not have the adapter any more. */
  isMissing(refusal: AdapterAnswer): boolean
}

export interface AdapterRequest {
  readonly method: 'GET' | 'POST'
  /** As in `HealthCheck`. */
  readonly path: string
  readonly body?: unknown
}

export interface AdapterAnswer {
  readonly status: number
  readonly body: string
}

export type AdapterStep =
  /** Each call has these fields in addition. `first`: a request that has to succeed before that. */
  | { readonly kind: 'loaded'; readonly fields: AdapterFields; readonly first?: AdapterRequest }
  /** The reason is for the operator. */
  | { readonly kind: 'failed'; readonly reason: string }

export type AdapterFields = Readonly<Record<string, unknown>>

/** Requests to an engine's servers other than calls; missing ones are not made. */
export interface EngineQuestions {
  readonly health?: HealthCheck
  readonly cacheSize?: CacheSizeQuery | undefined
  readonly load?: LoadQuery | undefined
  readonly adapters?: AdapterLoading | undefined
  /** False: its servers refuse calls with the id of their request. */
  readonly takesRequestIds?: boolean
}

/** What an engine applies to its model, such as a LoRA: the result is another model. */
export interface Adapter {
  /** What the engine calls it. Another source has another name, so that the wrong one is never used. */
  readonly name: string
  /** A path on the engine's machine, or a name that the engine can download. */
  readonly source: string
}

/** One place where a model runs, with its own queue. */
export interface Deployment {
  /** The name of its queue: unique, and stable across reloads. */
  readonly lane: string
  readonly mode: Mode
  /** The workspace that a dedicated deployment is reserved for. */
  readonly workspace: string | undefined
  readonly engine: EngineDescription | undefined
  /** Missing unless the model is an adapter: the place is that of its base, with the same lane. */
  readonly adapter?: Adapter
  readonly limits: LaneLimits
  /** The limits in the file, if an operator has set others. */
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
  /** The prices of idle capacity; undefined: the normal ones. */
  readonly batchPrices: BatchPrices | undefined
  readonly serverless: Deployment | undefined
  readonly dedicated: readonly Deployment[]
  /** The id of the model that it is an adapter of. */
  readonly adapterOf?: string
}

/** Its own ones. An adapter has none: it uses those of its base. */
export function deploymentsOf(model: Model): readonly Deployment[] {
  if (model.adapterOf !== undefined) return []
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

/** Also those that are another form of a chat. */
export function everyEndpointOf(model: Model): readonly string[] {
  const endpoints = endpointsOf(model)
  return [
    ...endpoints,
    ...(endpoints.includes('/chat/completions') ? ['/responses', '/messages'] : []),
    ...(model.categories.includes('llm') ? ['/completions'] : []),
  ]
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
