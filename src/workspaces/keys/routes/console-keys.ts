import { Type } from 'typebox'
import type { Accounts } from '../../accounts.ts'
import { keyList, oneKey } from '../key-list.ts'
import { endOf } from '../../../shared/period.ts'
import { ApiError } from '../../../shared/errors.ts'
import { sydneyMonth } from '../../../shared/money/sydney-time.ts'
import type { Action } from '../../../operate/audit/recorded.ts'
import type { SignedIn } from '../../sessions/workspace-sessions.ts'
import type { ApiKey, Caller } from '../../workspace.ts'
import { requireModels } from '../key-limits.ts'
import type { Catalog } from '../../../catalog/catalog.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { KeyStore } from '../key-store.ts'
import type { UsageStore } from '../../../billing/usage/usage-store.ts'
import { nullable, pageSchema } from '../../../server/common-schema.ts'
import { sessionRoute, type SessionRoute } from '../../../server/console/session-route.ts'
import { sumsView } from '../../../billing/usage/routes/reports.ts'
import {
  keyChangeOf,
  keyChangeSchema,
  limitFields,
  limitsExample,
  limitSchemas,
  keyLimitsIn,
  manageKeysSchema,
  redactedKeySchema,
} from './keys.ts'
import { jsonResponse } from '../../../server/route.ts'

/** The keys of a workspace, for its members. */

export interface ConsoleKeysParts {
  readonly accounts: Accounts
  readonly reader: UsageStore & Pick<KeyStore, 'keysLastUsed'>
  readonly clock: Clock
  readonly catalog: Catalog
}

const consoleKeySchema = Type.Object({
  id: Type.String(),
  redacted: redactedKeySchema,
  name: nullable(Type.String()),
  created: Type.String(),
  expires_at: nullable(Type.String()),
  last_used_at: nullable(Type.String()),
  revoked: nullable(Type.String()),
  manage_keys: manageKeysSchema,
  ...limitSchemas,
  is_current: Type.Boolean({ description: 'Whether this session was opened with it.' }),
  requests: Type.Integer({ description: 'In this month, like the figures below.' }),
  input_tokens: Type.Integer(),
  output_tokens: Type.Integer(),
  amount: Type.String({ description: 'AUD, excluding GST.' }),
})

const consoleKeyExample = {
  id: 'key_7f3a9c21',
  redacted: 'weir_…x7Qa',
  name: 'website',
  created: '2026-11-15T22:04:05.000Z',
  expires_at: null,
  last_used_at: '2026-11-15T22:10:00.000Z',
  revoked: null,
  manage_keys: false,
  ...limitsExample,
  is_current: true,
  requests: 12,
  input_tokens: 340,
  output_tokens: 120,
  amount: '0.000058',
}

const nothing = { requests: 0, input_tokens: 0, output_tokens: 0, amount: '0.00' }

export function consoleKeyRoutes(parts: ConsoleKeysParts): readonly SessionRoute[] {
  return [
    sessionRoute({
      method: 'GET',
      path: '/keys',
      id: 'keys',
      summary: 'List keys',
      description: 'The keys of the workspace with their usage in this month, the newest first, in pages.',
      query: Type.Object({
        state: Type.Optional(Type.Enum(['valid'], { description: 'valid: neither revoked nor expired.' })),
        before: Type.Optional(Type.String({ description: "The 'next' of the previous page." })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, description: '1 to 500, by default 100.' })),
      }),
      response: jsonResponse(pageSchema(consoleKeySchema), { object: 'list', data: [consoleKeyExample], next: null }),
      errors: [],
      async answer({ exchange, query: { state, before, limit = 100 }, session: { caller } }) {
        const { accounts, reader, clock } = parts
        const selection = {
          workspaceId: caller.workspace.id,
          validAt: state === 'valid' ? clock.now() : undefined,
          before,
          limit,
        }
        const { data, next } = await keyList({ accounts, store: reader }, selection)
        const used = await usageThisMonth(
          parts,
          data.map(({ id }) => id),
        )
        const views = data.map((view) => {
          const { workspace: _, ...key } = view
          const { requests, input_tokens, output_tokens, amount } = used.get(key.id) ?? nothing
          return { ...key, is_current: key.id === caller.keyId, requests, input_tokens, output_tokens, amount }
        })
        exchange.sendJson(JSON.stringify({ object: 'list', data: views, next }))
      },
    }),
    sessionRoute({
      method: 'POST',
      path: '/keys',
      id: 'makeKey',
      summary: 'Create a key',
      description: 'Creates an API key for the workspace. It is shown only now.',
      body: Type.Object({
        name: Type.String({ minLength: 1, maxLength: 100, description: 'What the key is for.' }),
        expires_at: Type.Optional(
          Type.String({ maxLength: 64, description: 'The last day in Sydney, such as 2027-06-30.' }),
        ),
        manage_keys: Type.Optional(manageKeysSchema),
        ...limitFields,
      }),
      example: { name: 'website' },
      response: jsonResponse(
        Type.Object({ id: Type.String(), key: Type.String(), name: Type.String() }),
        { id: consoleKeyExample.id, key: 'weir_…', name: 'website' },
        201,
      ),
      errors: ['invalid_value', 'key_not_allowed'],
      action: ({ body, session: { caller } }) => ({
        action: 'createKey',
        subject: `${caller.workspace.name} ${body.name}`,
        state: async () => undefined,
      }),
      async answer({ exchange, body, session: { caller } }) {
        requireUnlimited(caller)
        const { name, expires_at: expires } = body
        const expiresAt = expires ? endOf('expires_at', expires) : undefined
        const limits = keyLimitsIn(body)
        requireModels(limits, parts.catalog.models(), caller.workspace.name)
        const { id, key } = await parts.accounts.createKey(caller.workspace.id, {
          name,
          expiresAt,
          manageKeys: body.manage_keys,
          ...limits,
        })
        exchange.sendJson(JSON.stringify({ id, key, name }), 201)
      },
    }),
    sessionRoute({
      method: 'PATCH',
      path: '/keys/{id}',
      id: 'changeKey',
      summary: 'Change a key',
      description: 'Changes the name, the expiry or the limits of a key. Fields that are left out stay as they are.',
      parameters: { id: { description: 'The id of a key.', example: consoleKeyExample.id } },
      body: keyChangeSchema,
      example: { name: 'website', expires_at: '2027-06-30' },
      response: jsonResponse(
        Type.Object({ id: Type.String(), name: nullable(Type.String()), expires_at: nullable(Type.String()) }),
        { id: consoleKeyExample.id, name: 'website', expires_at: '2027-06-30T14:00:00.000Z' },
      ),
      errors: ['not_found', 'conflict', 'key_not_allowed'],
      action: ({ parameters, session }) => actionOn(parts, 'changeKey', parameters.id, session),
      async answer({ exchange, parameters: { id }, body, session: { caller } }) {
        requireUnlimited(caller)
        await ownKey(parts, caller, id)
        const change = keyChangeOf(body)
        requireModels(change, parts.catalog.models(), caller.workspace.name)
        const { name, expiresAt } = (await parts.accounts.changeKey(id, change)).key
        const expires = expiresAt === null ? null : new Date(expiresAt).toISOString()
        exchange.sendJson(JSON.stringify({ id, name, expires_at: expires }))
      },
    }),
    sessionRoute({
      method: 'DELETE',
      path: '/keys/{id}',
      id: 'endKey',
      summary: 'Revoke a key',
      description: 'The next request with the key is refused, and sessions that it opened end.',
      parameters: { id: { description: 'The id of a key.', example: consoleKeyExample.id } },
      response: jsonResponse(Type.Object({ id: Type.String(), revoked: Type.String() }), {
        id: consoleKeyExample.id,
        revoked: '2026-11-16T01:00:00.000Z',
      }),
      errors: ['not_found'],
      action: ({ parameters, session }) => actionOn(parts, 'revokeKey', parameters.id, session),
      async answer({ exchange, parameters: { id }, session: { caller } }) {
        await ownKey(parts, caller, id)
        const { revokedAt } = (await parts.accounts.revokeKey(id)).key
        exchange.sendJson(JSON.stringify({ id, revoked: new Date(revokedAt ?? 0).toISOString() }))
      },
    }),
  ]
}

/** Else a key could be used to make one that may do more. */
function requireUnlimited({ rules }: Caller): void {
  if (!rules) return
  const message =
    'You signed in with a key that has limits, so you cannot create or change keys. Sign in with another key.'
  throw new ApiError('key_not_allowed', message)
}

function actionOn(parts: ConsoleKeysParts, action: string, id: string, { caller }: SignedIn): Omit<Action, 'body'> {
  const { accounts, reader: store } = parts
  return {
    action,
    subject: id,
    state: async () => oneKey({ accounts, store }, await ownKey(parts, caller, id)),
  }
}

/** A key of another workspace gets the same answer as one that does not exist. */
export async function ownKey(
  { accounts }: Pick<ConsoleKeysParts, 'accounts'>,
  { workspace }: Caller,
  id: string,
): Promise<ApiKey> {
  const key = await accounts.key(id)
  if (key?.workspaceId === workspace.id) return key
  throw new ApiError('not_found', `There is no key "${id.slice(0, 100)}".`, { param: 'id' })
}

async function usageThisMonth({ reader, clock }: ConsoleKeysParts, keyIds: readonly string[]) {
  const { from, to } = sydneyMonth(clock.now())
  const sums = await reader.usageSums({ keyIds, from, to, groupBy: 'key', limit: keyIds.length })
  return new Map(sums.map((it) => [it.group, sumsView(it)]))
}
