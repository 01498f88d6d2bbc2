import type { Static, TObject } from 'typebox'
import type { Action, RecordAction } from '../../operate/audit/recorded.ts'
import type { MemberRole } from '../../shared/roles.ts'
import type { SignedIn } from '../../workspaces/sessions/workspace-sessions.ts'
import { requireValid } from '../../shared/json/schema-check.ts'
import { bodyErrors, readJsonObject } from '../body.ts'
import type { Exchange } from '../exchange.ts'
import { readQuery } from '../router.ts'
import { defaultRoles, type Call, type OperationAt, type PathParameters, type Route } from '../route.ts'

/** The path that the console's own API is below. */
export const CONSOLE_BASE = '/console/api'

/** A route for members of a workspace who are signed in to its console. API keys are not accepted. */
export interface SessionRoute extends Route {
  readonly access: 'session'
  readonly roles: readonly MemberRole[]
  /** `record` performs the action and writes it to the audit log. */
  answer(exchange: Exchange, parameters: PathParameters, session: SignedIn, record: RecordAction): Promise<void>
}

interface SessionOperation<Path extends string, Query extends TObject, Body extends TObject> extends Omit<
  OperationAt<Path, Query>,
  'request'
> {
  readonly body?: Body
  readonly example?: NoInfer<Static<Body>>
  /** Who may call it: by default every member if it only reads, and otherwise administrators. */
  readonly roles?: readonly MemberRole[]
  /** The action's entry in the audit log, if it changes something. */
  action?(call: SessionCall<Path, Query, Body>): Omit<Action, 'body'>
  answer(call: SessionCall<Path, Query, Body>): Promise<void>
}

type SessionCall<Path extends string, Query extends TObject, Body extends TObject> = Call<Path, Query> & {
  readonly body: Static<Body>
  readonly session: SignedIn
}

const MAX_BODY_BYTES = 64 * 1024

/** The path is below the base. */
export function sessionRoute<
  const Path extends string,
  Query extends TObject = TObject<{}>,
  Body extends TObject = TObject<{}>,
>({ body, example, roles, action, answer, ...operation }: SessionOperation<Path, Query, Body>): SessionRoute {
  const { method, path, query: querySchema, errors } = operation
  const bodySchema = body && { ...body, additionalProperties: false }
  return {
    method,
    path: CONSOLE_BASE + path,
    access: 'session',
    roles: roles ?? defaultRoles(method === 'GET'),
    operation: {
      ...operation,
      ...(bodySchema ? { request: { contentType: 'application/json', schema: bodySchema, example } } : {}),
      errors: [...errors, ...(bodySchema ? bodyErrors : querySchema ? ['invalid_value' as const] : [])],
    },
    async answer(exchange, parameters, session, record) {
      const query = readQuery(querySchema, exchange.query)
      const given = bodySchema && (await readSmallBody(exchange, bodySchema))
      const call = { exchange, parameters, query, session, body: given } as Parameters<typeof answer>[0]
      const act = async (): Promise<void> => answer(call)
      if (!action) return act()
      await record({ ...action(call), body: given }, act)
    },
  }
}

export async function readSmallBody<Body extends TObject>(exchange: Exchange, schema: Body): Promise<Static<Body>> {
  const { value } = await readJsonObject(exchange, MAX_BODY_BYTES)
  requireValid(schema, value)
  return value as Static<Body>
}
