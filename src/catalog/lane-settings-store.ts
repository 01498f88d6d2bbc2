import type { LaneLimits } from '../queue/lane.ts'

/** Limits that an operator has set for a lane, in place of those in the catalog's file. */
export interface OperatorLimits {
  readonly lane: string
  readonly limits: LaneLimits
  /** The limits in the file when these were set. If the file changes, these end. */
  readonly limitsInFile: LaneLimits
}

/** Settings that operators change at run time. Each change is atomic, and the last one wins. */
export interface LaneSettingsStore {
  laneSettings(): Promise<LaneSettingsSnapshot>
  setLaneLimits(set: OperatorLimits): Promise<void>
  clearLaneLimits(lane: string): Promise<void>
  setDrained(url: string, isDrained: boolean): Promise<void>
}

/** A consistent snapshot of everything. */
export interface LaneSettingsSnapshot {
  readonly limits: readonly OperatorLimits[]
  /** Addresses of engines that get no new calls. */
  readonly drained: readonly string[]
}

/** Addresses that an operator has drained. */
export interface DrainedAddresses {
  has(url: string): boolean
}
