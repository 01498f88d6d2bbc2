import Type from 'typebox'
import type { Accounts } from '../../accounts/accounts.ts'
import { keyView } from '../../accounts/views.ts'
import { listSchema, nullable } from '../common-schema.ts'
import { jsonResponse } from '../route.ts'
import { operatorRoute, type OperatorRoute } from './operator-route.ts'

const keySchema = Type.Object({
  id: Type.String(),
  workspace: Type.String({ description: 'The name of the workspace.' }),
  created: Type.String(),
  revoked: nullable(Type.String(), 'When the key was revoked; null while it is valid.'),
})

const createdKeySchema = Type.Object({
  id: Type.String(),
  key: Type.String({ description: 'The key itself. It is shown only now, and stored nowhere.' }),
  workspace: Type.String(),
})

export function keyRoutes({ accounts }: { readonly accounts: Accounts }): readonly OperatorRoute[] {
  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/keys',
      id: 'listKeys',
      summary: 'List keys',
      description: 'All API keys by id, including revoked ones. The keys themselves are not stored.',
      response: jsonResponse(listSchema(keySchema)),
      errors: [],
      answer({ exchange }) {
        const data = accounts.keys().map((key) => keyView(key, accounts))
        exchange.sendJson(JSON.stringify({ object: 'list', data }))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/keys',
      id: 'createKey',
      summary: 'Create a key',
      description: 'Creates an API key for a workspace. It works immediately.',
      body: Type.Object({
        workspace: Type.String({ minLength: 1, description: 'The name or id of a workspace.' }),
      }),
      response: jsonResponse(createdKeySchema, 201),
      errors: ['not_found'],
      async answer({ exchange, body }) {
        exchange.sendJson(JSON.stringify(await accounts.createKey(body.workspace)), 201)
      },
    }),
    operatorRoute({
      method: 'DELETE',
      path: '/admin/v1/keys/{id}',
      id: 'revokeKey',
      summary: 'Revoke a key',
      description: 'The next request with the key is refused. Revoking it again changes nothing.',
      parameters: { id: 'The id of a key.' },
      response: jsonResponse(keySchema),
      errors: ['not_found'],
      async answer({ exchange, parameters }) {
        exchange.sendJson(JSON.stringify(keyView(await accounts.revokeKey(parameters.id), accounts)))
      },
    }),
  ]
}
