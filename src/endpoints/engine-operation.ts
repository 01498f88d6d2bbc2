import type { Deployment, Model } from '../core/catalog.ts'
import { ApiError } from '../core/errors.ts'
import type { EngineRequest } from '../core/job.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { dialects } from '../dialects/index.ts'

/** How the engine of a deployment words an operation. A model whose engine has no word for it cannot be called. */
export function operationOf<Name extends keyof Dialect>(
  model: Model,
  deployment: Deployment,
  name: Name,
): NonNullable<Dialect[Name]> {
  const operation = deployment.engine && dialects[deployment.engine.kind][name]
  if (operation) return operation
  throw new ApiError('model_not_configured', `${model.id} has no engine for ${name} yet. Try again later.`, {
    param: 'model',
  })
}

export function jsonRequest(path: string, body: Buffer, inputName: string): EngineRequest {
  return { path, contentType: 'application/json', body, inputName }
}

/** What an engine answered; undefined where it is no JSON. */
export function parsedJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

/** Texts as an engine takes them: so many at a time. */
export function split(texts: readonly string[], size: number): readonly (readonly string[])[] {
  const batches: (readonly string[])[] = []
  for (let from = 0; from < texts.length; from += size) batches.push(texts.slice(from, from + size))
  return batches
}

/** Token counts of several calls; unknown where one of them is. */
export function sum(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : one + other
}
