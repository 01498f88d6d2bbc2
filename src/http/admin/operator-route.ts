import type { Static, TObject } from 'typebox'
import type { ErrorCode } from '../../core/errors.ts'
import { requireValid } from '../../core/parameter-errors.ts'
import { readJsonObject } from '../body.ts'
import type { Exchange } from '../exchange.ts'
import { readQuery } from '../query.ts'
import type { Call, OperationAt, PathParameters, Route } from '../route.ts'

/** A route for the operator. */
export interface OperatorRoute extends Route {
  readonly access: 'operator'
  answer(exchange: Exchange, parameters: PathParameters): Promise<void>
}

interface OperatorOperation<Path extends string, Query extends TObject, Body extends TObject> extends Omit<
  OperationAt<Path, Query>,
  'request'
> {
  /** The JSON body. Read and checked before the handler runs; unknown fields are refused. */
  readonly body?: Body
  /** An example of the body. */
  readonly example?: NoInfer<Static<Body>>
  answer(call: Call<Path, Query> & { readonly body: Static<Body> }): Promise<void> | void
}

/** Room for the ids of all requests that an adjustment note may name. */
const MAX_BODY_BYTES = 1024 * 1024

const bodyErrors: readonly ErrorCode[] = [
  'invalid_json',
  'missing_required_parameter',
  'invalid_type',
  'invalid_value',
  'request_timeout',
  'request_too_large',
  'unsupported_media_type',
]

export function operatorRoute<
  const Path extends string,
  Query extends TObject = TObject<{}>,
  Body extends TObject = TObject<{}>,
>({ body, example, answer, ...operation }: OperatorOperation<Path, Query, Body>): OperatorRoute {
  const { method, path, query: querySchema, errors } = operation
  // A mistyped field must not look like a success.
  const bodySchema = body && { ...body, additionalProperties: false }
  return {
    method,
    path,
    access: 'operator',
    operation: {
      ...operation,
      ...(bodySchema ? { request: { contentType: 'application/json', schema: bodySchema, example } } : {}),
      errors: [...errors, ...(bodySchema ? bodyErrors : querySchema ? ['invalid_value' as const] : [])],
    },
    async answer(exchange, parameters) {
      const query = readQuery(querySchema, exchange.query)
      const given = bodySchema ? await readBody(exchange, bodySchema) : {}
      await answer({ exchange, parameters, query, body: given } as Parameters<typeof answer>[0])
    },
  }
}

async function readBody(exchange: Exchange, schema: TObject): Promise<object> {
  const { value } = await readJsonObject(exchange, MAX_BODY_BYTES)
  requireValid(schema, value)
  return value
}
