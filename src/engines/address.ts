import { openClient, type Client, type ServerPlace } from './http-client/index.ts'
import type { DrainedAddresses } from '../catalog/lane-settings-store.ts'
import { queryEngine, type EngineQuery, type EngineQueryAnswer } from './engine-query.ts'
import type { ServerActivities, ServerActivity } from './server-activity.ts'

/** One address of an engine: its client, its load, and whether it is up. */
export interface EngineAddress {
  readonly url: string
  /** Prepended to the path of every call. */
  readonly prefix: string
  readonly client: Client
  /** Sends a request other than a call. `lines` are headers. */
  query(path: string, lines: string, limits: Omit<EngineQuery, 'path' | 'lines'>): Promise<EngineQueryAnswer>
  inFlight: number
  healthy: boolean
  /** It gets no new calls; running calls may finish. */
  isDrained(): boolean
  readonly activity: ServerActivity
  close(): Promise<void>
}

/** The location of a server, and the prefix for the paths of its operations. */
export interface ParsedAddress extends ServerPlace {
  readonly prefix: string
}

/** Accepts `unix:/run/engine.sock`, `unix:/run/engine.sock:/v1` and http(s) URLs. */
export function parseAddress(url: string): ParsedAddress {
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
  const client = openClient({ origin, socketPath }, idleTimeoutMs)
  const { activity, leave } = servers.join(socketPath ?? origin)
  return {
    url,
    prefix,
    client,
    inFlight: 0,
    healthy: true,
    isDrained: () => drained.has(url),
    activity,
    query: (path, lines, limits) => queryEngine(client, { path: pathAt({ prefix }, path), lines, ...limits }),
    close() {
      leave()
      return client.close()
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

/** The server sent part of a successful answer. */
export function callShowsLife({ activity }: EngineAddress): void {
  activity.signsOfLife++
  activity.isInDoubt = false
}

/** `isFailure`: the server sent no answer, or broke it off. */
export function callEnds(address: EngineAddress, isFailure: boolean): void {
  address.inFlight--
  address.activity.inFlight--
  if (isFailure) address.activity.isInDoubt = true
}

function trimSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path
}
