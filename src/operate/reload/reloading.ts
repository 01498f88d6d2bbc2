import type { Logger } from 'pino'
import type { Catalog } from '../../catalog/catalog.ts'
import type { Config } from '../../config.ts'
import type { PendingSetting } from '../../shared/settings.ts'
import type { LiveSettings } from './live-settings.ts'
import { commandChanges, type ChangeFeed, type Reloads } from '../../cluster/changes/change-feed.ts'

/** How external changes reach a running service: by a command, or in a file. A part of compose.ts. */
export interface Reloading extends Reloads {
  /** Settings that changed in the file and need a restart. Throws on a mistake in the file. */
  needRestart(): readonly PendingSetting[]
  /** Reads weir.yaml and the catalog again. A mistake in them is logged, and the settings in force stay. */
  files(): void
}

export function openReloading(parts: {
  readonly config: Pick<Config, 'reread'>
  readonly settings: LiveSettings
  readonly catalog: Pick<Catalog, 'models' | 'reload'>
  readonly changes: ChangeFeed
  readonly log: Logger
}): Reloading {
  const { config, settings, catalog, changes, log } = parts
  const reloads: Reloads = {
    async accounts() {
      const unreached = await Promise.all(commandChanges.map((it) => changes.announce(it)))
      return [...new Set(unreached.flat())]
    },
    async catalog({ force }) {
      // The announcement reads the file once more. By then the prices are stored, so none counts as lost.
      if (force) await catalog.reload({ force })
      const unreached = await changes.announce('catalog')
      takeSettings(config.reread())
      return { models: catalog.models().length, unreached, needsRestart: needRestart() }
    },
  }
  let named: readonly string[] = []

  function takeSettings(next: Config): void {
    const taken = settings.take(next)
    if (taken.includes('log.level')) log.level = next.logLevel
    if (taken.length > 0) log.info({ settings: taken }, 'settings changed')
    const pending = settings.pending(next)
    const keys = pending.map(({ key }) => key)
    // A needed restart is logged once, not with every further change of the file.
    if (keys.length > 0 && keys.join() !== named.join()) {
      log.warn({ settings: keys }, 'changed settings that need a restart')
      const file = pending.find(({ key }) => key === 'catalog')?.value
      if (file !== undefined) log.warn({ file }, 'the catalog is in another file now, which only a restart takes')
    }
    named = keys
  }

  /** Throws on a mistake in the file. */
  function needRestart(): readonly PendingSetting[] {
    return settings.pending(config.reread()).filter(({ needs }) => needs === 'restart')
  }

  return {
    ...reloads,
    needRestart,
    files() {
      reloads
        .catalog({ force: false })
        .catch((error: Error) => log.error({ reason: error.message }, 'catalog not reloaded; keeping the old one'))
    },
  }
}
