import { ApiError } from '../../shared/errors.ts'

/** The error of a chat, with another API's names for its parameters. */
export function renamedError(error: ApiError, names: Readonly<Record<string, string>>): ApiError {
  const { param } = error
  if (param === null) return error
  const name = /^[a-z_]+/.exec(param)?.[0] ?? ''
  const own = Object.hasOwn(names, name) ? names[name] : undefined
  if (own === undefined) return error
  const { code, message, retryAfter, waitingHelps, tokens } = error
  return new ApiError(code, message.replaceAll(`'${param}'`, `'${own}'`), {
    param: own,
    waitingHelps,
    ...(retryAfter === null ? {} : { retryAfter }),
    ...(tokens ? { tokens } : {}),
  })
}
