import type { Config } from '../../config.ts'
import {
  isLive,
  pendingSettings,
  type PendingSetting,
  type Setting,
  type SettingsAnswer,
} from '../../shared/settings.ts'

/** The settings that a running service can change, and all that are in force. */
export interface LiveSettings {
  readonly requestsPerMinute: number
  readonly unauthenticatedPerMinute: number
  readonly maxBodyBytes: number
  readonly drainMs: number
  inForce(): readonly Setting[]
  /** The differences in a file that was read again. */
  pending(next: Pick<Config, 'settings'>): readonly PendingSetting[]
  /** Applies the settings of a file that can change at run time, and returns their names. */
  take(next: Config): readonly string[]
}

export function liveSettings(started: Config): LiveSettings {
  let inForce = started.settings
  const settings: LiveSettings = {
    ...limitsOf(started),
    maxBodyBytes: started.maxBodyBytes,
    inForce: () => inForce,
    pending: (next) => pendingSettings(inForce, next.settings),
    take(next) {
      const pending = pendingSettings(inForce, next.settings)
      Object.assign(settings, limitsOf(next))
      inForce = [
        ...started.settings.filter(({ key }) => !isLive(key)),
        ...next.settings.filter(({ key }) => isLive(key)),
      ]
      return pending.filter(({ needs }) => needs === 'reload').map(({ key }) => key)
    },
  }
  return settings
}

function limitsOf({ requestsPerMinute, unauthenticatedPerMinute, drainMs }: Config) {
  return { requestsPerMinute, unauthenticatedPerMinute, drainMs }
}

/** For `weir config`. */
export function settingsAnswer(started: Pick<Config, 'file' | 'reread'>, settings: LiveSettings): SettingsAnswer {
  const answer = { file: started.file ?? null, settings: settings.inForce() }
  try {
    const next = started.reread()
    return { ...answer, file: next.file ?? null, pending: settings.pending(next), problem: null }
  } catch (error) {
    return { ...answer, pending: [], problem: (error as Error).message }
  }
}
