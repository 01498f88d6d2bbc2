import type { TObject } from 'typebox'
import type { Caller } from '../workspaces/workspace.ts'
import type { Exchange } from './exchange.ts'
import { readQuery } from './query.ts'
import type { Call, OperationAt, PathParameters, Route } from './route.ts'

/** The path that the whole API is below. */
export const BASE = '/api/v1'

/** A route for callers with an API key. */
export interface KeyRoute extends Route {
  readonly access: 'key'
  answer(exchange: Exchange, parameters: PathParameters, caller: Caller): Promise<void>
}

interface KeyOperation<Path extends string, Query extends TObject> extends OperationAt<Path, Query> {
  answer(call: Call<Path, Query> & { readonly caller: Caller }): Promise<void>
}

/** The path is below the base. */
export function keyRoute<const Path extends string, Query extends TObject = TObject<{}>>(
  operation: KeyOperation<Path, Query>,
): KeyRoute {
  const { method, path, query: schema } = operation
  return {
    method,
    path: BASE + path,
    access: 'key',
    operation,
    answer(exchange, parameters, caller) {
      const call = { exchange, caller, parameters, query: readQuery(schema, exchange.query) }
      return operation.answer(call as Parameters<typeof operation.answer>[0])
    },
  }
}

/** The same route below /v1, for clients that build their paths that way. */
export function belowV1(route: KeyRoute): KeyRoute {
  return { ...route, path: route.path.slice('/api'.length) }
}
