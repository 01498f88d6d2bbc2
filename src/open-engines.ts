import type { LaneSettings } from './catalog/lane-settings.ts'
import type { Config } from './config.ts'
import { engineQuestions } from './engines/dialects/engine-questions.ts'
import { localModels, type LocalModels } from './local-models/local-models.ts'
import { engineSet, type EngineSet, openUpstream } from './engines/upstream.ts'
import { failureCounts, type FailureCounts } from './engines/failure-counts.ts'
import { serverActivities } from './engines/server-activity.ts'
import { upstreamEvents } from './service-log.ts'
import type { Telemetry } from './operate/telemetry/telemetry.ts'

/** The engines of a catalog: servers at their addresses, and models that run here. A part of compose.ts. */
export interface Engines extends EngineSet {
  readonly local: LocalModels
  readonly failures: FailureCounts
}

export function openEngines(
  config: Pick<Config, 'modelsDir' | 'environment'>,
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
  const engines = engineSet((description) =>
    description.kind === 'embedded'
      ? local.engine(description.model, (socketPath) =>
          // Its host starts with the first call, so there may be nothing to probe yet.
          openUpstream({ ...description, urls: [`unix:${socketPath}`] }, surroundings, {}),
        )
      : openUpstream(description, surroundings, engineQuestions(description)),
  )
  return {
    ...engines,
    local,
    failures,
    async close() {
      await engines.close()
      await local.close()
    },
  }
}
