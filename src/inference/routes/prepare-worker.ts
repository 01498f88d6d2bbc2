import { parentPort } from 'node:worker_threads'
import type { Deployment, Model } from '../../catalog/model.ts'
import { ApiError, type ContextTokens, type ErrorCode } from '../../shared/errors.ts'
import { parseJsonObject, scanJson, type JsonBody } from '../../shared/json/json-body.ts'
import { countTokens } from '../messages/job.ts'
import { modelName } from '../request/parameters.ts'
import type { RequestFacts } from '../request/prepared-request.ts'
import { COUNT_TOKENS, jsonEndpoints, type JsonEndpoint } from './json-endpoints.ts'
import { movable, movedBuffer } from './moved-bytes.ts'

/** The thread that parses large bodies and prepares their requests, one at a time: see prepare-in-thread.ts. */

/** First a body is parsed; once its model is found, the request is prepared. */
export interface ThreadRequests {
  read: { readonly id: string; readonly bytes: Uint8Array; readonly facts: RequestFacts }
  prepare: { readonly model: Model; readonly deployment: Deployment }
}

export interface ThreadAnswers {
  read: { readonly model: string; readonly isStream: boolean }
  /** Includes the body if the preparation needs something before it can continue. */
  prepare: { readonly result: object; readonly bytes: Uint8Array | undefined }
}

export type ThreadReply<Kind extends keyof ThreadAnswers> =
  | { readonly answer: ThreadAnswers[Kind] }
  | { readonly refusal: Refusal }
  | { readonly failure: unknown }

/** An ApiError in parts, since only plain data can be sent between threads. */
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

function read({ id, bytes, facts }: ThreadRequests['read']): ThreadAnswers['read'] {
  // The body of a caller that disconnected may still be here.
  current = undefined
  const buffer = movedBuffer(bytes)
  const body = parseJsonObject(buffer, scanJson(buffer))
  current = { id, body, facts }
  return { model: modelName(body.value), isStream: body.value['stream'] === true }
}

function prepare({ model, deployment }: ThreadRequests['prepare']): ThreadAnswers['prepare'] {
  if (!current) throw new Error('there is no body to prepare')
  const { id, body, facts } = current
  current = undefined
  const result = preparations.get(id)!(body, model, deployment, facts)
  if ('missing' in result) return { result, bytes: movable(body.bytes) }
  return { result: 'bodies' in result ? { ...result, bodies: result.bodies.map(movable) } : result, bytes: undefined }
}

parentPort?.on('message', (question: ThreadRequests['read'] | ThreadRequests['prepare']) => {
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
