import { Type } from 'typebox'
import { ApiError } from '../../shared/errors.ts'
import type { Reloads } from '../../cluster/changes/change-feed.ts'
import { unreachedSchema } from '../../server/common-schema.ts'
import { jsonResponse } from '../../server/route.ts'
import { needsRestartSchema, pendingView } from '../../server/needs-restart.ts'
import { operatorRoute, type OperatorRoute } from '../../server/operator-route.ts'

export interface ReloadParts {
  readonly reloads: Reloads
}

export function reloadRoutes({ reloads }: ReloadParts): readonly OperatorRoute[] {
  return [
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/accounts/reload',
      id: 'reloadAccounts',
      summary: 'Reload accounts',
      description: 'Reads workspaces, keys and prices again, after another program has changed the database.',
      response: jsonResponse(Type.Object({ reloaded: Type.Literal(true), unreached: unreachedSchema })),
      errors: [],
      async answer({ exchange }) {
        exchange.sendJson(JSON.stringify({ reloaded: true, unreached: await reloads.accounts() }))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/catalog/reload',
      id: 'reloadCatalog',
      summary: 'Reload the catalog',
      description:
        'Reads the catalog file again, once it is no longer being written. If it has a mistake, no models, or has lost a price that a model is charged for, the error reports it and the old catalog stays.',
      query: Type.Object({
        force: Type.Optional(
          Type.Enum(['true', 'false'], {
            description: 'true: apply the catalog even if it has no models or has lost prices.',
          }),
        ),
      }),
      response: jsonResponse(
        Type.Object({
          reloaded: Type.Literal(true),
          models: Type.Integer({ example: 7 }),
          unreached: unreachedSchema,
          needs_restart: needsRestartSchema,
        }),
      ),
      errors: ['invalid_value'],
      async answer({ exchange, query }) {
        const { needsRestart, ...taken } = await reloads
          .catalog({ force: query.force === 'true' })
          .catch((error: Error) => {
            throw new ApiError('invalid_value', error.message)
          })
        exchange.sendJson(JSON.stringify({ reloaded: true, ...taken, needs_restart: needsRestart.map(pendingView) }))
      },
    }),
  ]
}
