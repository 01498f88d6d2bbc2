import { existsSync } from 'node:fs'
import type { LocalModelsPackage, ManifestModel } from '../../packages/local-models/contract.ts'

const ENTRY = new URL('../../packages/local-models/index.ts', import.meta.url)

/** False in an installation that only calls inference servers, such as the default container image. */
export const isInstalled = existsSync(ENTRY)

const absent: LocalModelsPackage = {
  manifest: [],
  findModel: () => undefined,
  ggufFacts: refuse,
  modelPaths: () => ({ ofFile: refuse, ofRole: refuse, isPresent: () => false }),
  hostProgram: '',
  runtimeBytes: 0,
  runtimes: [],
}

/** The package that runs models. If it is not installed, there are no models. */
export const { manifest, findModel, ggufFacts, modelPaths, hostProgram, runtimeBytes, runtimes } = isInstalled
  ? ((await import(ENTRY.href)) as { readonly localModelsPackage: LocalModelsPackage }).localModelsPackage
  : absent

export function modelBytes(model: ManifestModel): number {
  return model.files.reduce((sum, file) => sum + file.bytes, 0)
}

/** For a slug that the embedded engine does not know. */
export function whyUnknown(slug: string): string {
  return isInstalled
    ? `the embedded engine does not know the model "${slug}"; see weir models list`
    : `the model "${slug}" cannot run here, because this installation is without packages/local-models; use the image built with --target embedded or a clone of the repository, or give the model an engine with urls`
}

function refuse(): never {
  throw new Error('packages/local-models is not installed')
}
