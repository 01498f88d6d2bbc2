import type { LaneLimits } from './admission/lane.ts'
import type { ImagePrice } from './money/image-prices.ts'
import type { Rates } from './money/rating.ts'

export const categories = ['llm', 'vision', 'embedding', 'reranker', 'image', 'audio'] as const
export type Category = (typeof categories)[number]

export const modes = ['serverless', 'dedicated'] as const
export type Mode = (typeof modes)[number]

/** The servers people run, by how they word things: see engines/dialects. */
export const engineKinds = [
  'embedded',
  'openai',
  'vllm',
  'sglang',
  'llamacpp',
  'ollama',
  'tei',
  'nim',
  'cohere',
  'jina',
  'localai',
  'sdcpp',
  'speaches',
  'whispercpp',
] as const
export type EngineKind = (typeof engineKinds)[number]

/** An upstream as the catalog describes it. */
export interface EngineDescription {
  readonly kind: EngineKind
  readonly urls: readonly string[]
  /** The model's name at the engine. */
  readonly model: string
  readonly apiKey: string | undefined
  /** What the scores of a reranker are, where the operator knows better than its kind. */
  readonly scores: 'probability' | 'logit' | undefined
  readonly firstByteTimeoutMs: number
  readonly idleTimeoutMs: number
}

/** One place a model runs, with a queue of its own. */
export interface Deployment {
  /** Unique and stable over reloads: it names the queue. */
  readonly lane: string
  readonly mode: Mode
  /** The one workspace a dedicated deployment is reserved for. */
  readonly workspace: string | undefined
  readonly engine: EngineDescription | undefined
  readonly limits: LaneLimits
  /** AUD an hour, indicative, as written. */
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
  /** Only these workspaces see the model at all; undefined means everyone. */
  readonly visibleTo: readonly string[] | undefined
  readonly rates: Rates
  /** Of the sizes and qualities that have a price of their own. */
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

/** A workspace's own capacity comes before the shared one. */
export function deploymentFor(model: Model, workspace: string): Deployment | undefined {
  return model.dedicated.find((deployment) => deployment.workspace === workspace) ?? model.serverless
}

export function modesOf(model: Model): readonly Mode[] {
  return modes.filter((mode) => (mode === 'serverless' ? model.serverless !== undefined : model.dedicated.length > 0))
}

/** The paths below /api/v1 that a model is called on (SPEC 1.4). */
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
