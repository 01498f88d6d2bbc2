import type { Deployment, Model } from '../../core/catalog.ts'
import type { Job } from '../../core/job.ts'
import type { JsonBody } from '../../core/json/json-body.ts'
import { madeBody } from '../../core/json/made-body.ts'
import { requireValid } from '../../core/parameter-errors.ts'
import type { WaitingWork } from '../../core/sliced-work.ts'
import { chatInputTokens, chatJob, type ChatParts } from '../chat/job.ts'
import { messagesForm } from './form.ts'
import { toChat } from './request.ts'
import {
  countTokensRequestSchema,
  messagesRequestSchema,
  type CountTokensRequest,
  type MessagesRequest,
} from './schema.ts'

/** POST /messages: makes the request a chat, whose answer is given in the form of /messages. */
export function* messagesJob(body: JsonBody, model: Model, deployment: Deployment, parts: ChatParts): WaitingWork<Job> {
  requireValid(messagesRequestSchema, body.value)
  yield
  const { chat, warnings, ...needs } = yield* toChat(body.value as MessagesRequest, model, deployment)
  const job = yield* chatJob(yield* madeBody(chat), model, deployment, parts, messagesForm(needs))
  return { ...job, warnings }
}

/** POST /messages/count_tokens: the tokens of the same input, as far as they can be told without the engine. */
export function* countTokens(
  body: JsonBody,
  model: Model,
  deployment: Deployment,
  parts: ChatParts,
): WaitingWork<number> {
  requireValid(countTokensRequestSchema, body.value)
  yield
  const { chat } = yield* toChat(body.value as CountTokensRequest, model, deployment)
  return yield* chatInputTokens(yield* madeBody(chat), model, deployment, parts)
}
