import type { Deployment, Model } from '../../catalog/model.ts'
import type { Job } from '../../engines/job.ts'
import { madeBody, type JsonBody } from '../../shared/json/json-body.ts'
import { requireValid } from '../../shared/json/schema-check.ts'
import { chatInputTokens, jobInForm, prepareChat, type ChatPlan, type InputTokens } from '../chat/job.ts'
import type { MissingInput, PreparedRequest, RequestFacts } from '../request/prepared-request.ts'
import { wholeMessage, type MessagesAnswerNeeds } from './answer.ts'
import { chatFromMessages } from './request.ts'
import {
  countTokensRequestSchema,
  messagesRequestSchema,
  type CountTokensRequest,
  type MessagesRequest,
} from './schema.ts'
import type { ChatForm } from '../chat/form.ts'
import { messagesEvents } from './stream.ts'

const messagesNames: ChatForm['names'] = { input: 'messages', limit: 'max_tokens' }

/** The format of /messages for a chat. */
function messagesForm(needs: MessagesAnswerNeeds): ChatForm {
  return {
    endpoint: '/messages',
    names: messagesNames,
    whole: (head, result) => wholeMessage(head, result, needs),
    stream: (head, likelyInputTokens) => messagesEvents(head, likelyInputTokens, needs),
  }
}

type MessagesPlan = ChatPlan & { readonly needs: MessagesAnswerNeeds }

/** POST /messages: converts the request to a chat. */
export function prepareMessages(
  body: JsonBody,
  model: Model,
  deployment: Deployment,
  facts: RequestFacts,
): PreparedRequest<MessagesPlan> | MissingInput {
  requireValid(messagesRequestSchema, body.value)
  const { chat, warnings, ...needs } = chatFromMessages(body.value as MessagesRequest, model, deployment)
  const prepared = prepareChat(madeBody(chat), model, deployment, facts, messagesNames)
  if ('missing' in prepared) return prepared
  return { ...prepared, terms: { ...prepared.terms, warnings }, plan: { ...prepared.plan, needs } }
}

/** The answer of the chat is converted to the format of /messages. */
export function messagesJob(prepared: PreparedRequest<MessagesPlan>, model: Model, deployment: Deployment): Job {
  return jobInForm(messagesForm(prepared.plan.needs), prepared, model, deployment)
}

/** POST /messages/count_tokens: the tokens of the same input, as far as they can be counted without the engine. */
export function countTokens(
  body: JsonBody,
  model: Model,
  deployment: Deployment,
  facts: RequestFacts,
): InputTokens | MissingInput {
  requireValid(countTokensRequestSchema, body.value)
  const { chat } = chatFromMessages(body.value as CountTokensRequest, model, deployment)
  return chatInputTokens(madeBody(chat), model, deployment, facts)
}
