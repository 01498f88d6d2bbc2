import { EngineError } from '../runtime/engine-model.ts'
import type { Sampling } from '../runtime/engine-model.ts'
import { optionalInteger, optionalNumber } from './fields.ts'
import type { Fields } from './fields.ts'

const unbounded = Number.MAX_SAFE_INTEGER

/** The sampling parameters that chat and legacy completions share. */
export function readSampling(body: Fields, topLogprobs: number | undefined): Sampling {
  const maxTokens =
    optionalInteger(body, 'max_completion_tokens', 1, unbounded) ?? optionalInteger(body, 'max_tokens', 1, unbounded)
  const given: Record<keyof Omit<Sampling, 'stop'>, number | undefined> = {
    maxTokens,
    temperature: optionalNumber(body, 'temperature'),
    topP: optionalNumber(body, 'top_p'),
    topK: optionalInteger(body, 'top_k', -1, unbounded),
    minP: optionalNumber(body, 'min_p'),
    seed: optionalInteger(body, 'seed', -unbounded, unbounded),
    frequencyPenalty: optionalNumber(body, 'frequency_penalty'),
    presencePenalty: optionalNumber(body, 'presence_penalty'),
    repetitionPenalty: optionalNumber(body, 'repetition_penalty'),
    topLogprobs,
  }
  const present = Object.entries(given).filter(([, value]) => value !== undefined)
  return { ...(Object.fromEntries(present) as Omit<Sampling, 'stop'>), stop: readStop(body['stop']) }
}

function readStop(stop: unknown): readonly string[] {
  const list = stop === undefined || stop === null ? [] : Array.isArray(stop) ? stop : [stop]
  if (!list.every((item) => typeof item === 'string')) {
    throw new EngineError(400, 'invalid_type', "'stop' must be a string or an array of strings.", 'stop')
  }
  return list.filter((item) => item !== '')
}

/** Choice 0 keeps the caller's seed, so `n: 1` and the first of many agree. */
export function samplingOfChoice(sampling: Sampling, index: number): Sampling {
  return sampling.seed === undefined || index === 0 ? sampling : { ...sampling, seed: sampling.seed + index }
}
