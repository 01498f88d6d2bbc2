import { type ApiError, type ErrorCode } from '../../shared/errors.ts'
import { renamedError } from '../chat/renamed-error.ts'

/** The names of chat parameters in /messages. */
const ownNames = {
  stop: 'stop_sequences',
  response_format: 'output_config.format',
  reasoning_effort: 'output_config.effort',
  parallel_tool_calls: 'tool_choice.disable_parallel_tool_use',
}

const typesByStatus: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
}

interface MessagesErrorBody {
  readonly type: 'error'
  readonly error: {
    readonly type: string
    readonly message: string
    readonly code: ErrorCode
    readonly param: string | null
  }
  readonly request_id: string
}

/** An error in the format of /messages, with our code and parameter added. */
export function messagesError(given: ApiError, requestId: string): MessagesErrorBody {
  const error = renamedError(given, ownNames)
  const { status, code, param } = error
  const type = typesByStatus[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
  return { type: 'error', error: { type, message: messageOf(error), code, param }, request_id: requestId }
}

/** Clients look for this wording, and for the numbers in it, to shorten the conversation or the answer on their own. */
function messageOf({ code, message, tokens }: ApiError): string {
  if (code !== 'context_length_exceeded') return message
  if (!tokens) return `prompt is too long: ${message}`
  const { input, output, limit } = tokens
  return input >= limit
    ? `prompt is too long: ${input} tokens > ${limit} maximum`
    : `input length and \`max_tokens\` exceed context limit: ${input} + ${output} > ${limit}, decrease input length or \`max_tokens\` and try again`
}
