import type { Config } from '../config.ts'
import type { LiveSettings } from '../operate/reload/live-settings.ts'
import type { Telemetry } from '../operate/telemetry/telemetry.ts'
import type { AlarmClock } from '../shared/clock.ts'

/** What everything is opened with. */
export interface Start {
  readonly config: Config
  readonly clock: AlarmClock
  /** Closes what was opened, in reverse order. */
  readonly opened: AsyncDisposableStack
  readonly telemetry: Telemetry
  readonly settings: LiveSettings
}
