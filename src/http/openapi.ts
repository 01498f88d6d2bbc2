import type { TSchema } from 'typebox'
import { errorTable, type ErrorCode } from '../core/errors.ts'
import { errorSchema } from './common-schema.ts'
import type { HeaderDescription, Operation, Route } from './route.ts'

/** What the documentation says about an API as a whole. The rest comes from its routes. */
export interface ApiDescription {
  readonly title: string
  readonly description: string
  /** Every documented path is below this one, which the document names as its server. */
  readonly base: string
  /** Where the OpenAPI document is served. */
  readonly documentPath: string
  /** The name of the bearer credentials, and what to send. */
  readonly credentials: { readonly name: string; readonly description: string }
  /** On every response. */
  readonly headers: Readonly<Record<string, HeaderDescription>>
  /** Errors that every route with credentials may give. */
  readonly errors: readonly ErrorCode[]
  /** The first section of the docs page, in HTML. */
  readonly introduction: string
}

/** A route that the document has, at its path below the base. */
export interface DocumentedRoute {
  readonly method: string
  readonly path: string
  readonly isOpen: boolean
  readonly operation: Operation
}

export function documentedRoutes({ base }: ApiDescription, routes: readonly Route[]): readonly DocumentedRoute[] {
  return routes.flatMap(({ method, path, access, operation }) => {
    if (!operation || !path.startsWith(`${base}/`)) return []
    return [{ method, path: path.slice(base.length).replaceAll('+}', '}'), isOpen: access === 'open', operation }]
  })
}

export function openApiDocument(api: ApiDescription, routes: readonly Route[]): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const route of documentedRoutes(api, routes)) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: toOperation(api, route) }
  }
  const { name, description } = api.credentials
  return {
    openapi: '3.1.0',
    info: {
      title: api.title,
      version: '1',
      description: api.description,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: api.base === '' ? '/' : api.base }],
    security: [{ [name]: [] }],
    paths,
    components: {
      securitySchemes: { [name]: { type: 'http', scheme: 'bearer', description } },
      schemas: { Error: errorSchema },
    },
  }
}

function toOperation(api: ApiDescription, { operation, isOpen }: DocumentedRoute): object {
  const { id, summary, description, request, response, errors } = operation
  const parameters = [...pathParameters(operation), ...queryParameters(operation)]
  return {
    summary,
    description,
    operationId: id,
    ...(isOpen ? { security: [] } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(request
      ? { requestBody: { required: true, content: { [request.contentType]: { schema: request.schema } } } }
      : {}),
    responses: {
      [response.status]: {
        description: summary,
        headers: { ...api.headers, ...response.headers },
        content: Object.fromEntries(Object.entries(response.content).map(([type, schema]) => [type, { schema }])),
      },
      ...errorResponses(api, isOpen ? errors : [...errors, ...api.errors]),
    },
  }
}

function pathParameters({ parameters = {} }: Operation): readonly object[] {
  return Object.entries(parameters).map(([name, description]) => ({
    name,
    in: 'path',
    required: true,
    description,
    schema: { type: 'string' },
  }))
}

function queryParameters({ query }: Operation): readonly object[] {
  const required: readonly string[] = query?.required ?? []
  return Object.entries<TSchema & { readonly description?: string }>(query?.properties ?? {}).map(
    ([name, { description, ...schema }]) => ({
      name,
      in: 'query',
      required: required.includes(name),
      description,
      schema: { type: 'string', ...schema },
    }),
  )
}

function errorResponses(api: ApiDescription, codes: readonly ErrorCode[]): Record<number, object> {
  const byStatus = Map.groupBy(new Set(codes), (code) => errorTable[code].status)
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [
      status,
      {
        description: group.join(', '),
        headers: {
          ...api.headers,
          ...(group.some((code) => errorTable[code].retryAfter !== null)
            ? { 'Retry-After': { description: 'Seconds to wait before trying again.', schema: { type: 'integer' } } }
            : {}),
        },
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    ]),
  )
}
