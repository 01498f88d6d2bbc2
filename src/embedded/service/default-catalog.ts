import { availableParallelism, totalmem } from 'node:os'
import { admissionLimits } from './machine-limits.ts'
import { manifest } from '../manifest/manifest.ts'

/** The catalog of a service that was told nothing: every model the embedded engine knows, as a catalog file has it. */
export function defaultCatalog(): string {
  const machine = { cores: availableParallelism(), memoryBytes: totalmem() }
  const models = manifest.map((model) => {
    const { pricing_is_example: _marked, ...entry } = model.catalog
    return {
      ...entry,
      description: `${entry.description} (Prices are examples.)`,
      serverless: { engine: { kind: 'embedded' }, limits: admissionLimits(model, machine) },
    }
  })
  return JSON.stringify({ models })
}
