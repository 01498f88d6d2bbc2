import type { Static, TObject } from 'typebox'
import { requireValid } from '../shared/json/schema-check.ts'
import { bodyErrors, readJsonObject } from './body.ts'
import type { RecordAction } from '../operate/audit/recorded.ts'
import type { OperatorRole } from '../shared/roles.ts'
import type { Exchange } from './exchange.ts'
import { readQuery } from './router.ts'
import type { Call, OperationAt, PathParameters, Route } from './route.ts'

/** A route for the operator. */
export interface OperatorRoute extends Route {
  readonly access: 'operator'
  readonly roles: readonly OperatorRole[]
  /** `record` performs the action and writes it to the audit log; a route that changes nothing is not recorded. */
  answer(exchange: Exchange, parameters: PathParameters, record: RecordAction): Promise<void>
}

interface OperatorOperation<Path extends string, Query extends TObject, Body extends TObject> extends Omit<
  OperationAt<Path, Query>,
  'request'
> {
  /** The JSON body. Read and checked before the handler runs; unknown fields are refused. */
  readonly body?: Body
  /** An example of the body. */
  readonly example?: NoInfer<Static<Body>>
  /** True for a request that only reads, whatever its method is. */
  readonly changesNothing?: boolean
  /** Who may call it besides operators: by default viewers if it only reads, and otherwise no one. */
  readonly roles?: readonly OperatorRole[]
  /** The current state of what it changes, for the audit log. */
  state?(call: Call<Path, Query> & { readonly body: Static<Body> }): Promise<object | undefined>
  answer(call: Call<Path, Query> & { readonly body: Static<Body> }): Promise<void>
}

/** Room for the ids of all requests that an adjustment note may name. */
const MAX_BODY_BYTES = 1024 * 1024

export function operatorRoute<
  const Path extends string,
  Query extends TObject = TObject<{}>,
  Body extends TObject = TObject<{}>,
>({
  body,
  example,
  changesNothing = false,
  roles,
  state,
  answer,
  ...operation
}: OperatorOperation<Path, Query, Body>): OperatorRoute {
  const { method, path, query: querySchema, errors } = operation
  // A request with a mistyped field must not look like a success.
  const bodySchema = body && { ...body, additionalProperties: false }
  const onlyReads = method === 'GET' || changesNothing
  return {
    method,
    path,
    access: 'operator',
    roles: ['operator', ...(roles ?? (onlyReads ? (['viewer'] as const) : []))],
    operation: {
      ...operation,
      ...(bodySchema ? { request: { contentType: 'application/json', schema: bodySchema, example } } : {}),
      errors: [...errors, ...(bodySchema ? bodyErrors : querySchema ? ['invalid_value' as const] : [])],
    },
    async answer(exchange, parameters, record) {
      const query = readQuery(querySchema, exchange.query)
      const given = bodySchema ? await readBody(exchange, bodySchema) : {}
      const call = { exchange, parameters, query, body: given } as Parameters<typeof answer>[0]
      const act = async (): Promise<void> => answer(call)
      if (onlyReads) return act()
      const subject = Object.values(parameters).join(' ')
      await record({ action: operation.id, subject, body: bodySchema && given, state: async () => state?.(call) }, act)
    },
  }
}

async function readBody(exchange: Exchange, schema: TObject): Promise<object> {
  const { value } = await readJsonObject(exchange, MAX_BODY_BYTES)
  requireValid(schema, value)
  return value
}
