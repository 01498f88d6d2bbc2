import type { ApiError } from '../../core/errors.ts'
import { renamedError } from '../chat/renamed-error.ts'

/** What /responses calls the parameters of a chat. */
const ownNames = {
  messages: 'input',
  max_tokens: 'max_output_tokens',
  response_format: 'text.format',
  reasoning_effort: 'reasoning.effort',
}

/** The shape of errors is that of a chat. Only the names differ. */
export function responsesError(error: ApiError): ApiError {
  return renamedError(error, ownNames)
}
