import type { EngineDescription, EngineQuestions } from '../../catalog/model.ts'
import { cacheSizeQuestion } from './cache-size.ts'
import { healthCheckOf } from './health-check.ts'

/** Requests to an engine's servers other than calls: health and cache size. */
export function engineQuestions(engine: EngineDescription): EngineQuestions {
  return { health: healthCheckOf(engine), cacheSize: cacheSizeQuestion(engine) }
}
