import type { EngineDescription, EngineQuestions } from '../../catalog/model.ts'
import { cacheSizeQuestion } from './cache-size.ts'
import { healthCheckOf } from './health-check.ts'
import { loadQuestion } from './reported-load.ts'

/** Requests to an engine's servers other than calls: health, cache size and load. */
export function engineQuestions(engine: EngineDescription): EngineQuestions {
  return { health: healthCheckOf(engine), cacheSize: cacheSizeQuestion(engine), load: loadQuestion(engine) }
}
