import { setFlagsFromString } from 'node:v8'

/** How often V8 sees a function called before it compiles it, and how many functions may wait to be compiled. */
export const EARLY_COMPILATION = {
  'invocation-count-for-maglev': 100,
  'minimum-invocations-after-ic-update': 100,
  'concurrent-recompilation-queue-length': 64,
}

/** The calls before the last step, TurboFan. */
export const LAST_STEP = 'invocation-count-for-turbofan'
/** With fewer, code is compiled too early and again. */
export const CALLS_IN_A_RUSH = 700
/** The code that each token takes gets there within a second, the rest when it has nearly paid. */
export const CALLS_OTHERWISE = 20_000

/**
 * The last step takes about 1.3 s of CPU for the whole request path, and saves about 70 µs of each request. So it pays
 * within ten seconds at this rate.
 */
const RUSH_PER_SECOND = 2000
const LOOK_MS = 250

/**
 * V8 waits for some thousand calls, whatever the load is. Under a heavy one, a service would work with slow code, and
 * beside its own compiler, for the first ten seconds after its start; like this it is three, and a small request costs
 * three quarters in seconds 2 to 6. Under a light one, the compiler would cost as much as the requests: at 500 a second
 * they cost 0.6 of that now.
 *
 * For a service that has started. Before that, the code that starts it would be compiled for nothing. Returns a function
 * that stops the looks at the load.
 */
export function compileEarly(requestCount: () => number, set = setFlagsFromString): () => void {
  let before = requestCount()
  let calls = CALLS_OTHERWISE

  function look(): void {
    const now = requestCount()
    const isRush = ((now - before) * 1000) / LOOK_MS >= RUSH_PER_SECOND
    before = now
    const wanted = isRush ? CALLS_IN_A_RUSH : CALLS_OTHERWISE
    if (wanted !== calls) set(`--${LAST_STEP}=${wanted}`)
    calls = wanted
  }

  for (const [name, value] of Object.entries({ ...EARLY_COMPILATION, [LAST_STEP]: calls })) set(`--${name}=${value}`)
  const timer = setInterval(look, LOOK_MS).unref()
  return () => clearInterval(timer)
}
