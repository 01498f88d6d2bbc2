import type { EngineDescription, EngineQuestions } from '../core/catalog.ts'
import { cacheSizeQuestion } from './cache-size.ts'
import { healthCheckOf } from './health-check.ts'

/** What the servers of an engine are asked besides their work. */
export function engineQuestions(engine: EngineDescription): EngineQuestions {
  return { health: healthCheckOf(engine), cacheSize: cacheSizeQuestion(engine) }
}
