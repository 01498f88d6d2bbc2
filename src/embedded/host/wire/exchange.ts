import type { IncomingMessage, ServerResponse } from 'node:http'
import { EngineError } from '../runtime/engine-model.ts'
import type { EngineModel } from '../runtime/engine-model.ts'

/** One request on its way through the host. `signal` fires when the caller's socket closes. */
export interface Exchange {
  request: IncomingMessage
  response: ServerResponse
  signal: AbortSignal
  models: ModelPool
}

export interface ModelPool {
  /** Loads the model when needed and keeps it loaded until `work` has ended. */
  use<T>(slug: string, work: (model: EngineModel) => Promise<T>): Promise<T>
}

type Ability = Exclude<keyof EngineModel, 'memoryBytes' | 'close'>

export function ability<A extends Ability>(model: EngineModel, name: A, slug: string): NonNullable<EngineModel[A]> {
  const method = model[name]
  if (!method)
    throw new EngineError(400, 'wrong_endpoint', `The model '${slug}' does not serve this endpoint.`, 'model')
  return method.bind(model) as NonNullable<EngineModel[A]>
}

export function unixSeconds(): number {
  return Math.floor(Date.now() / 1000)
}
