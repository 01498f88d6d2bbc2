import { messagesError } from '../messages/errors.ts'
import { countTokens } from '../messages/job.ts'
import {
  countTokensExample,
  messagesErrorSchema,
  countTokensRequestSchema,
  countTokensResponseSchema,
} from '../messages/schema.ts'
import { readJson } from '../../server/body.ts'
import { jsonResponse } from '../../server/route.ts'
import { COUNT_TOKENS as id, type InferenceParts } from './json-endpoints.ts'
import { belowV1, keyRoute, type KeyRoute } from '../../server/key-route.ts'
import type { FindModel } from './prepare-in-thread.ts'
import { prepareRequest } from './inference.ts'
import { inferenceErrors, resolveFor } from './run-job.ts'

/** POST /messages/count_tokens: no engine is called, and nothing is queued or billed. */
export function countTokensRoutes(parts: InferenceParts): readonly KeyRoute[] {
  const path = '/messages/count_tokens'
  const route = keyRoute({
    method: 'POST',
    path,
    endpoint: '/messages',
    id,
    summary: 'Count the tokens of messages',
    description:
      'The input tokens that a request to /messages with the same fields would have. It is an estimate, made without the engine; the usage of an answer has the exact count. Nothing is billed. Also at /v1/messages/count_tokens.',
    request: { contentType: 'application/json', schema: countTokensRequestSchema, example: countTokensExample },
    response: jsonResponse(countTokensResponseSchema),
    errors: inferenceErrors,
    errorShape: { schema: messagesErrorSchema, body: messagesError },
    answer: async ({ exchange, caller }) => {
      const bytes = await readJson(exchange, parts.limits.maxBodyBytes)
      const find: FindModel = (name) => resolveFor(parts, exchange, { path, formOf: '/chat/completions' }, name, caller)
      const { result } = await prepareRequest(parts, { id, prepare: countTokens }, exchange, bytes, find)
      exchange.sendJson(JSON.stringify({ input_tokens: result.tokens }))
    },
  })
  return [route, belowV1(route)]
}
