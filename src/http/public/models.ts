import type { PriceBook } from '../../catalog/price-book.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import {
  categories,
  deploymentFor,
  endpointsOf,
  isVisible,
  modes,
  modesOf,
  type Category,
  type Mode,
  type Model,
} from '../../core/catalog.ts'
import { ApiError } from '../../core/errors.ts'
import { formatAud } from '../../core/money/money.ts'
import { formatPriceList } from '../../core/money/rating.ts'
import type { Workspace } from '../../ports/accounts.ts'
import { operations } from './openapi.ts'
import { invalidParameter } from '../../core/parameter-errors.ts'

/** GET /models, /models/detail and /models/{slug}: the catalog as one workspace sees it. */
export interface ModelsParts {
  readonly catalog: Catalog
  readonly prices: PriceBook
  /** Whether a request to the model could be served now. */
  isUp(model: Model, workspace: string): boolean
}

const scopes = ['callable', 'catalog'] as const

export function listModels(parts: ModelsParts, workspace: Workspace, query: URLSearchParams): object {
  const scope = oneOf(query, 'scope', scopes) ?? 'callable'
  const category = oneOf(query, 'category', categories)
  const mode = oneOf(query, 'mode', modes)
  const parameters = parameterNames(query, parts.catalog.models())
  const data = parts.catalog
    .models()
    .filter((model) => isVisible(model, workspace.name) && matches(model, category, mode, parameters))
    .map((model) => toEntry(parts, model, workspace))
    .filter((entry) => scope === 'catalog' || entry.available)
  return { object: 'list', data }
}

export function describeModel(parts: ModelsParts, workspace: Workspace, name: string | null): object {
  if (!name) {
    throw new ApiError('missing_required_parameter', "Missing required parameter: 'slug', the slug of a model.", {
      param: 'slug',
    })
  }
  const model = parts.catalog.find(name, workspace.name)
  if (!model) {
    throw new ApiError('model_not_found', `The model '${name.slice(0, 200)}' does not exist.`, { param: 'slug' })
  }
  const limits = deploymentFor(model, workspace.name)?.limits
  return {
    ...toEntry(parts, model, workspace),
    description: model.description,
    aliases: model.aliases,
    queue_limits: limits
      ? {
          token_budget: limits.tokenBudget,
          max_concurrent_requests: limits.maxConcurrentRequests,
          max_queue_depth: limits.maxQueueDepth,
          max_wait_ms: limits.maxWaitMs,
        }
      : null,
  }
}

function matches(model: Model, category: Category | undefined, mode: Mode | undefined, parameters: readonly string[]) {
  return (
    (!category || model.categories.includes(category)) &&
    (!mode || modesOf(model).includes(mode)) &&
    parameters.every((name) => model.supportedParameters.includes(name))
  )
}

function toEntry(parts: ModelsParts, model: Model, workspace: Workspace) {
  const reason = unavailableReason(parts, model, workspace.name)
  return {
    id: model.id,
    object: 'model',
    created: Math.floor(parts.prices.firstPricedAt(model) / 1000),
    owned_by: model.id.split('/')[0],
    name: model.name,
    context_length: model.contextLength,
    max_completion_tokens: model.maxCompletionTokens,
    default_max_tokens: model.defaultMaxTokens,
    architecture: architectureOf(model),
    pricing: pricingOf(parts, model, workspace),
    model_categories: model.categories,
    supported_parameters: model.supportedParameters,
    modes: modesOf(model),
    endpoints: endpointsOf(model),
    available: reason === undefined,
    ...(reason === undefined ? {} : { unavailable_reason: reason }),
  }
}

function unavailableReason(parts: ModelsParts, model: Model, workspace: string): string | undefined {
  if (!deploymentFor(model, workspace) && model.dedicated.length > 0) return 'model_access_denied'
  return parts.isUp(model, workspace) ? undefined : 'model_not_configured'
}

const inputByCategory: Readonly<Record<Category, string>> = {
  llm: 'text',
  vision: 'image',
  embedding: 'text',
  reranker: 'text',
  image: 'text',
  audio: 'audio',
}

const outputByCategory: Readonly<Record<Category, string>> = {
  llm: 'text',
  vision: 'text',
  embedding: 'embedding',
  reranker: 'score',
  image: 'image',
  audio: 'text',
}

function architectureOf(model: Model): object {
  const inputs = new Set(model.categories.map((category) => inputByCategory[category]))
  // A question about an image is text.
  if (model.categories.includes('vision')) inputs.add('text')
  const outputs = new Set(model.categories.map((category) => outputByCategory[category]))
  const inputModalities = ['text', 'image', 'audio'].filter((it) => inputs.has(it))
  return {
    modality: `${inputModalities.join('+')}->${[...outputs].join('+')}`,
    input_modalities: inputModalities,
    output_modalities: [...outputs],
    tokenizer: model.tokenizer ?? null,
    instruct_type: model.instructType ?? null,
  }
}

function pricingOf(parts: ModelsParts, model: Model, workspace: Workspace): object {
  const { rates } = parts.prices.priceFor(model, workspace.id)
  const list = formatPriceList(rates)
  const { image_prices: ofImages = [] } = parts.prices.pricesFor(model, workspace.id)
  const own = model.dedicated.find((deployment) => deployment.workspace === workspace.name)
  const perHour = (own ?? model.dedicated.find((deployment) => deployment.perHour))?.perHour
  return {
    currency: 'AUD',
    tax: 'excl_gst',
    prompt: formatAud(rates.inputPerToken, 0),
    completion: formatAud(rates.outputPerToken, 0),
    input_cache_read: rates.cachedInputPerToken === null ? null : formatAud(rates.cachedInputPerToken, 0),
    per_million_tokens: {
      input: list.input_per_million,
      output: list.output_per_million,
      cached_input: list.cached_input_per_million ?? null,
    },
    per_image: list.per_image ?? null,
    image_prices: ofImages.map((it) => ({ size: it.size, quality: it.quality ?? null, per_image: it.per_image })),
    per_audio_minute: list.per_audio_minute ?? null,
    dedicated_per_hour: perHour ?? null,
    ...(perHour === undefined ? {} : { dedicated_per_hour_indicative: true }),
  }
}

/** What any endpoint takes; an operator may list more for a model. */
const knownParameters = new Set(
  operations.flatMap(({ request }) => Object.keys((request && 'properties' in request && request.properties) || {})),
)

/** A name that nothing takes is a slip, and would only find nothing. */
function parameterNames(query: URLSearchParams, models: readonly Model[]): readonly string[] {
  const names = query.get('supported_parameters')?.split(',').filter(Boolean) ?? []
  const isKnown = (name: string): boolean =>
    knownParameters.has(name) || models.some((model) => model.supportedParameters.includes(name))
  if (names.every(isKnown)) return names
  throw invalidParameter(
    'invalid_value',
    'supported_parameters',
    'a comma list of parameters, such as temperature,tools',
  )
}

function oneOf<Value extends string>(
  query: URLSearchParams,
  name: string,
  allowed: readonly Value[],
): Value | undefined {
  const value = query.get(name)
  if (value === null) return undefined
  if ((allowed as readonly string[]).includes(value)) return value as Value
  throw invalidParameter('invalid_value', name, `one of ${allowed.join(', ')}`)
}
