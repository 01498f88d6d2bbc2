import { Type } from 'typebox'
import type { Accounts } from '../../accounts.ts'
import { keyList, oneKey } from '../key-list.ts'
import { endOf } from '../../../shared/period.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { KeyStore } from '../key-store.ts'
import { nullable, pageSchema, unreachedSchema, workspaceName } from '../../../server/common-schema.ts'
import { jsonResponse } from '../../../server/route.ts'
import { operatorRoute, type OperatorRoute } from '../../../server/operator-route.ts'

const keySchema = Type.Object({
  id: Type.String(),
  workspace: Type.String({ description: 'The name of the workspace.' }),
  name: nullable(Type.String(), 'What the key is for.'),
  created: Type.String(),
  expires_at: nullable(Type.String(), 'When the key expires; null if it does not.'),
  last_used_at: nullable(Type.String(), 'When the key was last used for a request that reached an engine.'),
  revoked: nullable(Type.String(), 'When the key was revoked; null while it is valid.'),
})

const revokedKeySchema = Type.Object({ ...keySchema.properties, unreached: unreachedSchema })

const createdKeySchema = Type.Object({
  id: Type.String(),
  key: Type.String({ description: 'The key itself. It is shown only now, and stored nowhere.' }),
  workspace: Type.String(),
  name: Type.Optional(Type.String()),
  expires_at: Type.Optional(Type.String()),
})

const keyExample = {
  id: 'key_7f3a9c21',
  workspace: 'acme',
  name: 'website',
  created: '2026-11-15T22:04:05.000Z',
  expires_at: null,
  last_used_at: '2026-11-15T22:10:00.000Z',
  revoked: null,
}

interface KeyParts {
  readonly accounts: Accounts
  readonly store: Pick<KeyStore, 'keysLastUsed'>
  readonly clock: Clock
}

export function keyRoutes({ accounts, store, clock }: KeyParts): readonly OperatorRoute[] {
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
        name: Type.Optional(Type.String({ minLength: 1, maxLength: 100, description: 'What the key is for.' })),
        expires_at: Type.Optional(
          Type.String({
            maxLength: 64,
            description: 'The last day in Sydney, such as 2027-06-30, or a time with its offset.',
          }),
        ),
      }),
      example: { workspace: 'acme', name: 'website' },
      response: jsonResponse(
        createdKeySchema,
        { id: keyExample.id, key: 'weir_…', workspace: 'acme', name: 'website' },
        201,
      ),
      errors: ['not_found', 'invalid_value'],
      async answer({ exchange, body: { workspace, name, expires_at: expires } }) {
        // null counts as absent, as in every body.
        const expiresAt = expires ? endOf('expires_at', expires) : undefined
        exchange.sendJson(
          JSON.stringify(await accounts.createKey(workspace, { name: name || undefined, expiresAt })),
          201,
        )
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
      response: jsonResponse(revokedKeySchema, {
        ...keyExample,
        revoked: '2026-11-16T01:00:00.000Z',
        unreached: [],
      }),
      errors: ['not_found'],
      async state({ parameters: { id } }) {
        const key = await accounts.key(id)
        return key && oneKey({ accounts, store }, key)
      },
      async answer({ exchange, parameters }) {
        const { key, unreached } = await accounts.revokeKey(parameters.id)
        exchange.sendJson(JSON.stringify({ ...(await oneKey({ accounts, store }, key)), unreached }))
      },
    }),
  ]
}
