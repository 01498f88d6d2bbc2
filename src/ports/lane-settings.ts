import type { LaneLimits } from '../core/admission/lane.ts'

/** Limits that an operator has set for a lane, in place of those in the catalog's file. */
export interface OperatorLimits {
  readonly lane: string
  readonly limits: LaneLimits
  /** What the file said when they were set. They end when it says something else. */
  readonly limitsInFile: LaneLimits
}

/** What operators set while the service runs. Each change is atomic by itself, and the last one wins. */
export interface LaneSettingsStore {
  laneSettings(): Promise<LaneSettingsSnapshot>
  setLaneLimits(set: OperatorLimits): Promise<void>
  clearLaneLimits(lane: string): Promise<void>
  setDrained(url: string, isDrained: boolean): Promise<void>
}

/** Everything at one moment. */
export interface LaneSettingsSnapshot {
  readonly limits: readonly OperatorLimits[]
  /** Addresses of engines that get no new calls. */
  readonly drained: readonly string[]
}
