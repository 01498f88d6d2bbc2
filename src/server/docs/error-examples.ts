import { ApiError, errorCodes, type ErrorCode } from '../../shared/errors.ts'

/** A typical message for each code, and the parameter it is about. */
const messages: Readonly<Record<ErrorCode, readonly [message: string, param?: string]>> = {
  invalid_json: ['The body is not valid JSON.'],
  missing_required_parameter: ["Missing required parameter: 'model'.", 'model'],
  invalid_type: ["'max_tokens' must be an integer of at least 1.", 'max_tokens'],
  invalid_value: ["'temperature' must be a number from 0 to 2.", 'temperature'],
  unsupported_parameter: ["This model does not support 'top_k'.", 'top_k'],
  unsupported_value: ["This model does not support this value of 'n'.", 'n'],
  unsupported_content: ['This model does not take images.', 'messages'],
  wrong_endpoint: ['This model is called at /embeddings.', 'model'],
  context_length_exceeded: ['The input is longer than the context of the model.', 'messages'],
  token_budget_exceeded: ['The request is larger than the queue of the model can ever admit.', 'messages'],
  missing_api_key: ['Send your API key in the header Authorization: Bearer <API_KEY>.'],
  invalid_api_key: ['The API key is not valid.'],
  spend_limit_exceeded: ['The spend limit of this month has been reached.'],
  key_not_allowed: ['This key may not be used on /embeddings.'],
  quota_exceeded: ['This workspace has 1000 files, the most that it may store. Delete some of them.'],
  role_not_allowed: ['This needs the role operator. You have the role viewer.'],
  model_access_denied: ['This model is reserved for another workspace.', 'model'],
  model_not_found: ["The model 'provider/model' does not exist.", 'model'],
  not_found: ['There is no such thing.'],
  unknown_url: ['There is nothing at GET /nothing. See /docs.'],
  method_not_allowed: ['GET is not allowed here. Use POST.'],
  request_timeout: ['The request took too long to arrive.'],
  conflict: ['It exists already.'],
  request_too_large: ['The body is larger than the limit.'],
  unsupported_media_type: ['Send the body as application/json.'],
  headers_too_large: ['The request headers are too large: at most 16 KiB are allowed.'],
  rate_limit_exceeded: ['Too many requests in this minute: the workspace may send 600. Try again in 12 s.'],
  queue_full: ['The queue of this model is full. Try again later.'],
  workspace_queue_full: ['Your workspace already has 8 requests waiting or running at this model. Try again later.'],
  no_idle_capacity: [
    'The model had no idle capacity for 600000 ms. Try again later, or without service_tier.',
    'service_tier',
  ],
  internal_error: ['Something went wrong. Try again.'],
  upstream_error: ['The engine failed. Try again.'],
  model_overloaded: ['The request waited too long in the queue. Try again later.'],
  model_not_configured: ['This model has no engine yet.', 'model'],
  model_unavailable: ['The engine of this model is down. Try again later.', 'model'],
  service_unavailable: ['The service is not ready.'],
  upstream_timeout: ['The engine took too long. Try again later.'],
}

/** Made once: an error is slow to make, because it records its stack, and the documents show hundreds. */
export const errorExamples = Object.fromEntries(
  errorCodes.map((code) => {
    const [message, param] = messages[code]
    return [code, new ApiError(code, message, param === undefined ? {} : { param })]
  }),
) as Readonly<Record<ErrorCode, ApiError>>
