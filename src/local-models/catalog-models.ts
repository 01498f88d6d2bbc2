import { deploymentsOf, type Model } from '../catalog/model.ts'
import { ConfigError } from '../shared/checked-yaml.ts'
import { findModel, whyUnknown } from './installed.ts'
import type { LocalModels } from './local-models.ts'

/** An unknown embedded model is refused like any other mistake in the catalog. */
export function requireKnown(models: readonly Model[], local: Pick<LocalModels, 'knows'>): void {
  for (const { lane, engine } of models.flatMap(deploymentsOf)) {
    if (engine?.kind === 'embedded' && !local.knows(engine.model)) {
      throw new ConfigError(`${lane}: ${whyUnknown(engine.model)}`)
    }
  }
}

/** The models to download: all embedded models of an operator's catalog, but only the small ones of the default. */
export function modelsToFetch(models: readonly Model[], isDefaultCatalog: boolean): readonly string[] {
  const named = models
    .flatMap(deploymentsOf)
    .flatMap(({ engine }) => (engine?.kind === 'embedded' ? [engine.model] : []))
  return isDefaultCatalog ? named.filter((slug) => findModel(slug)?.delivery === 'default') : named
}
