import { hash, timingSafeEqual } from 'node:crypto'
import Type from 'typebox'
import type { Accounts } from '../../accounts/accounts.ts'
import { keyView, workspaceView } from '../../accounts/views.ts'
import { changeWorkspace, type WorkspaceChange } from '../../accounts/workspace-change.ts'
import type { Invoicing } from '../../billing/invoices.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { priceListSchema } from '../../catalog/file.ts'
import { listPrices, type PriceBook } from '../../catalog/price-book.ts'
import { ApiError } from '../../core/errors.ts'
import { groupings } from '../../core/money/usage-sums.ts'
import { pricesByKind, type ModelPrices } from '../../core/money/image-prices.ts'
import type { ChangeFeed } from '../../ports/changes.ts'
import type { Store } from '../../ports/store.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { invoiceRoutes } from './invoices.ts'
import { readJsonObject } from '../body.ts'
import type { Exchange } from '../exchange.ts'
import { invalidParameter, requireValid } from '../../core/parameter-errors.ts'
import type { Application } from '../server.ts'
import { sendUsage, sendUsageRow } from '../usage.ts'

/** The operator's listener: accounts, prices, usage and figures, behind the operator's token. */
export interface AdminParts {
  readonly accounts: Accounts
  readonly prices: PriceBook
  readonly catalog: Catalog
  readonly changes: ChangeFeed
  /** For reading: it has a connection of its own, so that nobody's download delays the ledger. */
  readonly store: Store
  readonly invoicing: Invoicing
  readonly telemetry: Telemetry
  readonly operatorToken: string
  readonly requestsPerMinute: number
  isReady(): boolean
}

type Handler = (exchange: Exchange, argument: readonly string[]) => Promise<void>

const MAX_BODY_BYTES = 65_536
const list = (data: readonly object[]): string => JSON.stringify({ object: 'list', data })

export function adminApi(parts: AdminParts): Application {
  const routes = adminRoutes(parts)
  const expected = digest(parts.operatorToken)

  function authorize(exchange: Exchange): void {
    const given = /^bearer +(\S+) *$/i.exec(exchange.request.headers.authorization ?? '')?.[1]
    if (given === undefined)
      throw new ApiError('missing_api_key', 'Send the operator token: Authorization: Bearer <token>.')
    if (!timingSafeEqual(digest(given), expected)) throw new ApiError('invalid_api_key', 'The operator token is wrong.')
  }

  return {
    async answer(exchange) {
      if (exchange.path === '/healthz') return exchange.sendJson('{"status":"alive"}')
      if (exchange.path === '/readyz') {
        if (!parts.isReady()) throw new ApiError('service_unavailable', 'The service is not ready.')
        return exchange.sendJson('{"status":"ready"}')
      }
      authorize(exchange)
      const path = exchange.path.split('/').map(decode)
      const found = routes.filter((route) => matches(route.path, path))
      const route = found.find(({ method }) => method === exchange.method)
      if (route) return route.handle(exchange, path.slice(route.path.indexOf('*')))
      if (found.length === 0) throw new ApiError('unknown_url', `There is nothing at ${exchange.path}.`)
      const allowed = found.map(({ method }) => method).join(', ')
      return exchange.sendError(new ApiError('method_not_allowed', `Use ${allowed}.`), { Allow: allowed })
    },
    headers: () => ({}),
    over(exchange, failure) {
      const line = {
        request_id: exchange.requestId,
        method: exchange.method,
        path: exchange.path,
        status: exchange.status,
      }
      if (failure !== undefined) parts.telemetry.log.error({ ...line, err: failure }, 'operator request failed')
      else parts.telemetry.log.debug(line, 'operator request')
    },
  }
}

export interface AdminRoute {
  readonly method: string
  /** `*` stands for one segment; at the end, for the rest. */
  readonly path: readonly string[]
  readonly handle: Handler
}

const nameSchema = Type.Object({ name: Type.String({ minLength: 1 }) })
const text = (): Type.TString => Type.String({ minLength: 1, maxLength: 1000 })
const changeSchema = Type.Object(
  {
    requests_per_minute: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000_000 })),
    spend_limit: Type.Optional(text()),
    spend_limit_kind: Type.Optional(Type.Enum(['soft', 'hard'])),
    buyer: Type.Optional(
      Type.Object(
        { name: Type.Optional(text()), abn: Type.Optional(text()), address: Type.Optional(text()) },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
)
const keySchema = Type.Object({ workspace: Type.String({ minLength: 1 }) })

function adminRoutes(parts: AdminParts): readonly AdminRoute[] {
  const { accounts, prices, store, changes } = parts
  const route = (method: string, path: string, handle: Handler): AdminRoute => ({
    method,
    path: path.split('/'),
    handle,
  })
  const workspaceJson = (name: string): string =>
    JSON.stringify(workspaceView(accounts.workspace(name), parts.requestsPerMinute))

  return [
    route('GET', '/metrics', async (exchange) =>
      exchange.send(200, 'text/plain; version=0.0.4', parts.telemetry.metrics()),
    ),
    route('POST', '/admin/v1/accounts/reload', async (exchange) => {
      await Promise.all([changes.announce('accounts'), changes.announce('prices')])
      exchange.sendJson('{"reloaded":true}')
    }),
    route('POST', '/admin/v1/catalog/reload', async (exchange) => {
      await changes.announce('catalog').catch((error: Error) => {
        throw new ApiError('invalid_value', error.message)
      })
      exchange.sendJson(JSON.stringify({ reloaded: true, models: parts.catalog.models().length }))
    }),
    route('GET', '/admin/v1/workspaces', async (exchange) =>
      exchange.sendJson(list(accounts.workspaces().map((it) => workspaceView(it, parts.requestsPerMinute)))),
    ),
    route('POST', '/admin/v1/workspaces', async (exchange) => {
      const { name } = await body<{ name: string }>(exchange, nameSchema)
      await accounts.createWorkspace(name)
      exchange.send(201, 'application/json', workspaceJson(name))
    }),
    route('PATCH', '/admin/v1/workspaces/*', async (exchange, [name = '']) => {
      const change = await body<WorkspaceChange>(exchange, changeSchema)
      // null takes the workspace's own limit away, so saying nothing must not.
      if (Object.keys(change).length === 0) {
        throw new ApiError('missing_required_parameter', "Missing required parameter: 'requests_per_minute'.", {
          param: 'requests_per_minute',
        })
      }
      await changeWorkspace(accounts, name, change)
      exchange.sendJson(workspaceJson(name))
    }),
    route('GET', '/admin/v1/workspaces/*/prices', async (exchange, [name = '']) => {
      const own = prices.workspacePrices(accounts.workspace(name).id)
      exchange.sendJson(list([...own].map(([model, pricing]) => ({ model, pricing }))))
    }),
    route('PUT', '/admin/v1/workspaces/*/prices/*', async (exchange, [name = '', , ...slug]) => {
      const pricing = await body<ModelPrices>(exchange, priceListSchema)
      await setPrice(parts, name, slug.join('/'), pricing)
      exchange.sendJson(JSON.stringify({ model: slug.join('/'), pricing }))
    }),
    route('DELETE', '/admin/v1/workspaces/*/prices/*', async (exchange, [name = '', , ...slug]) => {
      await setPrice(parts, name, slug.join('/'), null)
      exchange.sendJson(JSON.stringify({ model: slug.join('/'), pricing: null }))
    }),
    route('GET', '/admin/v1/keys', async (exchange) =>
      exchange.sendJson(list(accounts.keys().map((key) => keyView(key, accounts)))),
    ),
    route('POST', '/admin/v1/keys', async (exchange) => {
      const { workspace } = await body<{ workspace: string }>(exchange, keySchema)
      exchange.send(201, 'application/json', JSON.stringify(await accounts.createKey(workspace)))
    }),
    route('DELETE', '/admin/v1/keys/*', async (exchange, [id = '']) =>
      exchange.sendJson(JSON.stringify(keyView(await accounts.revokeKey(id), accounts))),
    ),
    route('GET', '/admin/v1/usage', async (exchange) => {
      const name = new URLSearchParams(exchange.query).get('workspace')
      await sendUsage(exchange, store, {
        workspaceId: name === null ? undefined : accounts.workspace(name).id,
        groupings,
        workspaceName: (id) => accounts.workspace(id).name,
      })
    }),
    route('GET', '/admin/v1/usage/*', async (exchange, [id = '']) => sendUsageRow(exchange, store, id, undefined)),
    ...invoiceRoutes(parts),
  ]
}

async function setPrice(
  parts: AdminParts,
  workspace: string,
  slug: string,
  pricing: ModelPrices | null,
): Promise<void> {
  const { id } = parts.accounts.workspace(workspace)
  const model = parts.catalog.models().find((it) => it.id === slug || it.aliases.includes(slug))
  if (!model) throw new ApiError('model_not_found', `The model '${slug}' is not in the catalog.`, { param: 'model' })
  const lists = pricesByKind(pricing ? { ...listPrices(model), ...pricing } : {})
  if ('badKey' in lists) throw invalidParameter('invalid_value', lists.badKey, lists.rule)
  await parts.prices.setWorkspacePrice(model, id, pricing)
}

async function body<Value>(exchange: Exchange, schema: Parameters<typeof requireValid>[0]): Promise<Value> {
  const { value } = await readJsonObject(exchange, MAX_BODY_BYTES)
  requireValid(schema, value)
  return value as Value
}

function matches(pattern: readonly string[], path: readonly string[]): boolean {
  const open = pattern.at(-1) === '*' && pattern.includes('prices')
  if (open ? path.length < pattern.length : path.length !== pattern.length) return false
  return pattern.every((segment, index) => segment === '*' || segment === path[index])
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}
