/** Why a caller gets each error code, and what to do about it. docs/reference/errors.md is made from it. */
export const errorHelp = {
  invalid_json: [
    'The body is not JSON, is nested too deeply or has too many parts.',
    'Send valid JSON with `Content-Type: application/json`.',
  ],
  missing_required_parameter: ['A field that the endpoint needs is missing; `param` names it.', 'Add the field.'],
  invalid_type: ['A field has the wrong type; `param` names it.', 'Send the type that the API reference gives.'],
  invalid_value: [
    'A field has a value that is not allowed; `param` names it, the message says what is.',
    'Change the value.',
  ],
  unsupported_parameter: [
    'The model, or the engine behind it, does not take this parameter.',
    'Leave it out, or choose a model whose `supported_parameters` list it.',
  ],
  unsupported_value: ['The model takes the parameter, but not this value.', 'Change the value.'],
  unsupported_content: [
    'A part of the input cannot be read: an image or a recording in an unknown format.',
    'Send a format that the message names.',
  ],
  wrong_endpoint: ['The model does not serve this endpoint.', 'Use the endpoint that `GET /models` lists for it.'],
  context_length_exceeded: [
    "The input and `max_tokens` do not fit into the model's context.",
    'Shorten the input or lower `max_tokens`.',
  ],
  token_budget_exceeded: [
    'The request alone is larger than the whole token budget of the model.',
    'Lower `max_tokens` or split the request. Operators: raise `limits.token_budget`.',
  ],
  missing_api_key: ['There is no `Authorization: Bearer` header.', 'Send your key.'],
  invalid_api_key: ['The key is unknown, revoked or expired.', 'Use another key. Operators: `weir keys create`.'],
  spend_limit_exceeded: [
    'The hard spend limit of the workspace would be passed.',
    'Wait for the next month, or ask the operator to raise the limit.',
  ],
  model_access_denied: [
    'The model runs only on capacity that is reserved for other workspaces.',
    'Choose another model, or ask the operator for access.',
  ],
  model_not_found: [
    'There is no such model, or your workspace cannot see it.',
    'Take an id or alias from `GET /models`.',
  ],
  not_found: ['The thing that the path names does not exist.', 'Check the id.'],
  unknown_url: ['There is no such path.', 'Check the path: the API is below `/api/v1`.'],
  method_not_allowed: ['The path exists, but not with this method.', 'Use a method from the `Allow` header.'],
  request_timeout: ['The body did not arrive in time.', 'Send it again over a better connection.'],
  conflict: [
    'The request contradicts what is there, such as a name that is taken.',
    'Read the message; look at the current state first.',
  ],
  request_too_large: [
    'The body is larger than the limit.',
    'Send less. Operators: `server.max_body_bytes`, `audio.max_upload_bytes`.',
  ],
  unsupported_media_type: [
    'The `Content-Type` is not the one that the endpoint reads.',
    'Send `application/json`, or `multipart/form-data` for recordings.',
  ],
  rate_limit_exceeded: [
    'The workspace sent more requests in a minute than it may.',
    'Wait for `Retry-After`. Operators: `weir workspaces set --requests-per-minute`.',
  ],
  queue_full: [
    'Too many requests wait for the model already.',
    'Wait for `Retry-After`. Operators: more engines, or `limits.max_queue_depth`.',
  ],
  internal_error: [
    'A mistake in Weir.',
    'Try again; report it with the `X-Request-Id`. Operators: the log has the reason.',
  ],
  upstream_error: [
    'The engine failed, refused the request without a reason we know, or broke off its answer.',
    'Try again. Operators: look at the log of Weir and of the engine.',
  ],
  model_overloaded: [
    'The request waited as long as it may and was not admitted.',
    'Wait for `Retry-After`. Operators: more engines, or `limits.max_wait_ms`.',
  ],
  model_not_configured: [
    'The model has no engine, is not downloaded, or is being downloaded; the message says which.',
    'While it is being downloaded, wait for `Retry-After`. Otherwise choose another model. Operators: `weir models pull SLUG`, `weir models list`, `weir doctor`.',
  ],
  model_unavailable: [
    'Every engine of the model is down.',
    'Wait for `Retry-After`. Operators: `weir_engine_up`, and the log line "engine is down".',
  ],
  service_unavailable: [
    'The service is shutting down, is out of memory for requests or of disk space for uploads, or cannot record usage.',
    'Wait for `Retry-After`. Operators: `/readyz`, the disk, `weir doctor`.',
  ],
  upstream_timeout: [
    'The engine did not answer in time, or fell silent.',
    'Try again. Operators: `engine.first_byte_timeout_ms`, `engine.idle_timeout_ms`.',
  ],
}
