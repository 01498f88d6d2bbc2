import type { ManifestModel } from './manifest-types.ts'

export const hubModels: readonly ManifestModel[] = []
