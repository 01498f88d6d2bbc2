import { brief, count, exactPicoAud, milliseconds, percent, picoAud, picoAudAxis } from './format.ts'

/** What a chart measures, and how its values are written. */
export interface Measure {
  /** In the table of numbers. */
  readonly text: (value: number) => string
  /** On hover. */
  readonly exact: (value: number) => string
  /** The labels of an axis up to `max`, in steps of `step`. */
  readonly axis: (max: number, step: number) => (value: number) => string
  /** The steps that an axis may have. */
  readonly steps: readonly number[]
  /** No value is larger. */
  readonly limit?: number
}

const steps = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => [1, 2, 5].map((it) => it * 10 ** (from + index))).flat()

/** In pico-AUD. */
export const money: Measure = { text: picoAud, exact: exactPicoAud, axis: picoAudAxis, steps: steps(2, 18) }

export const counts: Measure = { text: count, exact: count, axis: () => brief, steps: steps(0, 12) }

const MINUTE_MS = 60_000
export const durations: Measure = {
  text: milliseconds,
  exact: (value) => (value < 1000 ? milliseconds(value) : `${milliseconds(value)} (${count(value)} ms)`),
  axis: () => milliseconds,
  steps: [...steps(0, 3), 10_000, 20_000, ...[0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300].map((it) => it * MINUTE_MS)],
}

const speed = (value: number): string => `${value < 10 ? Number(value.toFixed(1)) : count(value)} tokens/s`
export const tokensPerSecond: Measure = { text: speed, exact: speed, axis: () => brief, steps: steps(-1, 6) }

export const shares: Measure = {
  text: percent,
  exact: (value) => `${Number((value * 100).toFixed(2))} %`,
  axis: () => percent,
  steps: [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5],
  limit: 1,
}
