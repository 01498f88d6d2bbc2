import type { ApiError } from '../shared/errors.ts'
import type { FailureKind } from './batch-store.ts'

/** Lines of output and error files, as OpenAI writes them. */

const idOf = (batchId: string, line: number): string => `batch_req_${batchId.slice('batch_'.length)}_${line}`

interface LineOf {
  readonly batchId: string
  readonly line: number
  readonly customId: string
}

/** `body` is JSON, and is not parsed for this. */
export function answeredLine(
  { batchId, line, customId }: LineOf,
  { status, requestId, body }: { readonly status: number; readonly requestId: string; readonly body: string },
): string {
  const [id, custom, request] = [idOf(batchId, line), customId, requestId].map((it) => JSON.stringify(it))
  return `{"id":${id},"custom_id":${custom},"response":{"status_code":${status},"request_id":${request},"body":${withoutLineEnds(body)}},"error":null}`
}

/** A line that was not run. */
export function unansweredLine(
  { batchId, line, customId }: LineOf,
  error: Pick<ApiError, 'message'> & { readonly code: string },
): string {
  const { code, message } = error
  return JSON.stringify({
    id: idOf(batchId, line),
    custom_id: customId,
    response: null,
    error: { code, message },
  })
}

/** Lines that failed for the same reason, with the first of them as the error file has it. */
export function failureKind(
  { code, line, body }: { readonly code: string; readonly line: number; readonly body: string },
  count: number,
): FailureKind {
  const { custom_id: customId, response, error } = JSON.parse(body) as FailedLine
  return { code, count, line, customId, message: (response?.body.error ?? error)?.message ?? '' }
}

interface FailedLine {
  readonly custom_id: string
  readonly response: { readonly body: { readonly error?: { readonly message?: string } } } | null
  readonly error: { readonly message: string } | null
}

/** Line ends in JSON are only between its values. */
function withoutLineEnds(json: string): string {
  return json.replaceAll('\n', ' ').replaceAll('\r', ' ')
}
