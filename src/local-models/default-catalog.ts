import { manifest } from './installed.ts'
import { admissionLimits, thisMachine } from './machine-limits.ts'
import { keptEntries } from './own-models.ts'

/**
 * The catalog of a service without a configuration: every model the embedded engine knows, and those that the operator
 * has added, as the text of a catalog file.
 */
export function defaultCatalog(modelsDirectory: string): string {
  const machine = thisMachine()
  const models = manifest.map((model) => ({
    ...model.catalog,
    description: `${model.catalog.description} (Prices are examples.)`,
    serverless: { engine: { kind: 'embedded' }, limits: admissionLimits(model, machine) },
  }))
  return JSON.stringify({ models: [...models, ...keptEntries(modelsDirectory)] })
}
