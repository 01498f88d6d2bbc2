import type { DrainedAddresses } from '../ports/engine.ts'
import type { ServerPlace } from './connection.ts'
import { openConnections, type Connections } from './connections.ts'
import { ask, type Question, type QuestionAnswer } from './question.ts'
import { commonLines, requestHead } from './request-head.ts'
import type { ServerActivities, ServerActivity } from './server-activity.ts'

/** One address of an engine: its connections, how busy it is, and whether it answers. */
export interface EngineAddress {
  readonly url: string
  /** Prepended to the path of every call. */
  readonly prefix: string
  /** The lines that the head of every request has, after its first. */
  readonly lines: string
  readonly connections: Connections
  /** Asks for something besides calls. `lines` are further headers. */
  ask(path: string, lines: string, limits: Omit<Question, 'head'>): Promise<QuestionAnswer>
  inFlight: number
  healthy: boolean
  /** It gets no new calls; those that run may finish. */
  isDrained(): boolean
  readonly activity: ServerActivity
  close(): Promise<void>
}

/** Where a server is, and what is prepended to the paths of its operations. */
export interface ParsedAddress {
  readonly origin: string
  readonly prefix: string
  readonly place: ServerPlace
}

/** Accepts `unix:/run/engine.sock`, `unix:/run/engine.sock:/v1` and http(s) URLs. */
export function parseAddress(url: string): ParsedAddress {
  if (url.startsWith('unix:')) {
    const [socketPath = '', prefix = '/v1'] = url.slice('unix:'.length).split(':')
    const place = { host: 'localhost', port: 80, isSecure: false, socketPath }
    return { origin: 'http://localhost', prefix: trimSlash(prefix), place }
  }
  const { origin, pathname, protocol, hostname, port } = new URL(url)
  const isSecure = protocol === 'https:'
  const place = {
    // The brackets around an IPv6 address belong to the URL.
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port) || (isSecure ? 443 : 80),
    isSecure,
  }
  return { origin, prefix: trimSlash(pathname), place }
}

export function openAddress(
  url: string,
  idleTimeoutMs: number,
  servers: ServerActivities,
  drained: DrainedAddresses,
): EngineAddress {
  const { origin, prefix, place } = parseAddress(url)
  const connections = openConnections(place, idleTimeoutMs)
  const { activity, leave } = servers.join(place.socketPath ?? origin)
  const lines = commonLines(new URL(origin).host)
  return {
    url,
    prefix,
    lines,
    connections,
    inFlight: 0,
    healthy: true,
    isDrained: () => drained.has(url),
    activity,
    ask: (path, more, limits) =>
      ask(connections, { head: requestHead('GET', pathAt({ prefix }, path), lines + more), ...limits }),
    async close() {
      leave()
      await connections.close()
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
