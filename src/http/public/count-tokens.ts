import { messagesError } from '../../endpoints/messages/errors.ts'
import { countTokens } from '../../endpoints/messages/job.ts'
import {
  countTokensExample,
  messagesErrorSchema,
  countTokensRequestSchema,
  countTokensResponseSchema,
} from '../../endpoints/messages/schema.ts'
import { readJsonObject } from '../body.ts'
import { jsonResponse } from '../route.ts'
import { inSlices } from '../slices.ts'
import type { InferenceParts } from './json-endpoints.ts'
import { belowV1, keyRoute, type KeyRoute } from './key-route.ts'
import { inferenceErrors, modelName, resolveFor } from './run-job.ts'

/** POST /messages/count_tokens: no engine is called, and nothing is queued or billed. */
export function countTokensRoutes(parts: InferenceParts): readonly KeyRoute[] {
  const path = '/messages/count_tokens'
  const route = keyRoute({
    method: 'POST',
    path,
    id: 'countTokens',
    summary: 'Count the tokens of messages',
    description:
      'The input tokens that a request to /messages with the same fields would have. It is an estimate, made without the engine; the usage of an answer has the exact count. Nothing is billed. Also at /v1/messages/count_tokens.',
    request: { contentType: 'application/json', schema: countTokensRequestSchema, example: countTokensExample.request },
    response: jsonResponse(countTokensResponseSchema, countTokensExample.answer),
    errors: inferenceErrors,
    errorShape: { schema: messagesErrorSchema, body: messagesError },
    answer: async ({ exchange, caller }) => {
      const body = await readJsonObject(exchange, parts.limits.maxBodyBytes)
      const endpoint = { path, formOf: '/chat/completions' }
      const { model, deployment } = resolveFor(parts, exchange, endpoint, modelName(body.value), caller)
      const tokens = await inSlices(exchange, countTokens(body, model, deployment, parts))
      exchange.sendJson(JSON.stringify({ input_tokens: tokens }))
    },
  })
  return [route, belowV1(route)]
}
