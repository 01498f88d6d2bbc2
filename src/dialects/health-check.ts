import type { EngineDescription, EngineKind, HealthCheck } from '../core/catalog.ts'

/**
 * Where each kind of server says that it is well without working for it. A version that lacks the path answers 404,
 * which is a sign of life too.
 */
const cheapPaths: Readonly<Partial<Record<EngineKind, string>>> = {
  vllm: '//health',
  sglang: '//health',
  llamacpp: '//health',
  // It has none, and says so without taking the lock of its model.
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
 * Almost every server has it, but not always for free: llama-cpp-python's stops what it generates to list its models.
 * /health is no better for a server of unknown kind: LiteLLM's asks every model that it knows.
 */
const USUAL_PATH = '/models'

/** How to ask whether an engine is well: at the path that the catalog gives, or at the usual one of its kind. */
export function healthCheckOf({ kind, health }: EngineDescription): HealthCheck {
  const path = health.path === undefined ? cheapPaths[kind] : `/${health.path}`
  return { path: path ?? USUAL_PATH, isCheap: path !== undefined, intervalMs: health.intervalMs }
}
