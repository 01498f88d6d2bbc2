import type { IncomingMessage, ServerResponse } from 'node:http'
import { HostError } from '../runtime/host-error.ts'
import type { EngineModel } from '../runtime/engine-model.ts'

/** One HTTP request to the host. `signal` aborts when the caller closes the connection. */
export interface HostCall {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly signal: AbortSignal
  readonly models: ModelPool
}

export interface ModelPool {
  /** Loads the model if necessary and keeps it loaded until `work` has ended. */
  use<T>(slug: string, work: (model: EngineModel) => Promise<T>): Promise<T>
}

type Ability = Exclude<keyof EngineModel, 'memoryBytes' | 'close'>

export function abilityOf<A extends Ability>(model: EngineModel, name: A, slug: string): NonNullable<EngineModel[A]> {
  const method = model[name]
  if (!method) {
    throw new HostError('wrong_endpoint', `The model '${slug}' does not serve this endpoint.`, { param: 'model' })
  }
  return method.bind(model) as NonNullable<EngineModel[A]>
}

export function unixSeconds(): number {
  return Math.floor(Date.now() / 1000)
}
