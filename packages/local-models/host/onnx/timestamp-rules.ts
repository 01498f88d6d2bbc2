import { logSumExp } from './token-choice.ts'
import type { WhisperTokens } from './whisper-tokens.ts'

/** In steps of 0.02 s: the first words of a window start within its first second. */
const MAX_FIRST_TIMESTAMP = 50

/**
 * Limits what whisper may write next, as its authors do: timestamps come in pairs, never go back in time, open the window,
 * and win when together they are more likely than any word. Changes the logits in place.
 */
export function applyTimestampRules(logits: Float32Array, generated: readonly number[], tokens: WhisperTokens): void {
  const { firstTimestamp, end, suppressed, suppressedAtStart, noTimestamps } = tokens
  for (const token of suppressed) logits[token] = -Infinity
  logits[noTimestamps] = -Infinity
  if (generated.length === 0) {
    for (const token of suppressedAtStart) logits[token] = -Infinity
    logits.fill(-Infinity, 0, firstTimestamp)
    logits.fill(-Infinity, firstTimestamp + MAX_FIRST_TIMESTAMP + 1)
    return
  }
  const isTime = (token: number | undefined) => token !== undefined && token >= firstTimestamp
  const [last, beforeLast] = [generated.at(-1), generated.at(-2)]
  if (isTime(last)) {
    if (generated.length < 2 || isTime(beforeLast)) logits.fill(-Infinity, firstTimestamp)
    else logits.fill(-Infinity, 0, end)
  }
  const latest = generated.findLast(isTime)
  if (latest !== undefined) {
    // The next segment may start at the moment the last one ended; a segment itself must last a while.
    const earliest = isTime(last) && !isTime(beforeLast) ? latest : latest + 1
    logits.fill(-Infinity, firstTimestamp, earliest)
  }
  const times = logits.subarray(firstTimestamp)
  const words = logits.subarray(0, firstTimestamp)
  const likeliestTime = maxOf(times)
  if (likeliestTime > -Infinity && logSumExp(times, likeliestTime) > maxOf(words)) words.fill(-Infinity)
}

function maxOf(values: Float32Array): number {
  let max = -Infinity
  for (const value of values) if (value > max) max = value
  return max
}
