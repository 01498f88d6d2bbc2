import { ApiError } from '../core/errors.ts'

const MAX_MESSAGE = 500
const CONTEXT_LENGTH = /context (length|size|window)|maximum.{0,20}(tokens|length)/i

/**
 * Turns an engine's error status into an error for the caller. A mistake of the caller keeps the engine's
 * message. An engine that refuses Weir itself (401, 403, 404) is the operator's problem, so its message stays
 * inside.
 */
export function refusalFrom(status: number, body: string, inputName?: string): ApiError {
  const { message, param } = readRefusal(body)
  const details = param === undefined ? {} : { param }
  switch (status) {
    case 400:
    case 422:
      return CONTEXT_LENGTH.test(message)
        ? new ApiError(
            'context_length_exceeded',
            `The request exceeds the model's maximum context length: ${message}`,
            inputName === undefined ? {} : { param: inputName },
          )
        : new ApiError('invalid_value', message || 'The engine refused the request as invalid.', details)
    case 413:
      return new ApiError('request_too_large', message || 'The request is too large for the engine.')
    case 429:
      return new ApiError('model_overloaded', 'The engine is overloaded. Try again in a few seconds.', {
        param: 'model',
      })
    case 408:
    case 504:
      return new ApiError('upstream_timeout', 'The engine did not answer in time.')
    default:
      return new ApiError('upstream_error', `The engine failed with status ${status}.`)
  }
}

/** Whether another address might succeed. A timeout is no reason to try: the request would take as long there. */
export function worthAnotherAddress(status: number): boolean {
  return status === 401 || status === 403 || status === 404 || status === 429 || (status >= 500 && status !== 504)
}

/** vLLM and OpenAI nest the message in `error`, FastAPI uses `detail`, and others `message` or plain text. */
function readRefusal(body: string): { message: string; param?: string } {
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    return { message: '' }
  }
  const outer = asRecord(parsed)
  const inner = typeof outer['error'] === 'object' ? asRecord(outer['error']) : outer
  const text = [inner['message'], outer['error'], outer['detail']].find((it) => typeof it === 'string')
  const param = typeof inner['param'] === 'string' ? inner['param'] : undefined
  return { message: (text ?? '').slice(0, MAX_MESSAGE), ...(param === undefined ? {} : { param }) }
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
