import { ApiError } from '../../shared/errors.ts'

/** An empty object changes nothing, so it is probably a mistake. */
export function requireSomething(fields: object, param: string, example: string): void {
  if (Object.keys(fields).length > 0) return
  const message = `Nothing to change: send at least one field, such as '${example}'.`
  throw new ApiError('missing_required_parameter', message, { param })
}
