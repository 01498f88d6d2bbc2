import { ConfigError } from '../shared/checked-yaml.ts'
import { COORDINATION, COORDINATION_RULE, DATABASE, DATABASE_RULE, TOKEN, TOKEN_RULE } from './config-file.ts'

/** Values that come from variables or options, which the schema of the file does not check. undefined: it is not given. */

export function portFrom(text: string | undefined, source: string): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (text.trim() !== '' && Number.isInteger(value) && value >= 0 && value <= 65_535) return value
  throw new ConfigError(`${source}: must be a port from 0 to 65535, but is "${text}"`)
}

/** The message does not repeat the token, because it is a secret. */
export function tokenFrom(text: string | undefined): string | undefined {
  if (text === undefined || TOKEN.test(text)) return text
  throw new ConfigError(`WEIR_OPERATOR_TOKEN: must be ${TOKEN_RULE}`)
}

/** The message does not repeat the address, because it may contain a password. */
export function redisFrom(text: string | undefined): string | undefined {
  if (text !== undefined && !COORDINATION.test(text)) {
    throw new ConfigError(`WEIR_REDIS_URL: must be ${COORDINATION_RULE}`)
  }
  return text === 'memory' ? undefined : text
}

/** The message does not repeat the address, because it may contain a password. */
export function databaseFrom(text: string | undefined, source = 'WEIR_DATABASE_URL'): string | undefined {
  if (text !== undefined && !(DATABASE.test(text) && (text === 'sqlite' || URL.canParse(text)))) {
    throw new ConfigError(`${source}: must be ${DATABASE_RULE}`)
  }
  return text === 'sqlite' ? undefined : text
}
