import type { TSchema } from 'typebox'
import { errorTable, waitingHelps, type ErrorCode } from '../shared/errors.ts'
import { errorSchema, type SchemaParts } from './common-schema.ts'
import { errorExamples } from './docs/error-examples.ts'
import type { Content, ErrorShape, HeaderDescription, Operation, Route } from './route.ts'

/** The general part of an API's documentation. The rest is generated from its routes. */
export interface ApiDescription {
  readonly title: string
  readonly description: string
  /** Every documented path is below this one, which the document names as its server. */
  readonly base: string
  /** Where the OpenAPI document is served. */
  readonly documentPath: string
  readonly credentials: Credentials
  /** On every response. */
  readonly headers: Readonly<Record<string, HeaderDescription>>
  /** Errors that every route with credentials may give. */
  readonly errors: readonly ErrorCode[]
  /** Paragraphs at the top of the docs page, in HTML. */
  readonly introduction: string
}

/** The bearer credentials. */
export interface Credentials {
  readonly name: string
  /** What to send. */
  readonly description: string
  /** What the form asks a person for, such as "API key". */
  readonly label: string
  /** The environment variable that code samples read. */
  readonly variable: string
  /** The cookie that carries the credentials instead of a header. */
  readonly cookie?: string
}

/** A documented route, at its path below the base. */
export interface DocumentedRoute {
  readonly method: string
  readonly path: string
  readonly isOpen: boolean
  /** undefined: it depends on no role, or only on that of a person who uses the console. */
  readonly roles: readonly string[] | undefined
  readonly operation: Operation
}

export function documentedRoutes({ base }: ApiDescription, routes: readonly Route[]): readonly DocumentedRoute[] {
  return routes.flatMap(({ method, path, access, roles, operation }) => {
    if (!operation || !path.startsWith(`${base}/`)) return []
    return [
      {
        method,
        path: path.slice(base.length).replaceAll('+}', '}'),
        isOpen: access === 'open',
        roles: access === 'key' ? undefined : roles,
        operation,
      },
    ]
  })
}

export function openApiDocument(api: ApiDescription, routes: readonly Route[]): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const route of documentedRoutes(api, routes)) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: toOperation(api, route) }
  }
  const { name, description, cookie } = api.credentials
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
      securitySchemes: {
        [name]: cookie
          ? { type: 'apiKey', in: 'cookie', name: cookie, description }
          : { type: 'http', scheme: 'bearer', description },
      },
      schemas: { Error: errorSchema },
    },
  }
}

function toOperation(api: ApiDescription, { operation, isOpen, roles }: DocumentedRoute): object {
  const { id, summary, description, request, response, errors } = operation
  const parameters = [...pathParameters(operation), ...queryParameters(operation)]
  return {
    summary,
    description,
    operationId: id,
    ...(isOpen ? { security: [] } : {}),
    ...(roles ? { 'x-roles': roles } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(request
      ? {
          requestBody: {
            required: true,
            content: { [request.contentType]: toMedia(request) },
          },
        }
      : {}),
    responses: {
      [response.status]: {
        description: summary,
        headers: { ...api.headers, ...response.headers },
        content: Object.fromEntries(Object.entries(response.content).map(([type, it]) => [type, toMedia(it)])),
      },
      ...errorResponses(api, operation, isOpen ? errors : [...errors, ...api.errors]),
    },
  }
}

function toMedia({ schema, example }: Content): object {
  return { schema: published(schema), example }
}

/** A schema without our own keywords. `expected`, the wording of an error, makes a good description. */
function published(schema: TSchema): object {
  const { expected, example: _, properties, items, anyOf, ...rest } = schema as SchemaParts
  return {
    ...(expected === undefined ? {} : { description: `${expected.charAt(0).toUpperCase()}${expected.slice(1)}.` }),
    ...rest,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, it]) => [name, published(it)])),
    }),
    ...(items && { items: published(items) }),
    ...(anyOf && { anyOf: anyOf.map(published) }),
  }
}

function pathParameters({ parameters = {} }: Operation): readonly object[] {
  return Object.entries(parameters).map(([name, { description, example }]) => ({
    name,
    in: 'path',
    required: true,
    description,
    example,
    schema: { type: 'string' },
  }))
}

function queryParameters({ query }: Operation): readonly object[] {
  const required: readonly string[] = query?.required ?? []
  return Object.entries<QueryField>(query?.properties ?? {}).map(([name, { description, example, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    description,
    ...(example === undefined ? {} : { example }),
    schema: { type: 'string', ...published(schema) },
  }))
}

/** A field of a query. It has an example if it is required. */
export type QueryField = TSchema & { readonly description?: string; readonly example?: string }

const shouldRetryHeader = {
  description: 'false if waiting does not help: the same request would be refused again. SDKs then do not repeat it.',
  schema: { type: 'string', const: 'false' },
} as const

function errorResponses(
  api: ApiDescription,
  { errorShape }: Operation,
  codes: readonly ErrorCode[],
): Record<number, object> {
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
          ...(group.some((code) => !waitingHelps(code)) ? { 'X-Should-Retry': shouldRetryHeader } : {}),
        },
        content: {
          'application/json': {
            schema: errorShape?.schema ? published(errorShape.schema) : { $ref: '#/components/schemas/Error' },
            example: shapedExample(group[0] as ErrorCode, errorShape),
          },
        },
      },
    ]),
  )
}

function shapedExample(code: ErrorCode, shape: ErrorShape | undefined): object {
  const error = errorExamples[code]
  return shape?.schema ? shape.body(error, '01k3zq8v6t') : error.body()
}
