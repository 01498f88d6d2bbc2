import { ApiError } from '../../../core/errors.ts'

/** The service recognizes the error by its words "maximum context length". */
export function contextLengthExceeded(limit: number, requested: number): ApiError {
  return new ApiError(
    'context_length_exceeded',
    `This model's maximum context length is ${limit} tokens, but the request needs ${requested}.`,
  )
}
