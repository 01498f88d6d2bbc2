import { Type } from 'typebox'
import { ApiError } from '../../../shared/errors.ts'
import { endOf } from '../../../shared/period.ts'
import { recorded, type Action } from '../../../operate/audit/recorded.ts'
import type { AuditStore } from '../../../operate/audit/audit-store.ts'
import type { Catalog } from '../../../catalog/catalog.ts'
import type { Clock } from '../../../shared/clock.ts'
import { pageSchema } from '../../../server/common-schema.ts'
import { bodyErrors } from '../../../server/body.ts'
import { readSmallBody } from '../../../server/console/session-route.ts'
import type { Exchange } from '../../../server/exchange.ts'
import { keyRoute, type KeyRoute } from '../../../server/key-route.ts'
import { jsonResponse } from '../../../server/route.ts'
import type { Accounts } from '../../accounts.ts'
import type { ApiKey, Caller } from '../../workspace.ts'
import { keyList, oneKey } from '../key-list.ts'
import { requireModels, widerThan } from '../key-limits.ts'
import type { KeyStore } from '../key-store.ts'
import { ownKey } from './console-keys.ts'
import {
  createdKeySchema,
  keyChangeOf,
  keyChangeSchema,
  keyExample,
  keyLimitsIn,
  keyName,
  keySchema,
  lastDay,
  limitFields,
  manageKeysSchema,
} from './keys.ts'

/** The keys of a workspace, for programs with a key that may manage keys. No key gets more than the key that manages it. */

export interface ManagedKeysParts {
  readonly accounts: Accounts
  readonly reader: Pick<KeyStore, 'keysLastUsed'>
  readonly catalog: Catalog
  readonly audit: AuditStore
  readonly clock: Clock
}

const newKeySchema = Type.Object({
  name: keyName,
  expires_at: Type.Optional(lastDay),
  manage_keys: Type.Optional(manageKeysSchema),
  ...limitFields,
})

const parameters = { id: { description: 'The id of a key.', example: keyExample.id } }
const errors = ['key_not_allowed', 'not_found'] as const

export function managedKeyRoutes(parts: ManagedKeysParts): readonly KeyRoute[] {
  const { accounts, reader: store, catalog } = parts

  /** The key of the caller, if it may manage keys. */
  async function manager({ keyId }: Caller): Promise<ApiKey> {
    const key = await accounts.key(keyId)
    if (key?.manageKeys) return key
    throw new ApiError('key_not_allowed', 'This API key may not manage keys.')
  }

  /** A key that may do more than its manager is out of reach. */
  async function managed(caller: Caller, by: ApiKey, id: string): Promise<ApiKey> {
    const key = await ownKey(parts, caller, id)
    requireWithin(key, by)
    return key
  }

  function record<Done>(exchange: Exchange, by: ApiKey, action: Action, act: () => Promise<Done>): Promise<Done> {
    const workspace = accounts.workspace(by.workspaceId).name
    const actor = `key ${by.name ?? by.id} of ${workspace} from ${exchange.address}`
    return recorded(parts, { actor, requestId: exchange.requestId }, action, act)
  }

  return [
    keyRoute({
      method: 'GET',
      path: '/keys',
      id: 'listKeys',
      summary: 'List keys',
      description: 'The keys of the workspace, the newest first, in pages. The calling key needs manage_keys.',
      query: Type.Object({
        state: Type.Optional(Type.Enum(['valid'], { description: 'valid: neither revoked nor expired.' })),
        before: Type.Optional(Type.String({ maxLength: 100, description: "The 'next' of the previous page." })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: '1 to 1000, by default 100.' })),
      }),
      response: jsonResponse(pageSchema(keySchema), { object: 'list', data: [keyExample], next: null }),
      errors: ['key_not_allowed', 'invalid_value'],
      async answer({ exchange, caller, query: { state, before, limit = 100 } }) {
        await manager(caller)
        const validAt = state === 'valid' ? parts.clock.now() : undefined
        const query = { workspaceId: caller.workspace.id, validAt, before, limit }
        exchange.sendJson(JSON.stringify(await keyList({ accounts, store }, query)))
      },
    }),
    keyRoute({
      method: 'POST',
      path: '/keys',
      id: 'createKey',
      summary: 'Create a key',
      description:
        'Creates a key of the workspace, which is shown only now. Limits that are left out are those of the calling key, which needs manage_keys; wider ones are refused.',
      request: { contentType: 'application/json', schema: newKeySchema, example: { name: 'website' } },
      response: jsonResponse(
        createdKeySchema,
        { id: keyExample.id, key: 'weir_…', workspace: 'acme', name: 'website' },
        201,
      ),
      errors: [...bodyErrors, 'key_not_allowed'],
      async answer({ exchange, caller }) {
        const by = await manager(caller)
        const body = await readSmallBody(exchange, newKeySchema)
        const { name, expires_at: expires, manage_keys: manageKeys = false } = body
        const given = Object.entries(keyLimitsIn(body)).filter(([, value]) => value !== undefined)
        const expiresAt = expires ? endOf('expires_at', expires) : by.expiresAt
        const scope = { ...by, ...Object.fromEntries(given), expiresAt, manageKeys }
        const action = {
          action: 'createKey',
          subject: `${caller.workspace.name} ${name}`,
          body,
          state: async () => undefined,
        }
        const created = await record(exchange, by, action, async () => {
          requireWithin(scope, by)
          requireModels(Object.fromEntries(given), catalog.models(), caller.workspace.name)
          return accounts.createKey(by.workspaceId, {
            name,
            expiresAt: expiresAt ?? undefined,
            manageKeys,
            requestsPerMinute: scope.requestsPerMinute,
            tokensPerMinute: scope.tokensPerMinute,
            spendPerDay: scope.spendPerDay,
            spendPerMonth: scope.spendPerMonth,
            allowedModels: scope.allowedModels,
            allowedEndpoints: scope.allowedEndpoints,
            allowedAddresses: scope.allowedAddresses,
          })
        })
        exchange.sendJson(JSON.stringify(created), 201)
      },
    }),
    keyRoute({
      method: 'PATCH',
      path: '/keys/{id}',
      id: 'changeKey',
      summary: 'Change a key',
      description:
        'Changes the name, the expiry or the limits of a key. Fields that are left out stay as they are. Neither before nor after may the key be allowed more than the calling key, which needs manage_keys.',
      parameters,
      request: {
        contentType: 'application/json',
        schema: keyChangeSchema,
        example: { name: 'website', expires_at: '2027-06-30' },
      },
      response: jsonResponse(keySchema, keyExample),
      errors: [...bodyErrors, ...errors, 'conflict'],
      async answer({ exchange, caller, parameters: { id } }) {
        const by = await manager(caller)
        const body = await readSmallBody(exchange, keyChangeSchema)
        const change = keyChangeOf(body)
        const given = Object.entries(change).filter(([, value]) => value !== undefined)
        const changed = await record(exchange, by, { ...actionOn('changeKey', id), body }, async () => {
          const key = await managed(caller, by, id)
          requireWithin({ ...key, ...Object.fromEntries(given) }, by)
          requireModels(change, catalog.models(), caller.workspace.name)
          return accounts.changeKey(id, change)
        })
        exchange.sendJson(JSON.stringify(await oneKey({ accounts, store }, changed.key)))
      },
    }),
    keyRoute({
      method: 'DELETE',
      path: '/keys/{id}',
      id: 'revokeKey',
      summary: 'Revoke a key',
      description:
        'The next request with the key is refused. A key that may do more than the calling key, which needs manage_keys, cannot be revoked.',
      parameters,
      response: jsonResponse(keySchema, { ...keyExample, revoked: '2026-11-16T01:00:00.000Z' }),
      errors: [...errors],
      async answer({ exchange, caller, parameters: { id } }) {
        const by = await manager(caller)
        const action = { ...actionOn('revokeKey', id), body: undefined }
        const { key } = await record(exchange, by, action, async () => {
          await managed(caller, by, id)
          return accounts.revokeKey(id)
        })
        exchange.sendJson(JSON.stringify(await oneKey({ accounts, store }, key)))
      },
    }),
  ]

  function actionOn(action: string, id: string): Omit<Action, 'body'> {
    async function state(): Promise<object | undefined> {
      const key = await accounts.key(id)
      return key && oneKey({ accounts, store }, key)
    }
    return { action, subject: id, state }
  }
}

function requireWithin(key: Parameters<typeof widerThan>[0], by: ApiKey): void {
  const field = widerThan(key, by)
  if (field === undefined) return
  throw new ApiError('key_not_allowed', `A key may not have more than the key that manages it: see '${field}'.`, {
    param: field,
  })
}
