import { existsSync } from 'node:fs'
import { deploymentsOf, type EngineDescription, type Model } from '../catalog/model.ts'
import { bytesText } from '../shared/bytes-text.ts'
import { ConfigError } from '../shared/checked-yaml.ts'
import { findModel, modelBytes, whyUnknown } from './installed.ts'
import { engineLimits, thisMachine } from './machine-limits.ts'

/** Why an engine cannot run its model on this machine. */
export function engineProblem(engine: EngineDescription | undefined): string | undefined {
  if (engine?.kind !== 'embedded') return undefined
  const model = findModel(engine.model)
  if (!model) return whyUnknown(engine.model)
  if (model.delivery !== 'own') return undefined
  const missing = model.files.find(({ path }) => !existsSync(path))
  if (missing) return `there is no file ${missing.path}`
  return memoryProblem(modelBytes(model))
}

/** Models have to fit what the hosts may use. */
export function memoryProblem(bytes: number): string | undefined {
  const machine = thisMachine()
  const { memoryBudgetBytes } = engineLimits(machine)
  if (bytes <= memoryBudgetBytes) return undefined
  return `the model needs ${bytesText(bytes)} of memory, and models may use ${bytesText(memoryBudgetBytes)}, half of the ${bytesText(machine.memoryBytes)} of this machine`
}

/** A model that cannot run here is refused like any other mistake in the catalog. */
export function requireKnown(models: readonly Model[]): void {
  for (const { lane, engine } of models.flatMap(deploymentsOf)) {
    const problem = engineProblem(engine)
    if (problem !== undefined) throw new ConfigError(`${lane}: ${problem}`)
  }
}

/** The models to download: all embedded models of an operator's catalog, but only the small ones of the default. */
export function modelsToFetch(models: readonly Model[], isDefaultCatalog: boolean): readonly string[] {
  const named = models
    .flatMap(deploymentsOf)
    .flatMap(({ engine }) => (engine?.kind === 'embedded' ? [engine.model] : []))
  return isDefaultCatalog ? named.filter((slug) => findModel(slug)?.delivery === 'default') : named
}
