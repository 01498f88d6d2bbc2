import { ApiError } from '../../shared/errors.ts'
import { invalidParameter } from '../../shared/parameter-errors.ts'

/** The name of a model in a body. */
export function modelName(body: Readonly<Record<string, unknown>>): string {
  const { model } = body
  if (model === undefined || model === null) {
    throw new ApiError('missing_required_parameter', "Missing required parameter: 'model', the slug of a model.", {
      param: 'model',
    })
  }
  if (typeof model !== 'string') throw invalidParameter('invalid_type', 'model', 'a string, the slug of a model')
  return model
}
