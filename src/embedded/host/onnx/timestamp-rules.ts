import { logSumExp } from './token-choice.ts'
import type { WhisperTokens } from './whisper-tokens.ts'

/** The first words begin within the first second of a window, or at a later one. */
const initialTimestampMax = 50

/**
 * What whisper may say next, as its authors decode it: timestamps come in pairs, never run backwards, open the window,
 * and win when together they are likelier than any word. Changes the logits in place.
 */
export function applyTimestampRules(logits: Float32Array, said: readonly number[], tokens: WhisperTokens): void {
  const { firstTimestamp, end, suppressed, suppressedAtStart, noTimestamps } = tokens
  for (const token of suppressed) logits[token] = -Infinity
  logits[noTimestamps] = -Infinity
  if (said.length === 0) {
    for (const token of suppressedAtStart) logits[token] = -Infinity
    logits.fill(-Infinity, 0, firstTimestamp)
    logits.fill(-Infinity, firstTimestamp + initialTimestampMax + 1)
    return
  }
  const isTime = (token: number | undefined) => token !== undefined && token >= firstTimestamp
  const [last, beforeLast] = [said.at(-1), said.at(-2)]
  if (isTime(last)) {
    if (said.length < 2 || isTime(beforeLast)) logits.fill(-Infinity, firstTimestamp)
    else logits.fill(-Infinity, 0, end)
  }
  const latest = said.findLast(isTime)
  if (latest !== undefined) {
    // A closed segment may be followed at once by the next; an open one must last.
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
