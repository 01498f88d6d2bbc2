import { RefusedWrite } from '../../shared/refused-write.ts'
import { timeLimitNames } from './time-limits.ts'

/** Classifies errors of PostgreSQL by their SQLSTATE. Errors of the connection have none. */

const stateOf = (error: unknown): string => {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : ''
}

/**
 * Whether the values would be refused again: data exceptions (22), integrity constraints (23), and statements that are too
 * large for PostgreSQL (54). Any other error may be temporary.
 */
function refusesValues(error: unknown): boolean {
  return /^(22|23|54)/.test(stateOf(error))
}

/**
 * Whether the connection is lost: no SQLSTATE at all, a connection error (08), a server that starts or stops (57P), or
 * one that ended an idle transaction (25P03).
 */
export function isAway(error: unknown): boolean {
  return !(error instanceof RefusedWrite) && /^$|^08|^57P|^25P03/.test(stateOf(error))
}

/** Returns a `RefusedWrite`, or an error whose single line tells the operator what to do. `address` must contain no password. */
export function explainPostgresError(error: unknown, address: string): Error {
  const it = error instanceof Error ? error : new Error(String(error))
  if (it instanceof RefusedWrite) return it
  if (refusesValues(it)) return new RefusedWrite(it.message, { cause: it })
  if ((it as NodeJS.ErrnoException).code?.startsWith('ERR_DATABASE_')) return it
  const advice = adviceFor(it)
  return advice === undefined ? it : databaseFailure(advice.code, `${address}: ${advice.text}`, it)
}

/** An error that an operator can fix. It has a code, so it is shown without a stack. */
export function databaseFailure(code: string, message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code })
}

function adviceFor(error: Error): { readonly code: string; readonly text: string } | undefined {
  const state = stateOf(error)
  if (state.startsWith('28')) {
    return {
      code: 'ERR_DATABASE_LOGIN',
      text: `PostgreSQL refuses the login (${error.message}): correct the user and password in database or WEIR_DATABASE_URL`,
    }
  }
  if (state === '3D000') {
    return { code: 'ERR_DATABASE_MISSING', text: `${error.message}: create it with createdb, owned by Weir's user` }
  }
  if (state === '42501') {
    return {
      code: 'ERR_DATABASE_RIGHTS',
      text: `${error.message}: make Weir's user the owner of the database (ALTER DATABASE … OWNER TO …)`,
    }
  }
  if (state === '53300') {
    return {
      code: 'ERR_DATABASE_FULL',
      text: `${error.message}: raise max_connections of PostgreSQL (a service needs up to 12)`,
    }
  }
  // PgBouncer uses this state for every error, also when PostgreSQL is down.
  if (state === '08P01' && error.message.includes('startup parameter')) {
    return {
      code: 'ERR_DATABASE_POOLER',
      text: `${error.message}: add ${timeLimitNames.join(', ')} to ignore_startup_parameters of PgBouncer`,
    }
  }
  if (state === '08P01' && error.message.includes('statement pooling')) {
    return {
      code: 'ERR_DATABASE_POOLER',
      text: `${error.message}: set pool_mode of PgBouncer to transaction or session`,
    }
  }
  if (!isAway(error)) return undefined
  const { code = '', path } = error as NodeJS.ErrnoException
  if (/CERT|SIGNATURE/.test(code)) {
    return {
      code: 'ERR_DATABASE_CERTIFICATE',
      text: `the certificate of PostgreSQL is not trusted (${error.message}): add sslrootcert=FILE with the certificate of its authority to the address, or correct its host`,
    }
  }
  if (code === 'ENOENT' && path !== undefined) {
    return { code: 'ERR_DATABASE_FILE', text: `${path} does not exist: correct sslrootcert, sslcert or sslkey` }
  }
  return {
    code: 'ERR_DATABASE_AWAY',
    text: `PostgreSQL does not answer (${reasonOf(error)}): start it, or correct database or WEIR_DATABASE_URL`,
  }
}

/** When all addresses of a host fail, the error has no message of its own. */
function reasonOf(error: Error): string {
  if (error.message !== '') return error.message
  const { code, errors } = error as { code?: string; errors?: readonly Error[] }
  return errors?.[0]?.message ?? code ?? error.name
}
