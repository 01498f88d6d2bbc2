import type { ApiDescription } from '../openapi.ts'
import { BASE } from '../key-route.ts'

/** By the names of OpenAI's API. */
function headersForSdks(unit: string, atStart: string): ApiDescription['headers'] {
  const whom = 'Only for a workspace or key with a limit of tokens per minute.'
  return {
    [`x-ratelimit-limit-${unit}`]: {
      description: `${atStart} allowed per minute. ${whom}`,
      schema: { type: 'integer' },
    },
    [`x-ratelimit-remaining-${unit}`]: {
      description: `${atStart} left in the current minute. ${whom}`,
      schema: { type: 'integer' },
    },
    [`x-ratelimit-reset-${unit}`]: {
      description: `The time until the next minute starts, such as 12s. ${whom}`,
      schema: { type: 'string' },
    },
  }
}

/** What the documentation says about the public API as a whole. */
export const publicDescription: ApiDescription = {
  title: 'Weir',
  description: 'One HTTP API in front of a catalog of open-weight models. Prices are in AUD, excluding GST.',
  base: BASE,
  documentPath: `${BASE}/openapi.json`,
  credentials: {
    name: 'key',
    description: 'An API key: Authorization: Bearer <API_KEY>, or x-api-key: <API_KEY>',
    label: 'API key',
    variable: 'WEIR_API_KEY',
  },
  headers: {
    'X-RateLimit-Limit': { description: 'Requests allowed per minute.', schema: { type: 'integer' } },
    'X-RateLimit-Remaining': { description: 'Requests left in the current minute.', schema: { type: 'integer' } },
    'X-RateLimit-Reset': { description: 'When the next minute starts, in Unix seconds.', schema: { type: 'integer' } },
    ...headersForSdks('requests', 'Requests'),
    ...headersForSdks('tokens', 'Tokens'),
    'X-Request-Id': { description: 'Identifies the request in logs and in the ledger.', schema: { type: 'string' } },
  },
  errors: ['missing_api_key', 'invalid_api_key', 'rate_limit_exceeded', 'internal_error', 'service_unavailable'],
  introduction: `<p>Every request carries <code>Authorization: Bearer &lt;API_KEY&gt;</code>. Any SDK for the chat completions format works unchanged: give it the base address and your key. So do SDKs and agents for the Responses and Messages APIs.</p>
<p>Every response carries <code>X-RateLimit-Limit</code>, <code>X-RateLimit-Remaining</code>, <code>X-RateLimit-Reset</code> and <code>X-Request-Id</code>. While a model is busy, requests wait in a queue, first in, first out, with the connection open and silent. Give clients and proxies timeouts well above the model's maximum wait.</p>`,
}
