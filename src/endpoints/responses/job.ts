import type { Deployment, Model } from '../../core/catalog.ts'
import type { Job } from '../../core/job.ts'
import type { JsonBody } from '../../core/json/json-body.ts'
import { madeBody } from '../../core/json/made-body.ts'
import { requireValid } from '../../core/parameter-errors.ts'
import type { WaitingWork } from '../../core/sliced-work.ts'
import { chatJob, type ChatParts } from '../chat/job.ts'
import { responsesForm } from './form.ts'
import { toChat } from './request.ts'
import { responsesRequestSchema, type ResponsesRequest } from './schema.ts'

/** POST /responses: makes the request a chat, whose answer is given in the form of /responses. */
export function* responsesJob(
  body: JsonBody,
  model: Model,
  deployment: Deployment,
  parts: ChatParts,
): WaitingWork<Job> {
  requireValid(responsesRequestSchema, body.value)
  yield
  const { chat, warnings, ...needs } = yield* toChat(body.value as ResponsesRequest, model, deployment)
  const job = yield* chatJob(yield* madeBody(chat), model, deployment, parts, responsesForm(needs))
  return { ...job, warnings }
}
