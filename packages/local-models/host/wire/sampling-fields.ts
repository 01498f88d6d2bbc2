import { parameterError } from '../runtime/host-error.ts'
import type { Sampling } from '../runtime/engine-model.ts'
import type { JsonObject, JsonValue } from '../runtime/json-value.ts'
import { optionalInteger, optionalNumber } from './fields.ts'

const ANY = Number.MAX_SAFE_INTEGER

/** The sampling parameters that chat and legacy completions share. */
export function readSampling(body: JsonObject, topLogprobs: number | undefined): Sampling {
  const given: Record<keyof Omit<Sampling, 'stop'>, number | undefined> = {
    maxTokens: optionalInteger(body, 'max_completion_tokens', 1, ANY) ?? optionalInteger(body, 'max_tokens', 1, ANY),
    temperature: optionalNumber(body, 'temperature'),
    topP: optionalNumber(body, 'top_p'),
    topK: optionalInteger(body, 'top_k', -1, ANY),
    minP: optionalNumber(body, 'min_p'),
    seed: optionalInteger(body, 'seed', -ANY, ANY),
    frequencyPenalty: optionalNumber(body, 'frequency_penalty'),
    presencePenalty: optionalNumber(body, 'presence_penalty'),
    repetitionPenalty: optionalNumber(body, 'repetition_penalty'),
    topLogprobs,
  }
  const present = Object.entries(given).filter(([, value]) => value !== undefined)
  return { ...(Object.fromEntries(present) as Omit<Sampling, 'stop'>), stop: readStop(body['stop']) }
}

function readStop(stop: JsonValue | undefined): readonly string[] {
  const stops = [stop ?? []].flat()
  if (!stops.every((it) => typeof it === 'string')) {
    throw parameterError('invalid_type', 'stop', 'a string or an array of strings')
  }
  return stops.filter((it) => it !== '')
}

/** Choice 0 keeps the caller's seed, so that `n: 1` gives the same text as the first of many. */
export function samplingOfChoice(sampling: Sampling, index: number): Sampling {
  return sampling.seed === undefined || index === 0 ? sampling : { ...sampling, seed: sampling.seed + index }
}
