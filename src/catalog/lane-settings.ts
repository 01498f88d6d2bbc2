import type { LaneLimits } from '../queue/lane.ts'
import { deploymentsOf, type Deployment, type Model } from './model.ts'
import { newestRead } from '../shared/newest-read.ts'
import type { ChangeFeed } from '../cluster/changes/change-feed.ts'
import type { DrainedAddresses, LaneSettingsStore, OperatorLimits } from './lane-settings-store.ts'

/**
 * Settings that operators change at run time, in addition to the catalog's file: limits of lanes, and addresses of
 * engines that get no new calls. Both are in the database, so they survive a restart. The last change of a limit wins:
 * limits that an operator set here end when the file's limits for the lane change.
 */
export interface LaneSettings {
  /** The models of the file with the limits in force. */
  applied(models: readonly Model[]): readonly Model[]
  readonly drained: DrainedAddresses
  /** All of them, including those that no engine uses any more. */
  drainedUrls(): readonly string[]
  setLimits(deployment: Deployment, limits: LaneLimits): Promise<void>
  /** Returns the lane to the limits in the file. */
  clearLimits(lane: string): Promise<void>
  drain(url: string): Promise<void>
  undrain(url: string): Promise<void>
  /** Reads again what has changed. */
  reload(): Promise<void>
  /** Removes limits that the file has replaced since they were set. Returns their lanes. */
  dropReplaced(models: readonly Model[]): Promise<readonly string[]>
}

export async function openLaneSettings(store: LaneSettingsStore, changes: ChangeFeed): Promise<LaneSettings> {
  let limitsOf = new Map<string, OperatorLimits>()
  let drained: ReadonlySet<string> = new Set()

  const reload = newestRead(
    () => store.laneSettings(),
    (snapshot) => {
      limitsOf = new Map(snapshot.limits.map((set) => [set.lane, set]))
      drained = new Set(snapshot.drained)
    },
  )

  function withLimits(deployment: Deployment): Deployment {
    const { limitsInFile, ...rest } = deployment
    const ofFile = { ...rest, limits: limitsInFile ?? deployment.limits }
    const set = limitsOf.get(deployment.lane)
    if (!set || !areSame(set.limitsInFile, ofFile.limits)) return ofFile
    // Operators do not set the limits for batch work, so those of the file apply.
    const { batch, maxFlexWaitMs } = ofFile.limits
    return { ...ofFile, limits: { ...set.limits, batch, maxFlexWaitMs }, limitsInFile: ofFile.limits }
  }

  await reload()
  return {
    applied: (models) =>
      models.map((model) => ({
        ...model,
        serverless: model.serverless && withLimits(model.serverless),
        dedicated: model.dedicated.map(withLimits),
      })),
    drained: { has: (url) => drained.has(url) },
    drainedUrls: () => [...drained],
    async setLimits({ lane, limits: inForce, limitsInFile = inForce }, limits) {
      if (areSame(limits, limitsInFile)) await store.clearLaneLimits(lane)
      else await store.setLaneLimits({ lane, limits, limitsInFile })
      await changes.announce('lanes')
    },
    async clearLimits(lane) {
      await store.clearLaneLimits(lane)
      await changes.announce('lanes')
    },
    async drain(url) {
      await store.setDrained(url, true)
      await changes.announce('lanes')
    },
    async undrain(url) {
      await store.setDrained(url, false)
      await changes.announce('lanes')
    },
    reload,
    async dropReplaced(models) {
      const replaced = models
        .flatMap(deploymentsOf)
        .filter(({ lane, limitsInFile }) => limitsInFile === undefined && limitsOf.has(lane))
        .map(({ lane }) => lane)
      for (const lane of replaced) {
        await store.clearLaneLimits(lane)
        limitsOf.delete(lane)
      }
      return replaced
    },
  }
}

/** The limits that operators can set. */
const settable = [
  'tokenBudget',
  'maxConcurrentRequests',
  'maxQueueDepth',
  'maxWaitMs',
  'maxRequestsPerWorkspace',
] as const satisfies readonly (keyof LaneLimits)[]

function areSame(one: LaneLimits, other: LaneLimits): boolean {
  return settable.every((name) => one[name] === other[name])
}
