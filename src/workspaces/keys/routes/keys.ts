import { Type, type Static } from 'typebox'
import type { Accounts } from '../../accounts.ts'
import { keyList, oneKey } from '../key-list.ts'
import { ALLOWED_MAX, amountIn, limitedEndpoints, PER_MINUTE_MAX, requireModels } from '../key-limits.ts'
import type { PicoAud } from '../../../shared/money/money.ts'
import { requireSomething } from '../../routes/require-something.ts'
import { endOf } from '../../../shared/period.ts'
import type { Catalog } from '../../../catalog/catalog.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { KeyChange, KeyStore } from '../key-store.ts'
import { EXAMPLE_MODEL, nullable, pageSchema, unreachedSchema, workspaceName } from '../../../server/common-schema.ts'
import { jsonResponse } from '../../../server/route.ts'
import { operatorRoute, type OperatorRoute } from '../../../server/operator-route.ts'

export const redactedKeySchema = Type.String({
  description: 'The prefix and the last four characters of the key; of keys of older versions only the prefix.',
})

const allowed = { minItems: 1, maxItems: ALLOWED_MAX }

/** The limits of a key, in answers. */
export const limitSchemas = {
  requests_per_minute: nullable(
    Type.Integer({ minimum: 1, maximum: PER_MINUTE_MAX }),
    "Requests per minute with this key, within the limit of its workspace. null: only the workspace's limit applies.",
  ),
  tokens_per_minute: nullable(
    Type.Integer({ minimum: 1, maximum: PER_MINUTE_MAX }),
    "Input and output tokens per minute with this key, within the limit of its workspace. A soft limit: requests are refused once it is reached. null: only the workspace's limit applies.",
  ),
  spend_per_day: nullable(
    Type.String({ maxLength: 32 }),
    "What the key may spend in a day in Sydney, in AUD excluding GST. null: only the workspace's limit applies.",
  ),
  spend_per_month: nullable(
    Type.String({ maxLength: 32 }),
    "What the key may spend in a calendar month in Sydney, in AUD excluding GST. null: only the workspace's limit applies.",
  ),
  allowed_models: nullable(
    Type.Array(Type.String({ minLength: 1, maxLength: 256 }), allowed),
    'The models that the key may call, by slug or alias. null: all that its workspace may call.',
  ),
  allowed_endpoints: nullable(
    Type.Array(Type.Enum([...limitedEndpoints]), { minItems: 1, maxItems: limitedEndpoints.length }),
    'The inference endpoints that the key may call. null: all. Routes that only read are always allowed.',
  ),
  allowed_addresses: nullable(
    Type.Array(Type.String({ minLength: 1, maxLength: 64 }), allowed),
    'The IP addresses and networks (CIDR) that the key may be used from. null: all. Behind a proxy, this is the address of the proxy.',
  ),
}

/** In requests. Limits that are left out stay as they are. */
export const limitFields = {
  requests_per_minute: Type.Optional(limitSchemas.requests_per_minute),
  tokens_per_minute: Type.Optional(limitSchemas.tokens_per_minute),
  spend_per_day: Type.Optional(limitSchemas.spend_per_day),
  spend_per_month: Type.Optional(limitSchemas.spend_per_month),
  allowed_models: Type.Optional(limitSchemas.allowed_models),
  allowed_endpoints: Type.Optional(limitSchemas.allowed_endpoints),
  allowed_addresses: Type.Optional(limitSchemas.allowed_addresses),
}

export const limitsExample = {
  requests_per_minute: 60,
  tokens_per_minute: null,
  spend_per_day: '5.00',
  spend_per_month: null,
  allowed_models: [EXAMPLE_MODEL],
  allowed_endpoints: null,
  allowed_addresses: ['203.0.113.0/24'],
}

const limitsSchema = Type.Object(limitFields)

export function keyLimitsIn(body: Static<typeof limitsSchema>) {
  return {
    requestsPerMinute: body.requests_per_minute,
    tokensPerMinute: body.tokens_per_minute,
    spendPerDay: amountOf('spend_per_day', body.spend_per_day),
    spendPerMonth: amountOf('spend_per_month', body.spend_per_month),
    allowedModels: body.allowed_models,
    allowedEndpoints: body.allowed_endpoints,
    allowedAddresses: body.allowed_addresses,
  }
}

function amountOf(param: string, text: string | null | undefined): PicoAud | null | undefined {
  return typeof text === 'string' ? amountIn(param, text) : text
}

export const manageKeysSchema = Type.Boolean({
  description:
    'Whether the key may manage keys of its workspace with /api/v1/keys. These may do no more than the key itself.',
})

export const keySchema = Type.Object({
  id: Type.String(),
  redacted: redactedKeySchema,
  workspace: Type.String({ description: 'The name of the workspace.' }),
  name: nullable(Type.String(), 'What the key is for.'),
  created: Type.String(),
  expires_at: nullable(Type.String(), 'When the key expires; null if it does not.'),
  last_used_at: nullable(Type.String(), 'When the key was last used for a request that reached an engine.'),
  revoked: nullable(Type.String(), 'When the key was revoked; null while it is valid.'),
  manage_keys: manageKeysSchema,
  ...limitSchemas,
})

const changedKeySchema = Type.Object({ ...keySchema.properties, unreached: unreachedSchema })

export const keyName = Type.String({ minLength: 1, maxLength: 100, description: 'What the key is for.' })
const LAST_DAY = 'The last day in Sydney, such as 2027-06-30, or a time with its offset.'
export const lastDay = Type.String({ maxLength: 64, description: LAST_DAY })

/** Fields that are left out stay as they are. */
export const keyChangeSchema = Type.Object({
  manage_keys: Type.Optional(manageKeysSchema),
  name: Type.Optional(keyName),
  expires_at: Type.Optional(nullable(Type.String({ maxLength: 64 }), `${LAST_DAY} null: the key does not expire.`)),
  ...limitFields,
})

export function keyChangeOf(body: Static<typeof keyChangeSchema>): KeyChange {
  requireSomething(body, 'name', 'name')
  const { name, expires_at: expires } = body
  return {
    name,
    expiresAt: typeof expires === 'string' ? endOf('expires_at', expires) : expires,
    manageKeys: body.manage_keys,
    ...keyLimitsIn(body),
  }
}

export const createdKeySchema = Type.Object({
  id: Type.String(),
  key: Type.String({ description: 'The key itself. It is not stored, so it cannot be shown again.' }),
  workspace: Type.String(),
  name: Type.Optional(Type.String()),
  expires_at: Type.Optional(Type.String()),
})

export const keyExample = {
  id: 'key_7f3a9c21',
  redacted: 'weir_…x7Qa',
  workspace: 'acme',
  name: 'website',
  created: '2026-11-15T22:04:05.000Z',
  expires_at: null,
  last_used_at: '2026-11-15T22:10:00.000Z',
  revoked: null,
  manage_keys: false,
  ...limitsExample,
}

interface KeyParts {
  readonly accounts: Accounts
  readonly store: Pick<KeyStore, 'keysLastUsed'>
  readonly clock: Clock
  readonly catalog: Catalog
}

export function keyRoutes({ accounts, store, clock, catalog }: KeyParts): readonly OperatorRoute[] {
  async function stateOf({ parameters: { id } }: { readonly parameters: { readonly id: string } }) {
    const key = await accounts.key(id)
    return key && oneKey({ accounts, store }, key)
  }

  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/keys',
      id: 'listKeys',
      summary: 'List keys',
      description: 'API keys by id, the newest first, in pages. The keys themselves are not stored.',
      query: Type.Object({
        workspace: Type.Optional(Type.String({ description: 'Only the keys of this workspace, by its name or id.' })),
        state: Type.Optional(Type.Enum(['valid'], { description: 'valid: neither revoked nor expired.' })),
        before: Type.Optional(Type.String({ description: "The 'next' of the previous page." })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: '1 to 1000, by default 100.' })),
      }),
      response: jsonResponse(pageSchema(keySchema), { object: 'list', data: [keyExample], next: null }),
      errors: ['not_found'],
      async answer({ exchange, query: { workspace, state, before, limit = 100 } }) {
        const workspaceId = workspace === undefined ? undefined : accounts.workspace(workspace).id
        const validAt = state === 'valid' ? clock.now() : undefined
        const list = await keyList({ accounts, store }, { workspaceId, validAt, before, limit })
        exchange.sendJson(JSON.stringify(list))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/keys',
      id: 'createKey',
      summary: 'Create a key',
      description: 'Creates an API key for a workspace. It works immediately.',
      body: Type.Object({
        workspace: workspaceName,
        name: Type.Optional(keyName),
        expires_at: Type.Optional(lastDay),
        manage_keys: Type.Optional(manageKeysSchema),
        ...limitFields,
      }),
      example: { workspace: 'acme', name: 'website' },
      response: jsonResponse(
        createdKeySchema,
        { id: keyExample.id, key: 'weir_…', workspace: 'acme', name: 'website' },
        201,
      ),
      errors: ['not_found', 'invalid_value'],
      async answer({ exchange, body }) {
        const { workspace, name, expires_at: expires } = body
        // null counts as absent, as in every body.
        const expiresAt = expires ? endOf('expires_at', expires) : undefined
        const limits = keyLimitsIn(body)
        requireModels(limits, catalog.models(), accounts.workspace(workspace).name)
        const manageKeys = body.manage_keys ?? false
        const created = await accounts.createKey(workspace, {
          name: name || undefined,
          expiresAt,
          manageKeys,
          ...limits,
        })
        exchange.sendJson(JSON.stringify(created), 201)
      },
    }),
    operatorRoute({
      method: 'PATCH',
      path: '/admin/v1/keys/{id}',
      id: 'changeKey',
      summary: 'Change a key',
      description:
        'Changes the name, the expiry or the limits of a key, from the next request on, by every replica that is not named in the answer. Fields that are left out stay as they are. A revoked key cannot be changed.',
      parameters: { id: { description: 'The id of a key.', example: keyExample.id } },
      body: keyChangeSchema,
      example: { name: 'website', expires_at: '2027-06-30' },
      response: jsonResponse(changedKeySchema, {
        ...keyExample,
        expires_at: '2027-06-30T14:00:00.000Z',
        unreached: [],
      }),
      errors: ['not_found', 'conflict'],
      state: stateOf,
      async answer({ exchange, parameters, body }) {
        const change = keyChangeOf(body)
        const changed = await accounts.key(parameters.id)
        if (changed) requireModels(change, catalog.models(), accounts.workspace(changed.workspaceId).name)
        const { key, unreached } = await accounts.changeKey(parameters.id, change)
        exchange.sendJson(JSON.stringify({ ...(await oneKey({ accounts, store }, key)), unreached }))
      },
    }),
    operatorRoute({
      method: 'DELETE',
      path: '/admin/v1/keys/{id}',
      id: 'revokeKey',
      summary: 'Revoke a key',
      description:
        'The next request with the key is refused, by every replica that is not named in the answer. Revoking it again changes nothing.',
      parameters: { id: { description: 'The id of a key.', example: keyExample.id } },
      response: jsonResponse(changedKeySchema, {
        ...keyExample,
        revoked: '2026-11-16T01:00:00.000Z',
        unreached: [],
      }),
      errors: ['not_found'],
      state: stateOf,
      async answer({ exchange, parameters }) {
        const { key, unreached } = await accounts.revokeKey(parameters.id)
        exchange.sendJson(JSON.stringify({ ...(await oneKey({ accounts, store }, key)), unreached }))
      },
    }),
  ]
}
