import { deploymentsOf, type Model } from '../../core/catalog.ts'
import { ConfigError } from '../../core/checked-yaml.ts'
import { findModel } from '../manifest/manifest.ts'
import type { LocalModels } from './local-models.ts'

/** An unknown embedded model is refused like any other mistake in the catalog. */
export function requireKnown(models: readonly Model[], local: Pick<LocalModels, 'knows'>): void {
  for (const { lane, engine } of models.flatMap(deploymentsOf)) {
    if (engine?.kind === 'embedded' && !local.knows(engine.model)) {
      throw new ConfigError(
        `${lane}: the embedded engine does not know the model "${engine.model}"; see weir models list`,
      )
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
