import Type from 'typebox'
import type { Catalog } from '../../catalog/catalog.ts'
import { ApiError } from '../../core/errors.ts'
import type { ChangeFeed } from '../../ports/changes.ts'
import { jsonResponse } from '../route.ts'
import { operatorRoute, type OperatorRoute } from './operator-route.ts'

/** Takes in what was changed outside of the service: by a command, or in a file. */

export interface ReloadParts {
  readonly changes: ChangeFeed
  readonly catalog: Catalog
}

export function reloadRoutes({ changes, catalog }: ReloadParts): readonly OperatorRoute[] {
  return [
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/accounts/reload',
      id: 'reloadAccounts',
      summary: 'Reload accounts',
      description: 'Reads workspaces, keys and prices again. The commands of weir call this after every change.',
      response: jsonResponse(Type.Object({ reloaded: Type.Literal(true) })),
      errors: [],
      async answer({ exchange }) {
        await Promise.all([changes.announce('accounts'), changes.announce('prices')])
        exchange.sendJson('{"reloaded":true}')
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/catalog/reload',
      id: 'reloadCatalog',
      summary: 'Reload the catalog',
      description: 'Reads the catalog file again. If it has a mistake, the error names it and the old catalog stays.',
      response: jsonResponse(Type.Object({ reloaded: Type.Literal(true), models: Type.Integer() })),
      errors: ['invalid_value'],
      async answer({ exchange }) {
        await changes.announce('catalog').catch((error: Error) => {
          throw new ApiError('invalid_value', error.message)
        })
        exchange.sendJson(JSON.stringify({ reloaded: true, models: catalog.models().length }))
      },
    }),
  ]
}
