import { HostError } from './host-error.ts'

/** The service recognizes the error by its words "maximum context length". */
export function contextLengthExceeded(limit: number, requested: number): HostError {
  return new HostError(
    'context_length_exceeded',
    `This model's maximum context length is ${limit} tokens, but the request needs ${requested}.`,
  )
}
