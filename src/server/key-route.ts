import type { TObject } from 'typebox'
import type { MemberRole } from '../shared/roles.ts'
import type { Caller } from '../workspaces/workspace.ts'
import { defaultRoles, type Call, type OperationAt, type Route } from './route.ts'

/** The path that the whole API is below. */
export const BASE = '/api/v1'

/** A route for callers with an API key. */
export interface KeyRoute extends Route {
  readonly access: 'key'
  /** Of people who call it from the console: by default every member if it only reads or is an endpoint for inference. */
  readonly roles: readonly MemberRole[]
  /** The endpoint, as keys that are limited to some endpoints list it. undefined: every key may call the route. */
  readonly endpoint?: string | undefined
  answer(call: KeyCall<string, TObject>): Promise<void>
}

type KeyCall<Path extends string, Query extends TObject> = Call<Path, Query> & { readonly caller: Caller }

interface KeyOperation<Path extends string, Query extends TObject>
  extends OperationAt<Path, Query>, Pick<KeyRoute, 'endpoint'>, Partial<Pick<KeyRoute, 'roles'>> {
  answer(call: KeyCall<Path, Query>): Promise<void>
}

/** The path is below the base. */
export function keyRoute<const Path extends string, Query extends TObject = TObject<{}>>(
  operation: KeyOperation<Path, Query>,
): KeyRoute {
  const { method, path, endpoint, answer } = operation
  const roles = operation.roles ?? defaultRoles(method === 'GET' || endpoint !== undefined)
  return { method, path: BASE + path, access: 'key', roles, endpoint, operation, answer }
}

/** The same route below /v1, for clients that build their paths that way. */
export function belowV1(route: KeyRoute): KeyRoute {
  return { ...route, path: route.path.slice('/api'.length) }
}
