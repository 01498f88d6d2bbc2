import { RefusedWrite } from '../../core/refused-write.ts'
import { timeLimitNames } from './time-limits.ts'

/** What an error of PostgreSQL means, by its SQLSTATE; or of the connection to it, which has none. */

const stateOf = (error: unknown): string => {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : ''
}

/**
 * Values that will never be taken: data exceptions (22), integrity constraints (23), and statements that PostgreSQL
 * finds too large (54). Everything else may be over by the next try.
 */
function refusesValues(error: unknown): boolean {
  return /^(22|23|54)/.test(stateOf(error))
}

/**
 * Whether nobody answers any more: no SQLSTATE at all, a lost connection (08), a server that starts or
 * stops (57P), or one that ended a transaction which stood still (25P03).
 */
export function isAway(error: unknown): boolean {
  return !(error instanceof RefusedWrite) && /^$|^08|^57P|^25P03/.test(stateOf(error))
}

/** The error to hand on: a refused write, or one line that says what to do. `address` has no password. */
export function explained(error: unknown, address: string): Error {
  const it = error instanceof Error ? error : new Error(String(error))
  if (it instanceof RefusedWrite) return it
  if (refusesValues(it)) return new RefusedWrite(it.message, { cause: it })
  if ((it as NodeJS.ErrnoException).code?.startsWith('ERR_DATABASE_')) return it
  const advice = adviceFor(it)
  return advice === undefined ? it : databaseFailure(advice.code, `${address}: ${advice.text}`, it)
}

/** Something an operator can put right: it has a code, so that it is shown without a stack. */
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
  // PgBouncer says everything with this state, also that PostgreSQL is away.
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

/** Several addresses of one name fail with an error that has no message of its own. */
function reasonOf(error: Error): string {
  if (error.message !== '') return error.message
  const { code, errors } = error as { code?: string; errors?: readonly Error[] }
  return errors?.[0]?.message ?? code ?? error.name
}
