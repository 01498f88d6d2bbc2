import type { Model } from '../../catalog/model.ts'
import { ApiError } from '../../shared/errors.ts'
import { invalidParameter } from '../../shared/parameter-errors.ts'
import type { TokenEstimate } from '../../shared/tokens/token-estimate.ts'

/** The output tokens a request may use: the requested number, or the default as far as the context has room. */
export function allowedOutputTokens(
  model: Model,
  request: {
    /** The parameter that limits the output. */
    readonly name: string
    readonly requested: number | undefined
    readonly fallback: number
    /** The input that has to fit into the context with the output, and the parameter that contains it. */
    readonly input: TokenEstimate
    readonly inputName: string
  },
): number {
  const { name, requested, fallback, inputName } = request
  const { likely: input, charged } = request.input
  if (requested !== undefined && requested > model.maxCompletionTokens) {
    throw invalidParameter(
      'invalid_value',
      name,
      `at most ${model.maxCompletionTokens}, the output limit of ${model.id}`,
    )
  }
  // The default has to fit even if the input is as long as possible. A caller can request more.
  const allowed = requested ?? Math.max(1, Math.min(fallback, model.contextLength - charged))
  if (input + allowed <= model.contextLength) return allowed
  throw new ApiError(
    'context_length_exceeded',
    `This model's maximum context length is ${model.contextLength} tokens, but the request needs about ${input + allowed} (${input} in the ${inputName}, ${allowed} in the completion). Shorten the ${inputName} or lower ${name}.`,
    { param: inputName, tokens: { input, output: allowed, limit: model.contextLength } },
  )
}
