/** A request that an engine has answered. */
export interface RecordedAnswer {
  readonly inputTokens: number
  readonly outputTokens: number
  /** From admission to the last token. */
  readonly durationMs: number
  /** From admission; null if the answer was not streamed. */
  readonly firstTokenMs: number | null
}

/** How fast an engine was, as its answers show it. */
export interface RecordedSpeed {
  /** undefined: no answer was long enough to tell. */
  readonly tokensPerSecond: number | undefined
  readonly prefillTokensPerSecond: number | undefined
}

/** Shorter times say more about the network and the clock than about the engine. */
const MEASURABLE_MS = 50
const MEASURABLE_TOKENS = 8

/**
 * Requests that ran beside others were slowed down by them. The fast ones come nearest to a stream that is alone, and the
 * very fastest may be accidents.
 */
const ALONE = 0.9

export function recordedSpeed(answers: readonly RecordedAnswer[]): RecordedSpeed {
  return {
    tokensPerSecond: fastOf(
      answers.map(({ outputTokens, durationMs, firstTokenMs }) =>
        speed(outputTokens, durationMs - (firstTokenMs ?? 0)),
      ),
    ),
    prefillTokensPerSecond: fastOf(
      answers.map(({ inputTokens, outputTokens, durationMs, firstTokenMs }) =>
        // Without output, all of the time went into the input.
        speed(inputTokens, firstTokenMs ?? (outputTokens === 0 ? durationMs : 0)),
      ),
    ),
  }
}

function speed(tokens: number, ms: number): number | undefined {
  return tokens < MEASURABLE_TOKENS || ms < MEASURABLE_MS ? undefined : (tokens / ms) * 1000
}

function fastOf(speeds: readonly (number | undefined)[]): number | undefined {
  const known = speeds.filter((it) => it !== undefined).toSorted((one, other) => one - other)
  return known[Math.floor((known.length - 1) * ALONE)]
}
