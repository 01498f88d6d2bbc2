import type { Config } from './config.ts'
import { changedSettings, isLive, type Setting } from './core/settings.ts'

/** The settings that a running service can change, and all that are in force. */
export interface LiveSettings {
  readonly requestsPerMinute: number
  readonly unauthenticatedPerMinute: number
  readonly maxBodyBytes: number
  readonly drainMs: number
  inForce(): readonly Setting[]
  /** Takes what can be taken from a file that was read again, and names the settings that changed. */
  take(next: Config): { readonly taken: readonly string[]; readonly needRestart: readonly string[] }
}

export function liveSettings(started: Config): LiveSettings {
  let current = started
  let inForce = started.settings
  let named: readonly string[] = []

  return {
    get requestsPerMinute() {
      return current.requestsPerMinute
    },
    get unauthenticatedPerMinute() {
      return current.unauthenticatedPerMinute
    },
    get drainMs() {
      return current.drainMs
    },
    maxBodyBytes: started.maxBodyBytes,
    inForce: () => inForce,
    take(next) {
      const changed = changedSettings(inForce, next.settings).map(({ key }) => key)
      const taken = changed.filter(isLive)
      const needRestart = changed.filter((key) => !isLive(key))
      current = next
      inForce = [
        ...started.settings.filter(({ key }) => !isLive(key)),
        ...next.settings.filter(({ key }) => isLive(key)),
      ]
      // A restart is asked for once, not with every further change of the file.
      const isNew = needRestart.join() !== named.join()
      named = needRestart
      return { taken, needRestart: isNew ? needRestart : [] }
    },
  }
}
