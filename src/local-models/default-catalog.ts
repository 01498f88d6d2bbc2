import { manifest } from './installed.ts'
import { admissionLimits, thisMachine } from './machine-limits.ts'

/** The catalog of a service without a configuration: every model the embedded engine knows, as the text of a catalog file. */
export function defaultCatalog(): string {
  const machine = thisMachine()
  const models = manifest.map((model) => ({
    ...model.catalog,
    description: `${model.catalog.description} (Prices are examples.)`,
    serverless: { engine: { kind: 'embedded' }, limits: admissionLimits(model, machine) },
  }))
  return JSON.stringify({ models })
}
