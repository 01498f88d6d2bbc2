import { Type, type Static } from 'typebox'
import type { PriceBook } from '../../billing/prices/price-book.ts'
import type { Catalog } from '../catalog.ts'
import {
  categories,
  deploymentFor,
  endpointsOf,
  everyEndpointOf,
  isVisible,
  modes,
  modesOf,
  type Category,
  type Deployment,
  type Mode,
  type Model,
} from '../model.ts'
import { ApiError } from '../../shared/errors.ts'
import { formatAud } from '../../shared/money/money.ts'
import { formatPriceList, type PriceList } from '../../billing/rating/rating.ts'
import { invalidParameter } from '../../shared/json/schema-check.ts'
import { withoutDeployment, withoutUsableEngine, type Unavailable } from '../unavailable-model.ts'
import type { Caller, Workspace } from '../../workspaces/workspace.ts'
import type { Engine } from '../../engines/engine.ts'
import { jsonResponse } from '../../server/route.ts'
import { keyRoute, type KeyRoute } from '../../server/key-route.ts'
import { EXAMPLE_MODEL } from '../../server/common-schema.ts'
import { engineStartView, modelDetailSchema, modelListSchema } from './model-schema.ts'

/** The catalog as one workspace sees it. */
export interface ModelsParts {
  readonly catalog: Catalog
  readonly prices: PriceBook
  engineOf(deployment: Deployment): Engine | undefined
}

const listQuery = Type.Object({
  scope: Type.Optional(
    Type.Enum(['callable', 'catalog'], {
      description: 'callable (default), or catalog for every model with its availability.',
    }),
  ),
  category: Type.Optional(
    Type.Enum([...categories], { description: `Only models of this category: ${categories.join(', ')}.` }),
  ),
  mode: Type.Optional(
    Type.Enum([...modes], { description: `Only models that are served in this mode: ${modes.join(', ')}.` }),
  ),
  supported_parameters: Type.Optional(
    Type.String({ description: 'A comma list. Only models that take all of these parameters.' }),
  ),
})

const slugDescription = { description: 'The slug of the model, or a short id.', example: EXAMPLE_MODEL }

const detailQuery = Type.Object({ slug: Type.String(slugDescription) })

/** `knownParameters`: the parameters that any endpoint accepts. */
export function modelRoutes(parts: ModelsParts, knownParameters: ReadonlySet<string>): readonly KeyRoute[] {
  return [
    keyRoute({
      method: 'GET',
      path: '/models',
      id: 'models',
      summary: 'List models',
      description: 'The models that this key can call now, with the prices that apply to its workspace.',
      query: listQuery,
      response: jsonResponse(modelListSchema),
      errors: ['invalid_value'],
      answer: async ({ exchange, caller, query }) =>
        exchange.sendJson(JSON.stringify(listModels(parts, caller, query, knownParameters))),
    }),
    keyRoute({
      method: 'GET',
      path: '/models/detail',
      id: 'modelsDetail',
      summary: 'One model',
      description: 'A single model with its description, short ids and queue limits.',
      query: detailQuery,
      response: jsonResponse(modelDetailSchema),
      errors: ['missing_required_parameter', 'model_not_found'],
      answer: async ({ exchange, caller, query }) =>
        exchange.sendJson(JSON.stringify(describeModel(parts, caller, query.slug))),
    }),
    keyRoute({
      method: 'GET',
      path: '/models/{slug+}',
      id: 'modelsSlug',
      summary: 'One model, by path',
      description:
        'The same, for the retrieve() function of SDKs. /models/meta/x and /models/meta%2Fx both name the model meta/x.',
      parameters: { slug: slugDescription },
      response: jsonResponse(modelDetailSchema),
      errors: ['model_not_found'],
      answer: async ({ exchange, caller, parameters }) =>
        exchange.sendJson(JSON.stringify(describeModel(parts, caller, parameters.slug))),
    }),
  ]
}

/** Who looks at the catalog: a key sees the models that it may call. */
type Viewer = Pick<Caller, 'workspace' | 'rules'>

function mayCall(rules: Viewer['rules'], model: Model): boolean {
  return !rules || (rules.allowsModel(model) && everyEndpointOf(model).some((path) => rules.allowsEndpoint(path)))
}

export function listModels(
  parts: ModelsParts,
  { workspace, rules }: Viewer,
  { scope = 'callable', category, mode, supported_parameters: names = '' }: Static<typeof listQuery>,
  knownParameters: ReadonlySet<string> = new Set(),
): object {
  const parameters = parameterNames(names, knownParameters, parts.catalog.models())
  const data = parts.catalog
    .models()
    .filter(
      (model) =>
        isVisible(model, workspace.name) && mayCall(rules, model) && matches(model, category, mode, parameters),
    )
    .map((model) => toEntry(parts, model, workspace))
    .filter((entry) => scope === 'catalog' || entry.available)
  return { object: 'list', data }
}

function describeModel(parts: ModelsParts, { workspace, rules }: Viewer, name: string): object {
  if (name === '') {
    throw new ApiError('missing_required_parameter', "Missing required parameter: 'slug', the slug of a model.", {
      param: 'slug',
    })
  }
  const model = parts.catalog.find(name, workspace.name)
  if (!model || !mayCall(rules, model)) {
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
          max_requests_per_workspace: limits.maxRequestsPerWorkspace,
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
  const unavailable = unavailableFor(parts, model, workspace.name)
  const deployment = deploymentFor(model, workspace.name)
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
    available: unavailable === undefined,
    ...(unavailable && {
      unavailable_reason: unavailable.reason,
      unavailable_message: unavailable.error.message,
    }),
    engine: engineStartView(deployment && parts.engineOf(deployment)),
  }
}

/** Why a request to the model would be refused now; undefined if it would not. */
export function unavailableFor(parts: ModelsParts, model: Model, workspace: string): Unavailable | undefined {
  const deployment = deploymentFor(model, workspace)
  if (!deployment) return withoutDeployment(model)
  const engine = parts.engineOf(deployment)
  return engine?.usable() ? undefined : withoutUsableEngine(model, deployment, engine?.missingFiles?.())
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
  // A question about an image is text, too.
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
  const { image_prices: imagePrices = [], batch } = parts.prices.pricesFor(model, workspace.id)
  const batchList = formatPriceList(parts.prices.priceFor(model, workspace.id, 'batch').rates)
  const own = model.dedicated.find((deployment) => deployment.workspace === workspace.name)
  const perHour = (own ?? model.dedicated.find((deployment) => deployment.perHour))?.perHour
  return {
    currency: 'AUD',
    tax: 'excl_gst',
    prompt: formatAud(rates.inputPerToken, 0),
    completion: formatAud(rates.outputPerToken, 0),
    input_cache_read: rates.cachedInputPerToken === null ? null : formatAud(rates.cachedInputPerToken, 0),
    per_million_tokens: perMillionTokens(list),
    per_image: list.per_image ?? null,
    image_prices: imagePrices.map((it) => ({ size: it.size, quality: it.quality ?? null, per_image: it.per_image })),
    per_audio_minute: list.per_audio_minute ?? null,
    batch: batch === undefined ? null : { per_million_tokens: perMillionTokens(batchList) },
    dedicated_per_hour: perHour ?? null,
    ...(perHour === undefined ? {} : { dedicated_per_hour_indicative: true }),
  }
}

function perMillionTokens(list: PriceList): object {
  return {
    input: list.input_per_million,
    output: list.output_per_million,
    cached_input: list.cached_input_per_million ?? null,
  }
}

/** Refuses names that no endpoint and no model knows: they are typos, and would silently match nothing. */
function parameterNames(
  text: string,
  knownParameters: ReadonlySet<string>,
  models: readonly Model[],
): readonly string[] {
  const names = text.split(',').filter(Boolean)
  const isKnown = (name: string): boolean =>
    knownParameters.has(name) || models.some((model) => model.supportedParameters.includes(name))
  if (names.every(isKnown)) return names
  throw invalidParameter(
    'invalid_value',
    'supported_parameters',
    'a comma list of parameters, such as temperature,tools',
  )
}
