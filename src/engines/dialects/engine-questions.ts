import type { EngineDescription, EngineQuestions } from '../../catalog/model.ts'
import { adapterLoading } from './adapters.ts'
import { cacheSizeQuestion } from './cache-size.ts'
import { healthCheckOf } from './health-check.ts'
import { loadQuestion } from './reported-load.ts'
import { takesRequestIds } from './request-ids.ts'

/** Requests to an engine's servers other than calls: health, cache size, load and adapters. */
export function engineQuestions(engine: EngineDescription): EngineQuestions {
  return {
    health: healthCheckOf(engine),
    cacheSize: cacheSizeQuestion(engine),
    load: loadQuestion(engine),
    adapters: adapterLoading(engine.kind),
    takesRequestIds: takesRequestIds(engine.kind),
  }
}
