/** A request that an engine has answered. */
export interface RecordedAnswer {
  readonly inputTokens: number
  readonly outputTokens: number
  /** From admission to the last token. */
  readonly durationMs: number
  /** From admission; null if the answer was not streamed. */
  readonly firstTokenMs: number | null
}

/** The speed of an engine, estimated from its answers. */
export interface RecordedSpeed {
  /** Undefined if no answer was long enough to measure. */
  readonly tokensPerSecond: number | undefined
  readonly prefillTokensPerSecond: number | undefined
}

/** Shorter times depend more on the network and the clock than on the engine. */
const MEASURABLE_MS = 50
const MEASURABLE_TOKENS = 8

/**
 * Concurrent requests slow each other down. The fast ones are closest to the speed of a single stream, and the very fastest
 * may be outliers. So a high percentile is taken.
 */
const SINGLE_STREAM_PERCENTILE = 0.9

export function recordedSpeed(answers: readonly RecordedAnswer[]): RecordedSpeed {
  return {
    tokensPerSecond: fastOf(
      answers.map(({ outputTokens, durationMs, firstTokenMs }) =>
        speed(outputTokens, durationMs - (firstTokenMs ?? 0)),
      ),
    ),
    prefillTokensPerSecond: fastOf(
      answers.map(({ inputTokens, outputTokens, durationMs, firstTokenMs }) =>
        // Without output, all of the time was spent on the input.
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
  return known[Math.floor((known.length - 1) * SINGLE_STREAM_PERCENTILE)]
}
