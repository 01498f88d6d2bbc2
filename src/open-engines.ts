import type { LaneSettings } from './catalog/lane-settings.ts'
import type { Config } from './config.ts'
import { healthCheckOf } from './engines/dialects/health-check.ts'
import { engineQuestions } from './engines/dialects/engine-questions.ts'
import { localModels, type LocalModels } from './local-models/local-models.ts'
import type { Engine } from './engines/engine.ts'
import { engineSet, type EngineSet, openUpstream } from './engines/upstream.ts'
import { startEngineProcess } from './engines/on-demand/engine-process.ts'
import { onDemandEngines, type OnDemandEngines } from './engines/on-demand/on-demand.ts'
import type { AlarmClock } from './shared/clock.ts'
import { failureCounts, type FailureCounts } from './engines/failure-counts.ts'
import { pathAt } from './engines/address.ts'
import { serverActivities } from './engines/server-activity.ts'
import { onDemandEvents, upstreamEvents } from './service-log.ts'
import type { Telemetry } from './operate/telemetry/telemetry.ts'

/** The engines of a catalog: servers at their addresses, and models that run here. A part of compose.ts. */
export interface Engines extends EngineSet {
  readonly local: LocalModels
  readonly onDemand: OnDemandEngines
  readonly failures: FailureCounts
}

export function openEngines(
  config: Pick<Config, 'dataDir' | 'modelsDir' | 'environment'>,
  clock: AlarmClock,
  telemetry: Telemetry,
  { drained }: Pick<LaneSettings, 'drained'>,
): Engines {
  const { log } = telemetry
  const local = localModels({
    directory: config.modelsDir,
    environment: config.environment,
    log: ({ runtime, level, message }) => log[level]({ runtime }, message),
  })
  const failures = failureCounts()
  const surroundings = { events: upstreamEvents(telemetry, failures), servers: serverActivities(), drained }
  const onDemand = onDemandEngines({
    dataDir: config.dataDir,
    environment: config.environment,
    clock,
    events: onDemandEvents(telemetry),
    startProcess: startEngineProcess,
    readyPath: (description) => pathAt({ prefix: '/v1' }, healthCheckOf(description).path),
  })
  const engines = engineSet((description, lane) => {
    const open = (): Engine => openUpstream(description, surroundings, engineQuestions(description))
    if (description.kind === 'embedded') {
      return local.engine(description.model, (socketPath) =>
        // Its host starts with the first call, so there may be nothing to probe yet.
        openUpstream({ ...description, urls: [`unix:${socketPath}`] }, surroundings, {}),
      )
    }
    const { run } = description
    return run ? onDemand.engine(lane, { ...description, run }, open) : open()
  })
  return {
    ...engines,
    local,
    onDemand,
    failures,
    async close() {
      await engines.close()
      await onDemand.close()
      await local.close()
    },
  }
}
