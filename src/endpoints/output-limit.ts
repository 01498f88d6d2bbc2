import type { Model } from '../core/catalog.ts'
import { ApiError } from '../core/errors.ts'
import { invalidParameter } from '../core/parameter-errors.ts'

/** The output a request may have: what it asks for, or a default as far as the context has room. */
export function outputAllowed(
  model: Model,
  request: {
    /** The parameter that asked. */
    readonly name: string
    readonly asked: number | undefined
    readonly fallback: number
    /** Likely tokens of the input, and the parameter it came in. */
    readonly input: number
    readonly inputName: string
  },
): number {
  const { name, asked, fallback, input, inputName } = request
  if (asked !== undefined && asked > model.maxCompletionTokens) {
    throw invalidParameter(
      'invalid_value',
      name,
      `at most ${model.maxCompletionTokens}, the output limit of ${model.id}`,
    )
  }
  const allowed = asked ?? Math.max(1, Math.min(fallback, model.contextLength - input))
  if (input + allowed <= model.contextLength) return allowed
  throw new ApiError(
    'context_length_exceeded',
    `This model's maximum context length is ${model.contextLength} tokens, but the request needs about ${input + allowed} (${input} in the ${inputName}, ${allowed} in the completion). Shorten the ${inputName} or lower ${name}.`,
    { param: inputName },
  )
}
