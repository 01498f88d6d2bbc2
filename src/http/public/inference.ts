import { endpointsOf, type Deployment, type Model } from '../../core/catalog.ts'
import { ApiError } from '../../core/errors.ts'
import type { Job } from '../../core/job.ts'
import type { Caller } from '../../ports/accounts.ts'
import type { FileStore } from '../../ports/files.ts'
import type { JsonBody } from '../../core/json/json-body.ts'
import { readJsonObject } from '../body.ts'
import { chatJob } from '../../endpoints/chat/job.ts'
import type { ImageParts } from '../../endpoints/chat/messages.ts'
import { completionsJob } from '../../endpoints/completions/job.ts'
import { embeddingsJob } from '../../endpoints/embeddings/job.ts'
import type { Exchange } from '../exchange.ts'
import { imagesJob } from '../../endpoints/images/job.ts'
import { invalidParameter } from '../../core/parameter-errors.ts'
import type { PublicParts } from './public-api.ts'
import { rerankingJob, rerankJob } from '../../endpoints/rerank/job.ts'

/** What the endpoints with a JSON body share: body → model → endpoint fits → job → pipeline. */

export type MakeJob = (
  body: JsonBody,
  model: Model,
  deployment: Deployment,
  parts: ImageParts & { readonly files: FileStore | undefined },
) => Job | Promise<Job>

export const jobMakers: Readonly<Record<string, MakeJob>> = {
  '/chat/completions': chatJob,
  '/completions': completionsJob,
  '/embeddings': embeddingsJob,
  '/rerank': rerankJob,
  '/reranking': rerankingJob,
  '/images/generations': imagesJob,
}

export function inference(parts: PublicParts, path: string, makeJob: MakeJob) {
  return async (exchange: Exchange, caller: Caller): Promise<void> => {
    await runJob(parts, exchange, caller, await readJob(parts, path, makeJob, exchange, caller))
  }
}

/** Apart, because an async function that waits keeps all it has named, and a job may wait for minutes. */
async function readJob(
  parts: PublicParts,
  path: string,
  makeJob: MakeJob,
  exchange: Exchange,
  caller: Caller,
): Promise<Job> {
  const body = await readJsonObject(exchange, parts.limits.maxBodyBytes)
  const { model, deployment } = resolveFor(parts, path, modelName(body.value), caller)
  return makeJob(body, model, deployment, parts)
}

/** The model a caller named, if it may be called on this path. */
export function resolveFor(
  parts: PublicParts,
  path: string,
  name: string,
  caller: Caller,
): { model: Model; deployment: Deployment } {
  const found = parts.catalog.resolve(name, caller.workspace.name)
  requireEndpoint(found.model, path)
  return found
}

export async function runJob(parts: PublicParts, exchange: Exchange, caller: Caller, job: Job): Promise<void> {
  const { model, deployment } = job
  const { notes } = exchange
  notes['model'] = model.id
  notes['lane'] = deployment.lane
  const row = await parts.pipeline(job, caller, exchange)
  notes['outcome'] = row.outcome
  notes['queue_wait_ms'] = row.queueWaitMs
  notes['first_token_ms'] = row.firstTokenMs
  notes['duration_ms'] = row.durationMs
  notes['input_tokens'] = row.inputTokens
  notes['output_tokens'] = row.outputTokens
}

function modelName(body: Readonly<Record<string, unknown>>): string {
  const { model } = body
  if (model === undefined || model === null) {
    throw new ApiError('missing_required_parameter', "Missing required parameter: 'model', the slug of a model.", {
      param: 'model',
    })
  }
  if (typeof model !== 'string') throw invalidParameter('invalid_type', 'model', 'a string, the slug of a model')
  return model
}

function requireEndpoint(model: Model, path: string): void {
  const right = endpointsOf(model)
  // The older form of text completion has no category of its own.
  if (right.includes(path) || (path === '/completions' && model.categories.includes('llm'))) return
  const addresses = right.map((it) => `/api/v1${it}`).join(' or ')
  throw new ApiError('wrong_endpoint', `${model.id} is not called on ${path}; use ${addresses}.`, { param: 'model' })
}
