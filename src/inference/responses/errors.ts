import type { ApiError } from '../../shared/errors.ts'
import { renamedError } from '../chat/renamed-error.ts'

/** The names of chat parameters in /responses. */
const ownNames = {
  messages: 'input',
  max_tokens: 'max_output_tokens',
  response_format: 'text.format',
  reasoning_effort: 'reasoning.effort',
}

/** Errors have the same format as for a chat. Only the names differ. */
export function responsesError(error: ApiError): ApiError {
  return renamedError(error, ownNames)
}
