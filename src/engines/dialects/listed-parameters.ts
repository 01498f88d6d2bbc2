import { deploymentsOf, type Category, type EngineKind, type Model } from '../../catalog/model.ts'
import { supportFor, type EngineOperation, type ParameterSupport } from './parameter-support.ts'

/** Parameters that the catalog lists for a model, but that the engine of a deployment does not support. */
export interface UntakenParameters {
  readonly model: string
  readonly lane: string
  readonly kind: EngineKind
  readonly parameters: readonly string[]
}

const operationsByCategory: Readonly<Record<Category, readonly EngineOperation[]>> = {
  llm: ['chat', 'completions'],
  vision: ['chat'],
  embedding: ['embeddings'],
  reranker: ['ranking'],
  image: ['images'],
  audio: ['speech'],
}

/**
 * Callers see the list and would be refused. Excludes parameters that at least one of the model's operations supports.
 */
export function untakenParameters(models: readonly Model[]): readonly UntakenParameters[] {
  return models.flatMap((model) =>
    deploymentsOf(model).flatMap(({ lane, engine }) => {
      if (!engine) return []
      const parameters = model.supportedParameters.filter((name) => isUntaken(name, model, engine.kind))
      return parameters.length === 0 ? [] : [{ model: model.id, lane, kind: engine.kind, parameters }]
    }),
  )
}

/** For the operator, who can correct the catalog. */
export function untakenWarning({ lane, kind, parameters }: UntakenParameters): string {
  const [what, whose] = parameters.length === 1 ? ['is', 'it'] : ['are', 'them']
  return `${lane}: ${parameters.join(', ')} in supported_parameters ${what} refused, because an engine of kind ${kind} does not take ${whose}`
}

function isUntaken(name: string, { categories }: Model, kind: EngineKind): boolean {
  const operations = categories.flatMap((category) => operationsByCategory[category])
  const supports = operations.flatMap((operation): ParameterSupport[] => {
    const support = supportFor(kind, operation)[name]
    return support === undefined ? [] : [support]
  })
  return supports.length > 0 && supports.every((support) => support === 'refused')
}
