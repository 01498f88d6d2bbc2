import type { Deployment, Model } from '../../catalog/model.ts'
import type { Job } from '../../engines/job.ts'
import { type JsonBody, madeBody } from '../../shared/json/json-body.ts'
import { requireValid } from '../../shared/json/schema-check.ts'
import { jobInForm, prepareChat, type ChatPlan } from '../chat/job.ts'
import type { PreparedRequest, RequestFacts, MissingInput } from '../request/prepared-request.ts'
import type { ResponsesAnswerNeeds } from './answer.ts'
import { responsesForm, responsesNames } from './form.ts'
import { chatFromResponses } from './request.ts'
import { responsesRequestSchema, type ResponsesRequest } from './schema.ts'

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
