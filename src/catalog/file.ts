import { Type, type Static, type TString } from 'typebox'
import {
  balances,
  categories,
  engineKinds,
  miscountingKinds,
  type Deployment,
  type EngineDescription,
  type Model,
} from './model.ts'
import { parseCheckedYaml, type CheckedYaml } from '../shared/checked-yaml.ts'
import { withAdapters } from './adapters.ts'
import { devicesSchema, engineRunSchema, TakenPorts, toEngineRun, type Devices } from './engine-run.ts'
import { deploymentLimitsSchema, toLimits } from './file-limits.ts'
import { pricesByKind } from '../billing/rating/price-kinds.ts'
import { freeRates, parsePriceList, priceRule } from '../billing/rating/rating.ts'
import { isTokenizer, tokenizerNames } from '../shared/tokens/token-estimate.ts'
import type { Path } from '../shared/json/schema-check.ts'

/** Reads the description of models: `models:` in weir.yaml, or a separate catalog file. */

const decimal = (): TString =>
  Type.String({
    maxLength: 22,
    pattern: '^\\d{1,9}(\\.\\d{1,12})?$',
    expected: 'a decimal in quotes, such as "0.20"',
  })

const tokenPrices = {
  input_per_million: Type.Optional(decimal()),
  output_per_million: Type.Optional(decimal()),
  cached_input_per_million: Type.Optional(decimal()),
}

export const priceListSchema = Type.Object(
  {
    ...tokenPrices,
    per_image: Type.Optional(decimal()),
    image_prices: Type.Optional(
      Type.Array(
        Type.Object(
          {
            size: Type.String({
              maxLength: 9,
              pattern: '^(auto|[1-9][0-9]{1,3}x[1-9][0-9]{1,3})$',
              expected: 'a size such as 1024x1024, or auto for requests without a size',
            }),
            quality: Type.Optional(Type.Enum(['standard', 'hd', 'low', 'medium', 'high'])),
            per_image: decimal(),
          },
          { additionalProperties: false },
        ),
        { maxItems: 100 },
      ),
    ),
    per_audio_minute: Type.Optional(decimal()),
    batch: Type.Optional(
      Type.Union([decimal(), Type.Object(tokenPrices, { additionalProperties: false })], {
        description:
          'The prices of the tiers flex and batch: a factor of the normal prices of tokens, such as "0.5", or rates. Only a model with it sells its idle capacity to flex requests.',
      }),
    ),
  },
  { additionalProperties: false },
)

const engineSchema = Type.Object(
  {
    kind: Type.Enum([...engineKinds]),
    urls: Type.Optional(
      Type.Array(Type.String({ pattern: '^(https?://|unix:/)', expected: 'an http://, https:// or unix:/ address' }), {
        minItems: 1,
        maxItems: 256,
      }),
    ),
    model: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    file: Type.Optional(
      Type.String({ pattern: '^/.+[.]gguf$', maxLength: 4096, expected: 'the absolute path of a .gguf file' }),
    ),
    api_key_env: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
    scores: Type.Optional(Type.Enum(['probability', 'logit'])),
    usage: Type.Optional(Type.Enum(['reported', 'estimated'])),
    balance: Type.Optional(Type.Enum([...balances])),
    cache_tokens: Type.Optional(Type.Integer({ minimum: 1000, maximum: 1_000_000_000 })),
    share_prefixes: Type.Optional(Type.Boolean()),
    first_byte_timeout_ms: Type.Optional(Type.Integer({ minimum: 1000, maximum: 7_200_000 })),
    idle_timeout_ms: Type.Optional(Type.Integer({ minimum: 1000, maximum: 7_200_000 })),
    health: Type.Optional(
      Type.Object(
        {
          path: Type.Optional(
            Type.String({
              pattern: '^/[!-~]*$',
              maxLength: 1000,
              expected: 'a path on the server that begins with "/", such as /health',
            }),
          ),
          interval_ms: Type.Optional(Type.Integer({ minimum: 1000, maximum: 3_600_000 })),
        },
        { additionalProperties: false },
      ),
    ),
    run: Type.Optional(engineRunSchema),
  },
  { additionalProperties: false },
)

const slug = Type.String({
  pattern: '^[a-z0-9][a-z0-9._-]{0,63}/[a-zA-Z0-9][a-zA-Z0-9._:-]{0,127}$',
  expected: 'a slug <provider>/<model> made of letters, digits, ".", "_", ":" and "-"',
})

const workspaceName = Type.String({ minLength: 1, maxLength: 64 })

const modelSchema = Type.Object(
  {
    id: slug,
    aliases: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 128 }), { maxItems: 64 })),
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    description: Type.Optional(Type.String({ maxLength: 4000 })),
    categories: Type.Array(Type.Enum([...categories]), { minItems: 1, maxItems: 6 }),
    context_length: Type.Integer({ minimum: 1, maximum: 100_000_000 }),
    max_completion_tokens: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000_000 })),
    default_max_tokens: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000_000 })),
    supported_parameters: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { maxItems: 128 })),
    tokenizer: Type.Optional(Type.String()),
    instruct_type: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
    rerank_schema: Type.Optional(Type.Enum(['documents', 'passages'])),
    visible_to: Type.Optional(Type.Array(workspaceName, { minItems: 1, maxItems: 10_000 })),
    pricing: Type.Optional(priceListSchema),
    adapter_of: Type.Optional(slug),
    adapter_source: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
    serverless: Type.Optional(
      Type.Object(
        { engine: Type.Optional(engineSchema), limits: Type.Optional(deploymentLimitsSchema) },
        { additionalProperties: false },
      ),
    ),
    dedicated: Type.Optional(
      Type.Array(
        Type.Object(
          {
            workspace: workspaceName,
            engine: Type.Optional(engineSchema),
            limits: Type.Optional(deploymentLimitsSchema),
            per_hour: Type.Optional(decimal()),
          },
          { additionalProperties: false },
        ),
        { maxItems: 1000 },
      ),
    ),
  },
  { additionalProperties: false },
)

export const modelsSchema = Type.Array(modelSchema, { maxItems: 10_000 })

const catalogSchema = Type.Object(
  { models: modelsSchema, devices: Type.Optional(devicesSchema) },
  { additionalProperties: false },
)

export type ModelEntry = Static<typeof modelSchema>

/** The catalog's file, if it has one, and how to read it. */
export interface CatalogSource {
  readonly file: string | undefined
  read(): readonly Model[]
}

/** Looks up a secret that the file refers to by name. */
export type Secrets = (name: string) => string | undefined

export function parseCatalog(text: string, file: string, secrets: Secrets): readonly Model[] {
  const yaml = parseCheckedYaml(text, file, catalogSchema)
  const models = toModels(yaml.data, yaml, secrets)
  yaml.requireCorrect()
  return models
}

/** Reports mistakes to `yaml`. Entries that violate the schema are skipped, since they are reported already. */
export function toModels(
  {
    models: entries,
    devices,
  }: { readonly models?: readonly ModelEntry[] | undefined; readonly devices?: Devices | undefined },
  yaml: CheckedYaml<unknown>,
  secrets: Secrets,
): readonly Model[] {
  const reading = { yaml, secrets, devices: yaml.isBroken(['devices']) ? undefined : devices, ports: new TakenPorts() }
  const taken = new Set<string>()
  if (!Array.isArray(entries)) return []
  const models = (entries as readonly ModelEntry[]).flatMap((entry, index) => {
    const path = ['models', index] as const
    if (yaml.isBroken(path)) return []
    for (const [name, where] of [
      [entry.id, 'id'],
      ...(entry.aliases ?? []).map((alias) => [alias, 'aliases'] as const),
    ] as const) {
      if (taken.has(name)) yaml.mistake([...path, where], `"${name}" is already the name of a model`)
      taken.add(name)
    }
    return [{ entry, path, model: toModel(entry, path, reading) }]
  })
  return withAdapters(models, yaml)
}

/** What the entries of a file are read with. */
interface Reading {
  readonly yaml: CheckedYaml<unknown>
  readonly secrets: Secrets
  readonly devices: Devices | undefined
  readonly ports: TakenPorts
}

function toModel(entry: ModelEntry, path: Path, reading: Reading): Model {
  const { yaml } = reading
  const generates = doesGenerate(entry)
  const maxCompletionTokens = entry.max_completion_tokens ?? (generates ? entry.context_length : 0)
  if (maxCompletionTokens > entry.context_length) {
    yaml.mistake([...path, 'max_completion_tokens'], `must be at most context_length (${entry.context_length})`)
  }
  const defaultMaxTokens = entry.default_max_tokens ?? Math.min(1024, maxCompletionTokens)
  if (defaultMaxTokens > maxCompletionTokens) {
    yaml.mistake([...path, 'default_max_tokens'], `must be at most max_completion_tokens (${maxCompletionTokens})`)
  }
  if (entry.categories.includes('reranker') && !entry.rerank_schema) {
    yaml.mistake([...path, 'rerank_schema'], 'is required for a reranker: one of documents, passages')
  }
  if (entry.tokenizer !== undefined && !isTokenizer(entry.tokenizer)) {
    yaml.mistake([...path, 'tokenizer'], `must be one of ${tokenizerNames.join(', ')}; leave it out if unsure`)
  }
  const { image_prices: imagePrices = [], batch: batchPrices, ...pricing } = entry.pricing ?? {}
  const rates = parsePriceList(pricing)
  const lists = pricesByKind(entry.pricing ?? {})
  if ('badKey' in lists) yaml.mistake([...path, 'pricing', lists.badKey], `must be ${lists.rule}`)
  const dedicated = (entry.dedicated ?? []).map((deployment, index): Deployment => {
    const where = [...path, 'dedicated', index]
    if (entry.dedicated?.findIndex((other) => other.workspace === deployment.workspace) !== index) {
      yaml.mistake([...where, 'workspace'], `"${deployment.workspace}" already has a deployment of this model`)
    }
    if ('badKey' in parsePriceList({ per_hour: deployment.per_hour ?? '0' })) {
      yaml.mistake([...where, 'per_hour'], `must be ${priceRule}`)
    }
    const lane = `${entry.id}@${deployment.workspace}`
    const engine = toEngine(deployment.engine, { entry, lane }, [...where, 'engine'], reading)
    return {
      lane,
      mode: 'dedicated',
      workspace: deployment.workspace,
      engine,
      limits: toLimits(deployment.limits, engine, [...where, 'limits'], yaml),
      perHour: deployment.per_hour,
    }
  })
  const shared = toEngine(
    entry.serverless?.engine,
    { entry, lane: entry.id },
    [...path, 'serverless', 'engine'],
    reading,
  )
  return {
    id: entry.id,
    aliases: entry.aliases ?? [],
    name: entry.name ?? entry.id,
    description: entry.description ?? '',
    categories: entry.categories,
    contextLength: entry.context_length,
    maxCompletionTokens,
    defaultMaxTokens,
    supportedParameters: entry.supported_parameters ?? [],
    tokenizer: entry.tokenizer,
    instructType: entry.instruct_type,
    rerankSchema: entry.rerank_schema,
    visibleTo: entry.visible_to,
    rates: 'badKey' in rates ? freeRates : rates,
    imagePrices,
    // null counts as absent.
    batchPrices: batchPrices ?? undefined,
    serverless: entry.serverless && {
      lane: entry.id,
      mode: 'serverless',
      workspace: undefined,
      engine: shared,
      limits: toLimits(entry.serverless.limits, shared, [...path, 'serverless', 'limits'], yaml),
      perHour: undefined,
    },
    dedicated,
  }
}

const doesGenerate = ({ categories }: ModelEntry): boolean =>
  categories.some((category) => category === 'llm' || category === 'vision')

/** How the embedded engine uses a file of the operator's. */
const ownLoaders: Readonly<Partial<Record<string, string>>> = {
  llm: 'gguf-chat',
  embedding: 'gguf-embedding',
  reranker: 'gguf-reranker',
}

/** `OwnModelSlug` in the contract of packages/local-models. */
const ownSlug = (loader: string, { context_length: context }: ModelEntry, file: string): string =>
  `${loader}@${context}:${file}`

function toEngine(
  engine: Static<typeof engineSchema> | undefined,
  { entry, lane }: { readonly entry: ModelEntry; readonly lane: string },
  path: Path,
  { yaml, secrets, devices, ports }: Reading,
): EngineDescription | undefined {
  if (!engine) return undefined
  const generates = doesGenerate(entry)
  const apiKey = engine.api_key_env === undefined ? undefined : secrets(engine.api_key_env)
  if (engine.api_key_env !== undefined && !apiKey) {
    yaml.mistake([...path, 'api_key_env'], `the environment variable ${engine.api_key_env} is not set`)
  }
  const run = engine.run && toEngineRun(engine.run, { kind: engine.kind, devices }, [...path, 'run'], yaml)
  if (run) ports.take(run.port, lane, [...path, 'run'], yaml)
  if (run && engine.urls) yaml.mistake([...path, 'urls'], 'is not allowed with run: the engine is on its port')
  const urls = run ? [`http://127.0.0.1:${run.port}/v1`] : (engine.urls ?? [])
  if (engine.kind === 'embedded' && !run && urls.length > 0) {
    yaml.mistake([...path, 'urls'], 'is not allowed for kind embedded: Weir runs that engine itself')
  }
  if (engine.kind !== 'embedded' && urls.length === 0) {
    yaml.mistake([...path, 'urls'], 'is required: a non-empty array of URLs')
  }
  if (engine.kind === 'embedded' && engine.health) {
    yaml.mistake([...path, 'health'], 'is not allowed for kind embedded: Weir watches that engine itself')
  }
  if (engine.file !== undefined && engine.kind !== 'embedded') {
    yaml.mistake([...path, 'file'], 'is only for kind embedded: other engines load their models themselves')
  }
  if (engine.file !== undefined && engine.model !== undefined) {
    yaml.mistake([...path, 'model'], 'is not allowed beside file, which names the model')
  }
  const loader = entry.categories.length === 1 ? ownLoaders[entry.categories[0] ?? ''] : undefined
  if (engine.file !== undefined && !loader) {
    yaml.mistake([...path, 'file'], 'needs one category of llm, embedding and reranker: nothing else runs from a file')
  }
  if (engine.balance === 'prefix' && !generates) {
    yaml.mistake([...path, 'balance'], 'must be least_busy: only models of the category llm or vision read prompts')
  }
  urls.forEach((url, index) => {
    if (!url.startsWith('unix:') && !URL.canParse(url)) {
      yaml.mistake([...path, 'urls', index], 'is not a valid URL')
    }
  })
  return {
    kind: engine.kind,
    urls,
    model: engine.file !== undefined && loader ? ownSlug(loader, entry, engine.file) : (engine.model ?? entry.id),
    apiKey,
    scores: engine.scores,
    usage: engine.usage ?? (miscountingKinds.has(engine.kind) ? 'estimated' : 'reported'),
    balance: engine.balance ?? (generates && urls.length > 1 ? 'prefix' : 'least_busy'),
    cacheTokens: engine.cache_tokens,
    sharePrefixes: engine.share_prefixes ?? false,
    // Generous, because an answer that is not streamed arrives late, and a model may pause while it thinks.
    firstByteTimeoutMs: engine.first_byte_timeout_ms ?? 600_000,
    idleTimeoutMs: engine.idle_timeout_ms ?? 300_000,
    health: { path: engine.health?.path, intervalMs: engine.health?.interval_ms ?? 5000 },
    ...(run && { run }),
  }
}
