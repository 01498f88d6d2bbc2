import type { Accounts } from '../../accounts/accounts.ts'
import type { SpendControl } from '../../billing/spending.ts'
import { ownGroupings } from '../../billing/usage-report.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { PriceBook } from '../../catalog/price-book.ts'
import type { Model } from '../../core/catalog.ts'
import { isWellFormedKey } from '../../core/api-key.ts'
import { ApiError } from '../../core/errors.ts'
import type { ImageLimits } from '../../core/image-header.ts'
import { secondsLeft } from '../../core/rate-window.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import type { Caller } from '../../ports/accounts.ts'
import type { Admission } from '../../ports/admission.ts'
import type { Clock } from '../../ports/clock.ts'
import type { FileStore } from '../../ports/files.ts'
import type { RateLimiter } from '../../ports/rate-limit.ts'
import type { UsageStore } from '../../ports/usage.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { audioTasks } from '../../endpoints/audio/job.ts'
import { audio, type AudioParts } from './audio.ts'
import type { FetchImages } from '../../endpoints/chat/messages.ts'
import { docsPage } from './docs-page.ts'
import type { Exchange } from '../exchange.ts'
import { FILES_PREFIX, serveFile } from './files.ts'
import { inference, jobMakers } from './inference.ts'
import { describeModel, listModels, type ModelsParts } from './models.ts'
import { openApiDocument } from './openapi.ts'
import { queueStatus } from './queue-status.ts'
import type { Application } from '../server.ts'
import { sendUsage, sendUsageRow } from '../usage.ts'

/** The public listener: who calls, whether the rate allows it, and which resource it is for. */
export interface PublicParts {
  readonly accounts: Accounts
  readonly catalog: Catalog
  readonly prices: PriceBook
  readonly admission: Admission
  readonly rateLimiter: RateLimiter
  readonly pipeline: Pipeline
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly usage: UsageStore
  readonly spending: SpendControl
  readonly fetchImages: FetchImages
  readonly imageLimits: ImageLimits
  /** Where images are kept that a caller wants by link. */
  readonly files: FileStore | undefined
  readonly audio: AudioParts
  readonly limits: {
    readonly requestsPerMinute: number
    readonly unauthenticatedPerMinute: number
    readonly maxBodyBytes: number
  }
  isUp(model: Model, workspace: string): boolean
  isReady(): boolean
}

const PREFIX = '/api/v1'

type Resource = (exchange: Exchange, caller: Caller) => Promise<void>

export function publicApi(parts: PublicParts): Application {
  const { accounts, rateLimiter, limits, clock, telemetry, files } = parts
  const resources = publicResources(parts)
  const openApi = JSON.stringify(openApiDocument())
  const docs = docsPage()

  /** Without a key: whether the service lives, and how to use it. */
  const open: Readonly<Record<string, (exchange: Exchange) => void>> = {
    '/': (exchange) => exchange.send(302, 'text/plain', '', { Location: '/docs' }),
    '/docs': (exchange) => exchange.send(200, 'text/html; charset=utf-8', docs),
    [`${PREFIX}/openapi.json`]: (exchange) => exchange.sendJson(openApi),
    '/healthz': (exchange) => exchange.sendJson('{"status":"alive"}'),
    '/readyz'(exchange) {
      if (!parts.isReady()) throw new ApiError('service_unavailable', 'The service is not ready.')
      exchange.sendJson('{"status":"ready"}')
    },
  }

  const limitOf = (caller: Caller): number => caller.workspace.requestsPerMinute ?? limits.requestsPerMinute

  async function authenticate(exchange: Exchange): Promise<Caller> {
    const header = exchange.request.headers.authorization
    const key = header === undefined ? undefined : /^bearer +(\S+) *$/i.exec(header)?.[1]
    const caller = key === undefined ? undefined : accounts.authenticate(key)
    if (caller) return caller
    const address = exchange.request.socket.remoteAddress ?? ''
    if (!(await rateLimiter.take(`address ${address}`, limits.unauthenticatedPerMinute))) throw tooMany()
    if (key === undefined) {
      throw new ApiError('missing_api_key', 'Send your API key in the header Authorization: Bearer <API_KEY>.')
    }
    throw new ApiError(
      'invalid_api_key',
      isWellFormedKey(key)
        ? 'The API key is not valid. It may have been revoked.'
        : 'The API key is mistyped or cut off.',
    )
  }

  function tooMany(): ApiError {
    const seconds = secondsLeft(clock.now())
    return new ApiError('rate_limit_exceeded', `Too many requests in this minute. Try again in ${seconds} s.`, {
      retryAfter: seconds,
    })
  }

  return {
    async answer(exchange) {
      if (exchange.method === 'GET' || exchange.method === 'HEAD') {
        const handleOpen = open[exchange.path]
        if (handleOpen) return handleOpen(exchange)
        if (files?.open && exchange.path.startsWith(FILES_PREFIX)) return serveFile(files.open, exchange)
      }
      const caller = await authenticate(exchange)
      exchange.caller = caller
      if (!(await rateLimiter.take(caller.workspace.id, limitOf(caller)))) throw tooMany()
      await findResource(resources, exchange)(exchange, caller)
    },
    headers(exchange, address) {
      const caller = exchange?.caller
      const { limit, remaining, resetAt } = caller
        ? rateLimiter.allowance(caller.workspace.id, limitOf(caller))
        : rateLimiter.allowance(`address ${address}`, limits.unauthenticatedPerMinute)
      return {
        'X-RateLimit-Limit': String(limit),
        'X-RateLimit-Remaining': String(remaining),
        'X-RateLimit-Reset': String(resetAt),
        ...(caller?.workspace.spendLimit ? parts.spending.headers(caller.workspace) : undefined),
      }
    },
    errorBody(exchange, error) {
      // The one client that reads only a top-level message.
      return exchange.path === `${PREFIX}/rerank` ? { message: error.message, ...error.body() } : error.body()
    },
    over(exchange, failure) {
      const line = {
        request_id: exchange.requestId,
        method: exchange.method,
        path: exchange.path,
        status: exchange.status,
        workspace: exchange.caller?.workspace.name,
        key_id: exchange.caller?.keyId,
        ...exchange.notes,
      }
      telemetry.requestOver(line, failure)
    },
  }
}

function findResource(
  resources: Readonly<Record<string, Readonly<Record<string, Resource>>>>,
  exchange: Exchange,
): Resource {
  const path = exchange.path.startsWith(PREFIX) ? exchange.path.slice(PREFIX.length) : undefined
  const byMethod =
    path === undefined
      ? undefined
      : Object.hasOwn(resources, path)
        ? resources[path]
        : path.startsWith('/models/')
          ? resources['/models/{slug}']
          : path.startsWith('/usage/')
            ? resources['/usage/{request_id}']
            : undefined
  if (!byMethod) {
    throw new ApiError(
      'unknown_url',
      `There is nothing at ${exchange.method} ${exchange.path.slice(0, 200)}. See /docs.`,
    )
  }
  const resource = byMethod[exchange.method]
  if (resource) return resource
  const allowed = Object.keys(byMethod).join(', ')
  return async () =>
    exchange.sendError(new ApiError('method_not_allowed', `${exchange.method} is not allowed here; use ${allowed}.`), {
      Allow: allowed,
    })
}

/** Every route that needs a key, by path and method. */
export function publicResources(parts: PublicParts): Readonly<Record<string, Readonly<Record<string, Resource>>>> {
  const models: ModelsParts = { catalog: parts.catalog, prices: parts.prices, isUp: parts.isUp }
  const json =
    (read: (exchange: Exchange, caller: Caller) => object): Resource =>
    async (exchange, caller) =>
      exchange.sendJson(JSON.stringify(read(exchange, caller)))
  const query = (exchange: Exchange): URLSearchParams => new URLSearchParams(exchange.query)

  return {
    ...Object.fromEntries(
      Object.entries(jobMakers).map(([path, makeJob]) => [path, { POST: inference(parts, path, makeJob) }]),
    ),
    ...Object.fromEntries(Object.entries(audioTasks).map(([path, task]) => [path, { POST: audio(parts, path, task) }])),
    '/models': { GET: json((exchange, { workspace }) => listModels(models, workspace, query(exchange))) },
    '/models/detail': {
      GET: json((exchange, { workspace }) => describeModel(models, workspace, query(exchange).get('slug'))),
    },
    '/models/{slug}': {
      GET: json((exchange, { workspace }) => describeModel(models, workspace, slugIn(exchange.path))),
    },
    '/queue/status': {
      GET: json((_exchange, { workspace }) => queueStatus(parts.catalog, parts.admission, workspace)),
    },
    '/usage': {
      GET: (exchange, { workspace }) =>
        sendUsage(exchange, parts.usage, { workspaceId: workspace.id, groupings: ownGroupings }),
    },
    '/usage/{request_id}': {
      GET: (exchange, { workspace }) =>
        sendUsageRow(exchange, parts.usage, exchange.path.slice(`${PREFIX}/usage/`.length), workspace.id),
    },
  }
}

function slugIn(path: string): string {
  try {
    return decodeURIComponent(path.slice(`${PREFIX}/models/`.length))
  } catch {
    throw new ApiError('model_not_found', 'The model in the path is not a valid slug.', { param: 'slug' })
  }
}
