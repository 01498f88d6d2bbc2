import { defaultModels } from './defaults.ts'
import { ownModel } from '../own-model.ts'
import { hubModels } from './hub.ts'
import type { ManifestModel } from '../contract.ts'

/** Every model the embedded engine knows, in the order they are listed. */
export const manifest: readonly ManifestModel[] = [...defaultModels, ...hubModels]

export function findModel(slug: string, models: readonly ManifestModel[] = manifest): ManifestModel | undefined {
  return models.find(({ catalog }) => catalog.id === slug || catalog.aliases.includes(slug)) ?? ownModel(slug)
}
