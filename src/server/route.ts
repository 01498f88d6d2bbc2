import type { Static, TObject, TSchema } from 'typebox'
import type { ApiError, ErrorCode } from '../shared/errors.ts'
import type { MemberRole, Role } from '../shared/roles.ts'
import { exampleOf } from './common-schema.ts'
import type { Exchange } from './exchange.ts'

/** Routes as data. The router, the OpenAPI document and the docs page are all generated from the same list. */

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** What every route declares, for any kind of caller. */
export interface Route {
  readonly method: Method
  /** `/models/{slug}` takes one segment of the path; `{slug+}` takes the rest of it, slashes included. */
  readonly path: string
  /** Who may call it: everyone, callers with an API key, members who are signed in to the console, or the operator. */
  readonly access: 'open' | 'key' | 'session' | 'operator'
  /** Which people who are signed in may call it. A key and the operator token have no role, and are not limited by it. */
  readonly roles?: readonly Role[]
  /** undefined: the route is not documented. */
  readonly operation: Operation | undefined
}

/** A route as the documentation describes it. */
export interface Operation {
  /** Unique in the document: SDK generators name their functions after it. */
  readonly id: string
  readonly summary: string
  readonly description: string
  readonly parameters?: Readonly<Record<string, ParameterDescription>>
  /** A required field has an `example`. */
  readonly query?: TObject
  readonly request?: Content & { readonly contentType: string }
  readonly response: ResponseDescription
  /** In addition to those that any route may return. */
  readonly errors: readonly ErrorCode[]
  /** The shape of its errors, if its API has a different one. */
  readonly errorShape?: ErrorShape | undefined
}

export interface ErrorShape {
  /** undefined: the usual one, with additional fields. */
  readonly schema?: TSchema
  body(error: ApiError, requestId: string): object
}

/** A parameter in the path. */
export interface ParameterDescription {
  readonly description: string
  readonly example: string
}

/** The body of a request or an answer. The example fits the schema. */
export interface Content {
  readonly schema: TSchema
  readonly example: unknown
}

export interface ResponseDescription {
  readonly status: 200 | 201
  /** By content type. */
  readonly content: Readonly<Record<string, Content>>
  readonly headers?: Readonly<Record<string, HeaderDescription>>
}

export interface HeaderDescription {
  readonly description: string
  readonly schema: { readonly type: 'integer' | 'string' }
}

/** The decoded values of the parameters in a path, by name. */
export type PathParameters = Readonly<Record<string, string>>

/** The names of the parameters in a path: 'workspace' | 'model' for `/workspaces/{workspace}/prices/{model+}`. */
export type ParameterName<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? (Name extends `${infer Plain}+` ? Plain : Name) | ParameterName<Rest>
  : never

/** What a handler gets. The query has been checked against its schema. */
export interface Call<Path extends string, Query extends TObject> {
  readonly exchange: Exchange
  readonly parameters: Readonly<Record<ParameterName<Path>, string>>
  readonly query: Static<Query>
}

/** An operation whose parameters match the path. */
export interface OperationAt<Path extends string, Query extends TObject> extends Operation {
  readonly method: Method
  readonly path: Path
  readonly parameters?: Readonly<Record<ParameterName<Path>, ParameterDescription>>
  readonly query?: Query
}

/** A route that needs no credentials. It answers HEAD as well as GET. */
export interface OpenRoute extends Route {
  readonly access: 'open'
  /** Requests count against the limit for callers without a key. */
  readonly isCounted?: boolean
  answer(exchange: Exchange, parameters: PathParameters): Promise<void>
}

export function openRoute<const Path extends string>(
  path: Path,
  answer: (exchange: Exchange, parameters: Readonly<Record<ParameterName<Path>, string>>) => Promise<void>,
  operation?: Operation,
): OpenRoute {
  return { method: 'GET', path, access: 'open', operation, answer }
}

/** The roles of a route for members that names none. A change needs an administrator. */
export function defaultRoles(isForEveryMember: boolean): readonly MemberRole[] {
  return isForEveryMember ? ['member', 'workspace_admin'] : ['workspace_admin']
}

/** Without an example of its own, it has that of its schema. */
export function jsonResponse(
  schema: TSchema,
  example = exampleOf(schema),
  status: ResponseDescription['status'] = 200,
): ResponseDescription {
  return { status, content: { 'application/json': { schema, example } } }
}
