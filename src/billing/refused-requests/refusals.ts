import { errorCauses } from '../../shared/error-help.ts'
import type { ApiError, ErrorCode } from '../../shared/errors.ts'

/**
 * A request that was refused before it reached an engine, so it has no ledger row. It contains no text of the caller's.
 */
export interface Refusal {
  readonly requestId: string
  /** Unix ms. */
  readonly at: number
  /** '' if the request had no valid key. */
  readonly workspaceId: string
  readonly keyId: string
  /** A path of the API; '' if there is no such path. */
  readonly endpoint: string
  /** A model of the catalog; '' if none was found. */
  readonly model: string
  readonly code: ErrorCode
  readonly httpStatus: number
  /** The field that it is about; '' unless the endpoint has such a field. */
  readonly param: string
  readonly reason: string
}

/** How many requests of each workspace and code are kept. All others are only counted. */
export const NEWEST_OF_CODE = 20

/** How many requests of one key were refused with one code. */
export interface RefusedGroup {
  readonly workspaceId: string
  /** '' in a workspace: the keys beyond those that are counted separately. */
  readonly keyId: string
  readonly code: ErrorCode
  readonly requests: number
}

export interface RefusedHour extends RefusedGroup {
  /** Unix ms of its beginning. */
  readonly hour: number
}

export interface RefusalBatch {
  readonly hours: readonly RefusedHour[]
  readonly newest: readonly Refusal[]
}

/** Codes whose messages are about limits, the service and the models of the catalog, and never quote the caller. */
const ownWords: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'wrong_endpoint',
  'context_length_exceeded',
  'token_budget_exceeded',
  'missing_api_key',
  'invalid_api_key',
  'spend_limit_exceeded',
  'key_not_allowed',
  'quota_exceeded',
  'role_not_allowed',
  'model_access_denied',
  'request_timeout',
  'request_too_large',
  'headers_too_large',
  'rate_limit_exceeded',
  'queue_full',
  'workspace_queue_full',
  'no_idle_capacity',
  'model_overloaded',
  'model_not_configured',
  'model_unavailable',
  'service_unavailable',
])
const REASON_CHARACTERS_MAX = 500

/**
 * Why a request was refused. A message that may quote the caller is not kept: the general cause of its code is used
 * instead.
 */
export function reasonOf({ code, message }: ApiError): string {
  return (ownWords.has(code) ? message : errorCauses[code]).slice(0, REASON_CHARACTERS_MAX)
}
