import { parentPort } from 'node:worker_threads'
import type { Deployment, Model } from '../../core/catalog.ts'
import { ApiError, type ContextTokens, type ErrorCode } from '../../core/errors.ts'
import { parseJsonObject, scanJson, type JsonBody } from '../../core/json/json-body.ts'
import { countTokens } from '../../endpoints/messages/job.ts'
import { modelName } from '../../endpoints/model-name.ts'
import type { RequestFacts } from '../../endpoints/prepared-request.ts'
import { COUNT_TOKENS, jsonEndpoints, type JsonEndpoint } from './json-endpoints.ts'
import { movable, movedBuffer } from './moved-bytes.ts'

/** The thread that reads large bodies and prepares their requests: prepare-in-thread.ts. It does one after the other. */

/** First a body is read; when its model is found, the request is prepared. */
export interface ThreadQuestions {
  read: { readonly id: string; readonly bytes: Uint8Array; readonly facts: RequestFacts }
  prepare: { readonly model: Model; readonly deployment: Deployment }
}

export interface ThreadAnswers {
  read: { readonly model: string; readonly isStream: boolean }
  /** With the body, if the preparation wants something before it can go on. */
  prepare: { readonly result: object; readonly bytes: Uint8Array | undefined }
}

export type ThreadReply<Kind extends keyof ThreadAnswers> =
  | { readonly answer: ThreadAnswers[Kind] }
  | { readonly refusal: Refusal }
  | { readonly failure: unknown }

/** An ApiError in parts, since only plain data goes from one thread to another. */
interface Refusal {
  readonly code: ErrorCode
  readonly message: string
  readonly details: { readonly param?: string; readonly tokens?: ContextTokens }
}

const preparations = new Map<string, JsonEndpoint['prepare'] | typeof countTokens>([
  ...jsonEndpoints.map(({ id, prepare }) => [id, prepare] as const),
  [COUNT_TOKENS, countTokens],
])

let current: { readonly id: string; readonly body: JsonBody; readonly facts: RequestFacts } | undefined

function read({ id, bytes, facts }: ThreadQuestions['read']): ThreadAnswers['read'] {
  // The body of a caller that left may still be here.
  current = undefined
  const buffer = movedBuffer(bytes)
  const body = parseJsonObject(buffer, scanJson(buffer))
  current = { id, body, facts }
  return { model: modelName(body.value), isStream: body.value['stream'] === true }
}

function prepare({ model, deployment }: ThreadQuestions['prepare']): ThreadAnswers['prepare'] {
  if (!current) throw new Error('there is no body to prepare')
  const { id, body, facts } = current
  current = undefined
  const result = preparations.get(id)!(body, model, deployment, facts)
  if ('wanted' in result) return { result, bytes: movable(body.bytes) }
  return { result: 'bodies' in result ? { ...result, bodies: result.bodies.map(movable) } : result, bytes: undefined }
}

parentPort?.on('message', (question: ThreadQuestions['read'] | ThreadQuestions['prepare']) => {
  try {
    const answer = 'bytes' in question ? read(question) : prepare(question)
    parentPort?.postMessage({ answer }, 'result' in answer ? buffersOf(answer) : [])
  } catch (error) {
    parentPort?.postMessage(error instanceof ApiError ? { refusal: refusalOf(error) } : { failure: error })
  }
})

function buffersOf({ result, bytes }: ThreadAnswers['prepare']): ArrayBuffer[] {
  const bodies = 'bodies' in result ? (result.bodies as readonly Uint8Array<ArrayBuffer>[]) : []
  return [...bodies, ...(bytes ? [bytes as Uint8Array<ArrayBuffer>] : [])].map(({ buffer }) => buffer)
}

function refusalOf({ code, message, param, tokens }: ApiError): Refusal {
  return { code, message, details: { ...(param === null ? {} : { param }), ...(tokens ? { tokens } : {}) } }
}
