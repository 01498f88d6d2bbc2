import { existsSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import type { ManifestModel, ModelFile, ModelPaths } from './contract.ts'

/** The models that are shipped with Weir. */
const BOX_DIRECTORY = join(import.meta.dirname, 'models')

export function modelPaths(modelsDirectory: string): ModelPaths {
  const ofFile = (model: ManifestModel, file: ModelFile): string =>
    isAbsolute(file.path) ? file.path : join(model.delivery === 'box' ? BOX_DIRECTORY : modelsDirectory, file.path)
  return {
    ofFile,
    ofRole(model, role) {
      const file = model.files.find((candidate) => candidate.role === role)
      if (!file) throw new Error(`${model.catalog.id} has no file '${role}'`)
      return ofFile(model, file)
    },
    isPresent: (model) => model.files.every((file) => existsSync(ofFile(model, file))),
  }
}
