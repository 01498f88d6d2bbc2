import type { Deployment, Model } from '../../catalog/model.ts'
import { ApiError } from '../../shared/errors.ts'
import type { EngineRequest } from '../../engines/job.ts'
import type { Dialect, DialectRequest } from '../../engines/dialects/dialect.ts'
import { dialects } from '../../engines/dialects/index.ts'
import { withoutCounts } from '../../engines/dialects/without-counts.ts'
import { supportFor, type EngineOperation, type SupportByName } from '../../engines/dialects/parameter-support.ts'

/** How to call an operation of a deployment's engine. Throws if the engine does not offer it. */
export function operationOf<Name extends keyof Dialect>(
  model: Model,
  deployment: Deployment,
  name: Name,
): NonNullable<Dialect[Name]> {
  const { engine } = deployment
  const dialect = engine && dialects[engine.kind]
  const operation = (dialect && engine.usage === 'estimated' ? withoutCounts(dialect) : dialect)?.[name]
  if (operation) return operation
  const message = `${model.id} has no engine for ${name}. The operator has to choose another one in the catalog.`
  throw new ApiError('model_not_configured', message, { param: 'model' })
}

/** What the deployment's engine does with the parameters of an operation. */
export function supportOf({ engine }: Deployment, operation: EngineOperation): SupportByName {
  return engine ? supportFor(engine.kind, operation) : {}
}

export function jsonRequest(path: string, body: Buffer, inputName: string): EngineRequest & { readonly body: Buffer } {
  return { path, contentType: 'application/json', body, inputName }
}

/** The requests of one operation as bytes, all to the same path. */
export function jsonBodies(requests: readonly DialectRequest[]): { readonly path: string; readonly bodies: Buffer[] } {
  return { path: requests[0]?.path ?? '', bodies: requests.map(({ body }) => Buffer.from(JSON.stringify(body))) }
}

/** The bytes of all bodies together. */
export function bytesIn(bodies: readonly Buffer[]): number {
  return bodies.reduce((sum, { length }) => sum + length, 0)
}

/** undefined when the bytes are not JSON. */
export function tryParseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

export function inBatches(texts: readonly string[], size: number): readonly (readonly string[])[] {
  const batches: (readonly string[])[] = []
  for (let from = 0; from < texts.length; from += size) batches.push(texts.slice(from, from + size))
  return batches
}

/** undefined when either count is unknown. */
export function sumOfCounts(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : one + other
}
