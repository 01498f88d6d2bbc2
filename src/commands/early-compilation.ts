import { setFlagsFromString } from 'node:v8'

/** How often V8 sees a function called before it compiles it, and how many functions may wait to be compiled. */
export const EARLY_COMPILATION = {
  'invocation-count-for-maglev': 100,
  'minimum-invocations-after-ic-update': 100,
  'concurrent-recompilation-queue-length': 64,
}

/** The calls before the last step, TurboFan. */
export const LAST_STEP = 'invocation-count-for-turbofan'
/** With fewer, some code is compiled too early and again. With 700, the compiler takes longer to get there. */
export const CALLS_IN_A_RUSH = 250
/** The code that each token takes gets there within a second, the rest when it has nearly paid. */
export const CALLS_OTHERWISE = 4000

/**
 * The last step takes about 1.3 s of CPU for the whole request path, and saves at least 20 µs of each request, or 200 µs
 * of a lone one. So it pays within a minute at this rate, and after 6,500 requests that come one by one.
 */
const RUSH_PER_SECOND = 1000
export const LOOK_MS = 100

/**
 * V8 waits for some thousand calls, whatever the load is. Under a heavy one, a service would work with slow code, and
 * beside its own compiler, for the first ten seconds after its start; like this, four fifths are compiled after four, and a
 * small request costs two thirds in seconds 2 to 6. Under a light one, the compiler would take a third of the CPU in this time.
 *
 * V8 counts down from the number that it found when it took the step before. So a service that is idle expects a rush:
 * a number that is lowered in the middle of one comes too late for the code that was called most.
 *
 * For a service that has started. Before that, the code that starts it would be compiled for nothing. Returns a function
 * that stops the looks at the load.
 */
export function compileEarly(requestCount: () => number, set = setFlagsFromString): () => void {
  let seen = requestCount()
  let wasIdle = true
  let calls = CALLS_IN_A_RUSH

  function look(): void {
    const requests = requestCount() - seen
    seen += requests
    const isRush = (requests * 1000) / LOOK_MS >= RUSH_PER_SECOND
    // The first requests after a pause may have come at the end of this time, so they say nothing about the rate.
    const wanted = isRush || wasIdle ? CALLS_IN_A_RUSH : CALLS_OTHERWISE
    wasIdle = requests === 0
    if (wanted !== calls) set(`--${LAST_STEP}=${wanted}`)
    calls = wanted
  }

  for (const [name, value] of Object.entries({ ...EARLY_COMPILATION, [LAST_STEP]: calls })) set(`--${name}=${value}`)
  const timer = setInterval(look, LOOK_MS).unref()
  return () => clearInterval(timer)
}
