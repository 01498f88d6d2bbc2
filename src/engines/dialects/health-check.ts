import type { EngineDescription, EngineKind, HealthCheck } from '../../catalog/model.ts'

/**
 * Where each kind of server reports its health without doing work for it. A version that lacks the path answers 404,
 * which proves that it is up too.
 */
const cheapPaths: Readonly<Partial<Record<EngineKind, string>>> = {
  vllm: '//health',
  sglang: '//health',
  llamacpp: '//health',
  // It has no such path, and answers 404 without taking the lock of its model.
  llamacpp_python: '//health',
  ollama: '//api/version',
  tei: '//health',
  infinity: '//health',
  nim: '/health/ready',
  litellm: '//health/liveliness',
  localai: '//readyz',
  speaches: '//health',
  whispercpp: '//health',
}

/**
 * Almost every server has this path, but not always for free: llama-cpp-python interrupts generation to list its
 * models. /health is no better for a server of unknown kind: LiteLLM's queries every model that it has.
 */
const USUAL_PATH = '/models'

/** How to check an engine's health: at the path in the catalog, or at the usual one of its kind. */
export function healthCheckOf({ kind, health }: EngineDescription): HealthCheck {
  const path = health.path === undefined ? cheapPaths[kind] : `/${health.path}`
  return { path: path ?? USUAL_PATH, isCheap: path !== undefined, intervalMs: health.intervalMs }
}
