import type { Deployment, Model } from '../../catalog/model.ts'
import type { Job } from '../../engines/job.ts'
import { madeBody, type JsonBody } from '../../shared/json/json-body.ts'
import { requireValid } from '../../shared/json/schema-check.ts'
import { jobInForm, prepareChat, type ChatPlan } from '../chat/job.ts'
import type { MissingInput, PreparedRequest, RequestFacts } from '../request/prepared-request.ts'
import { wholeResponse, type ResponsesAnswerNeeds } from './answer.ts'
import { chatFromResponses } from './request.ts'
import { responsesRequestSchema, type ResponsesRequest } from './schema.ts'
import type { ChatForm } from '../chat/form.ts'
import { responsesEvents } from './stream.ts'

const responsesNames: ChatForm['names'] = { input: 'input', limit: 'max_output_tokens' }

/** The format of /responses for a chat. */
function responsesForm(needs: ResponsesAnswerNeeds): ChatForm {
  return {
    endpoint: '/responses',
    names: responsesNames,
    whole: (head, result) => wholeResponse(head, result, needs),
    stream: (head) => responsesEvents(head, needs),
  }
}

type ResponsesPlan = ChatPlan & { readonly needs: ResponsesAnswerNeeds }

/** POST /responses: converts the request to a chat. */
export function prepareResponses(
  body: JsonBody,
  model: Model,
  deployment: Deployment,
  facts: RequestFacts,
): PreparedRequest<ResponsesPlan> | MissingInput {
  requireValid(responsesRequestSchema, body.value)
  const { chat, warnings, ...needs } = chatFromResponses(body.value as ResponsesRequest, model, deployment)
  const prepared = prepareChat(madeBody(chat), model, deployment, facts, responsesNames)
  if ('missing' in prepared) return prepared
  return { ...prepared, terms: { ...prepared.terms, warnings }, plan: { ...prepared.plan, needs } }
}

/** The answer of the chat is converted to the format of /responses. */
export function responsesJob(prepared: PreparedRequest<ResponsesPlan>, model: Model, deployment: Deployment): Job {
  return jobInForm(responsesForm(prepared.plan.needs), prepared, model, deployment)
}
