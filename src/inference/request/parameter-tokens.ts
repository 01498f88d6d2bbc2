import type { JsonBody } from '../../shared/json/json-body.ts'
import { invalidParameter } from '../../shared/parameter-errors.ts'
import { jsonTokens, sumOf, type TokenEstimate } from '../../shared/tokens/token-estimate.ts'

/** Engines put these into the prompt. Whether they read any other parameter as text depends on the chat template. */
const PROMPT_PARAMETERS: ReadonlySet<string> = new Set(['tools', 'response_format'])
/** A parameter up to this size is a setting, such as a temperature, and not text. */
const SETTING_BYTES = 24

/** More than any tools need, and quick to count. */
const MAX_BYTES = 4_194_304

/** Refuses parameters that are too large together. Some engines turn schemas into grammars that are much larger. */
export function requireSmallParameters({ scan }: JsonBody, forwarded: ReadonlySet<string>): void {
  let left = MAX_BYTES
  for (const { name, valueStart, end } of scan.fields) {
    if (!forwarded.has(name)) continue
    left -= end - valueStart
    if (left < 0)
      throw invalidParameter('invalid_value', name, `shorter: parameters may have ${MAX_BYTES} bytes in total`)
  }
}

/**
 * Estimates the parameters that are forwarded besides the messages or the prompt. All of them count for the charge;
 * those that a chat template may leave out do not count for the context check, which must not refuse a request that
 * fits.
 */
export function parameterTokens(
  { bytes, scan }: JsonBody,
  forwarded: ReadonlySet<string>,
  tokenizer: string | undefined,
): TokenEstimate {
  const estimates: TokenEstimate[] = []
  for (const { name, valueStart, end } of scan.fields) {
    const isInPrompt = PROMPT_PARAMETERS.has(name)
    if (!forwarded.has(name) || (!isInPrompt && end - valueStart <= SETTING_BYTES)) continue
    const estimate = jsonTokens(bytes, valueStart, end, tokenizer)
    estimates.push(isInPrompt ? estimate : { ...estimate, likely: 0 })
  }
  return sumOf(estimates)
}
