const statuses = {
  invalid_json: 400,
  missing_required_parameter: 400,
  invalid_type: 400,
  invalid_value: 400,
  unsupported_parameter: 400,
  unsupported_value: 400,
  unsupported_content: 400,
  wrong_endpoint: 400,
  context_length_exceeded: 400,
  model_not_found: 404,
  unknown_url: 404,
  request_too_large: 413,
  unsupported_media_type: 415,
  internal_error: 500,
  model_overloaded: 503,
  model_not_configured: 503,
} as const

export type HostErrorCode = keyof typeof statuses

/** A refusal, in the form that OpenAI-compatible servers answer with. Anything else that is thrown is `internal_error`. */
export class HostError extends Error {
  readonly code: HostErrorCode
  readonly param: string | null

  constructor(code: HostErrorCode, message: string, { param }: { readonly param?: string } = {}) {
    super(message)
    this.code = code
    this.param = param ?? null
  }

  get status(): number {
    return statuses[this.code]
  }

  body(): object {
    const { message, param, code } = this
    const type = this.status < 500 ? 'invalid_request_error' : 'server_error'
    return { error: { message, type, param, code } }
  }
}

export function parameterError(code: HostErrorCode, param: string, expected: string): HostError {
  return new HostError(code, `Invalid '${param}': it must be ${expected}.`, { param })
}
