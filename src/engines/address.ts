import { Pool, type Dispatcher } from 'undici'
import type { DrainedAddresses } from '../ports/engine.ts'
import type { ServerActivities, ServerActivity } from './server-activity.ts'

/** One address of an engine: its connections, how busy it is, and whether it answers. */
export interface EngineAddress {
  readonly url: string
  /** Prepended to the path of every call. */
  readonly prefix: string
  readonly pool: Dispatcher
  inFlight: number
  healthy: boolean
  /** It gets no new calls; those that run may finish. */
  isDrained(): boolean
  readonly activity: ServerActivity
  close(): Promise<void>
}

/** Accepts `unix:/run/engine.sock`, `unix:/run/engine.sock:/v1` and http(s) URLs. */
export function parseAddress(url: string): { origin: string; prefix: string; socketPath?: string } {
  if (url.startsWith('unix:')) {
    const [socketPath = '', prefix = '/v1'] = url.slice('unix:'.length).split(':')
    return { origin: 'http://localhost', prefix: trimSlash(prefix), socketPath }
  }
  const { origin, pathname } = new URL(url)
  return { origin, prefix: trimSlash(pathname) }
}

export function openAddress(
  url: string,
  idleTimeoutMs: number,
  servers: ServerActivities,
  drained: DrainedAddresses,
): EngineAddress {
  const { origin, prefix, socketPath } = parseAddress(url)
  const pool = new Pool(origin, {
    ...(socketPath === undefined ? {} : { socketPath }),
    connectTimeout: 5000,
    // A call has one deadline for all of its addresses: see upstream-call.ts.
    headersTimeout: 0,
    bodyTimeout: idleTimeoutMs,
    // Most engines run on uvicorn, which closes an idle connection after 5 s.
    keepAliveTimeout: 4000,
    allowH2: false,
  })
  const { activity, leave } = servers.join(socketPath ?? origin)
  return {
    url,
    prefix,
    pool,
    inFlight: 0,
    healthy: true,
    isDrained: () => drained.has(url),
    activity,
    async close() {
      leave()
      await pool.close()
    },
  }
}

/** Some servers have operations outside their OpenAI-compatible path. Two slashes mean the root. */
export function pathAt(address: Pick<EngineAddress, 'prefix'>, path: string): string {
  return path.startsWith('//') ? path.slice(1) : address.prefix + path
}

export function callStarts(address: EngineAddress): void {
  address.inFlight++
  address.activity.inFlight++
}

/** The server said something in a good answer. */
export function callSpeaks({ activity }: EngineAddress): void {
  activity.signsOfLife++
  activity.isInDoubt = false
}

/** `isFailure`: the server gave no answer, or broke it off. */
export function callEnds(address: EngineAddress, isFailure: boolean): void {
  address.inFlight--
  address.activity.inFlight--
  if (isFailure) address.activity.isInDoubt = true
}

function trimSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path
}
