/**
 * Every error a caller can see.
 * `retryAfter` is in seconds; with `computed`, the code that throws the error supplies the value.
 */
export const errorTable = {
  invalid_json: { status: 400, type: 'invalid_request_error', retryAfter: null },
  missing_required_parameter: { status: 400, type: 'invalid_request_error', retryAfter: null },
  invalid_type: { status: 400, type: 'invalid_request_error', retryAfter: null },
  invalid_value: { status: 400, type: 'invalid_request_error', retryAfter: null },
  unsupported_parameter: { status: 400, type: 'invalid_request_error', retryAfter: null },
  unsupported_value: { status: 400, type: 'invalid_request_error', retryAfter: null },
  unsupported_content: { status: 400, type: 'invalid_request_error', retryAfter: null },
  wrong_endpoint: { status: 400, type: 'invalid_request_error', retryAfter: null },
  context_length_exceeded: { status: 400, type: 'invalid_request_error', retryAfter: null },
  token_budget_exceeded: { status: 400, type: 'invalid_request_error', retryAfter: null },
  missing_api_key: { status: 401, type: 'invalid_request_error', retryAfter: null },
  invalid_api_key: { status: 401, type: 'invalid_request_error', retryAfter: null },
  spend_limit_exceeded: { status: 402, type: 'billing_error', retryAfter: null },
  key_not_allowed: { status: 403, type: 'permission_error', retryAfter: null },
  quota_exceeded: { status: 403, type: 'permission_error', retryAfter: null },
  role_not_allowed: { status: 403, type: 'permission_error', retryAfter: null },
  model_access_denied: { status: 403, type: 'permission_error', retryAfter: null },
  model_not_found: { status: 404, type: 'invalid_request_error', retryAfter: null },
  not_found: { status: 404, type: 'invalid_request_error', retryAfter: null },
  unknown_url: { status: 404, type: 'invalid_request_error', retryAfter: null },
  method_not_allowed: { status: 405, type: 'invalid_request_error', retryAfter: null },
  request_timeout: { status: 408, type: 'invalid_request_error', retryAfter: 1 },
  conflict: { status: 409, type: 'invalid_request_error', retryAfter: null },
  request_too_large: { status: 413, type: 'invalid_request_error', retryAfter: null },
  unsupported_media_type: { status: 415, type: 'invalid_request_error', retryAfter: null },
  headers_too_large: { status: 431, type: 'invalid_request_error', retryAfter: null },
  rate_limit_exceeded: { status: 429, type: 'rate_limit_error', retryAfter: 'computed' },
  queue_full: { status: 429, type: 'rate_limit_error', retryAfter: 'computed' },
  workspace_queue_full: { status: 429, type: 'rate_limit_error', retryAfter: 'computed' },
  no_idle_capacity: { status: 429, type: 'rate_limit_error', retryAfter: 'computed' },
  internal_error: { status: 500, type: 'server_error', retryAfter: 2 },
  upstream_error: { status: 502, type: 'server_error', retryAfter: 2 },
  model_overloaded: { status: 503, type: 'server_error', retryAfter: 5 },
  model_not_configured: { status: 503, type: 'server_error', retryAfter: 10 },
  model_unavailable: { status: 503, type: 'server_error', retryAfter: 10 },
  service_unavailable: { status: 503, type: 'server_error', retryAfter: 2 },
  upstream_timeout: { status: 504, type: 'server_error', retryAfter: 5 },
} as const satisfies Record<string, { status: number; type: string; retryAfter: number | 'computed' | null }>

export type ErrorCode = keyof typeof errorTable

export const errorCodes = Object.keys(errorTable) as ErrorCode[]

/** The status of a stored code; null if this version does not know it. */
export function statusOf(code: string): number | null {
  return Object.hasOwn(errorTable, code) ? errorTable[code as ErrorCode].status : null
}

/**
 * Whether the same request may succeed later without any change. `model_not_configured` has to carry `Retry-After` as
 * well, but only the operator can give the model an engine.
 */
export function waitingHelps(code: ErrorCode): boolean {
  return errorTable[code].retryAfter !== null && code !== 'model_not_configured'
}

interface ErrorBody {
  readonly error: {
    readonly message: string
    readonly type: string
    readonly param: string | null
    readonly code: ErrorCode
  }
}

/** The tokens that a request needs, and those that the context of its model has room for. */
export interface ContextTokens {
  readonly input: number
  readonly output: number
  readonly limit: number
}

/** A refusal listed in the table. Anything else that is thrown becomes `internal_error`. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly param: string | null
  readonly retryAfter: number | null
  readonly waitingHelps: boolean
  /** For `context_length_exceeded`, if they are known. Some clients read them. */
  readonly tokens: ContextTokens | undefined

  constructor(
    code: ErrorCode,
    message: string,
    details: {
      param?: string
      retryAfter?: number
      /** Set if this case differs from the others of its code. */
      waitingHelps?: boolean
      cause?: unknown
      tokens?: ContextTokens
    } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.param = details.param ?? null
    this.tokens = details.tokens
    const listed = errorTable[code].retryAfter
    this.retryAfter = listed === 'computed' ? clampRetryAfter(details.retryAfter ?? 1) : listed
    this.waitingHelps = details.waitingHelps ?? waitingHelps(code)
  }

  get status(): number {
    return errorTable[this.code].status
  }

  /**
   * SDKs retry a request after some statuses; those of OpenAI and Anthropic do so unless the second header forbids it.
   */
  retryHeaders(): Record<string, string> {
    return {
      ...(this.retryAfter === null ? {} : { 'Retry-After': String(this.retryAfter) }),
      ...(this.waitingHelps ? {} : { 'X-Should-Retry': 'false' }),
    }
  }

  body(): ErrorBody {
    const { message, param, code } = this
    return { error: { message, type: errorTable[code].type, param, code } }
  }
}

export const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.code === 'not_found'

/** The caller disconnected, so no answer is sent. Logged as status 499. */
export class CallerLeft extends Error {}

/** SDKs retry immediately on 0, and several ignore 60 or more. */
function clampRetryAfter(seconds: number): number {
  return Math.min(59, Math.max(1, Math.ceil(seconds)))
}
