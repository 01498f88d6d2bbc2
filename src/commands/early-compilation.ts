import { setFlagsFromString } from 'node:v8'

/** How often V8 sees a function called before it compiles it, and how many functions may wait to be compiled. */
export const EARLY_COMPILATION = {
  'invocation-count-for-maglev': 100,
  'invocation-count-for-turbofan': 700,
  'minimum-invocations-after-ic-update': 100,
  'concurrent-recompilation-queue-length': 64,
}

/**
 * V8 waits for thousands of calls, so that a service under load would work with slow code, and beside its own compiler,
 * for the first ten seconds after its start. Like this it is three seconds: in seconds 2 to 6 a small request costs about
 * three quarters. Still smaller numbers gain nothing: more code is compiled too early and again.
 *
 * For a service that has started. Before that, the code that starts it would be compiled for nothing.
 */
export function compileEarly(): void {
  for (const [name, value] of Object.entries(EARLY_COMPILATION)) setFlagsFromString(`--${name}=${value}`)
}
