import { signal } from '@preact/signals'

/**
 * Calls the operations of an API of ours. The types of requests and answers are generated from its OpenAPI document.
 */

interface OperationTypes {
  readonly path: object
  readonly query: object
  readonly body: unknown
  readonly answer: unknown
}

type Table<Types> = Readonly<Record<keyof Types, readonly [method: string, path: string, roles?: readonly string[]]>>

/** What to send: fields of the path and a body only where the operation has them. */
export type Request<Operation extends OperationTypes> = {
  readonly query?: Operation['query']
  readonly signal?: AbortSignal
} & ({} extends Operation['path'] ? unknown : { readonly path: Operation['path'] }) &
  (undefined extends Operation['body'] ? unknown : { readonly body: Operation['body'] })

export type Client<Types> = <Id extends keyof Types & string>(
  id: Id,
  ...request: Types[Id] extends OperationTypes
    ? {} extends Request<Types[Id]>
      ? [request?: Request<Types[Id]>]
      : [request: Request<Types[Id]>]
    : never
) => Promise<Types[Id] extends OperationTypes ? Types[Id]['answer'] : never>

/** Whether people with one of these roles may call the operation. The service decides; this only spares them the refusal. */
export function mayCall<Types>(operations: Table<Types>, id: keyof Types, held: readonly string[]): boolean {
  const [, , roles] = operations[id]
  return roles === undefined || roles.some((role) => held.includes(role))
}

/** An error of the API, or of the connection to it. */
export class Failure extends Error {
  readonly status: number
  readonly code: string
  /** The parameter that is wrong; undefined if it is none of them. */
  readonly param: string | undefined
  /** Of a request to a model, which has a page of its own. */
  readonly requestId: string | undefined

  constructor(status: number, code: string, message: string, param?: string, requestId?: string) {
    super(message)
    this.status = status
    this.code = code
    this.param = param
    this.requestId = requestId
  }
}

/** False while the service cannot be reached. */
export const isReachable = signal(true)
/** Counts retries: a page then loads everything again. */
export const attempts = signal(0)
/** Set when a request fails because the session has ended. */
export const isSignedOut = signal(false)

/** The open page loads everything again, and continues. */
export function hasSignedInAgain(): void {
  if (isSignedOut.value) attempts.value++
  isSignedOut.value = false
}

/** Shows the service that the request is from its own page: no other site can send this header. */
export const consoleHeaders = { 'X-Weir-Console': '1' }

export function client<Types>(operations: Table<Types>): Client<Types> {
  return (async (id: keyof Types & string, request: AnyRequest = {}) => {
    const [method, template] = operations[id]
    const response = await send(addressOf(template, request), {
      method,
      ...(request.body === undefined
        ? {}
        : { body: JSON.stringify(request.body), headers: { 'Content-Type': 'application/json' } }),
      ...(request.signal ? { signal: request.signal } : {}),
    })
    return response.json()
  }) as Client<Types>
}

interface AnyRequest {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | undefined>>
  readonly body?: unknown
  readonly signal?: AbortSignal
}

/** Throws a Failure unless the request succeeded. */
export async function send(address: string, init: RequestInit): Promise<Response> {
  const headers = { ...consoleHeaders, ...(init.headers as Record<string, string> | undefined) }
  const response = await fetch(address, { ...init, headers, credentials: 'same-origin' }).catch((error: Error) => {
    if (error.name === 'AbortError') throw error
    isReachable.value = false
    throw new Failure(0, 'unreachable', 'The service cannot be reached. Check the connection and try again.')
  })
  isReachable.value = true
  if (response.ok) return response
  const failure = await readFailure(response, address.startsWith('/api/v1/'))
  if (response.status === 401) isSignedOut.value = true
  throw failure
}

async function readFailure(response: Response, isOnRecord: boolean): Promise<Failure> {
  const body = (await response.json().catch(() => undefined)) as
    | { error?: { code: string; message: string; param: string | null } }
    | undefined
  const {
    code = 'unknown',
    message = `The service answered with status ${response.status}.`,
    param,
  } = body?.error ?? {}
  const id = response.headers.get('x-request-id') ?? undefined
  if (isOnRecord) return new Failure(response.status, code, message, param ?? undefined, id)
  const forTheLog =
    response.status < 500 || id === undefined ? '' : ` Its request id, for the log of the service: ${id}`
  return new Failure(response.status, code, message + forTheLog, param ?? undefined)
}

export function addressOf(template: string, { path = {}, query = {} }: AnyRequest): string {
  const filled = template.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    (path[name] ?? '').split('/').map(encodeURIComponent).join('/'),
  )
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return search === '' ? filled : `${filled}?${search}`
}
