import type { EngineDescription, HealthCheck } from '../core/catalog.ts'
import type { DrainedAddresses, Engine } from '../ports/engine.ts'
import { openAddress } from './address.ts'
import { byPrefix, leastBusy } from './balance.ts'
import { deadlines } from './deadlines.ts'
import { watchHealth } from './health.ts'
import type { ServerActivities } from './server-activity.ts'
import { runCall, type Upstream } from './upstream-call.ts'

export interface UpstreamEvents {
  /** An address went down or came back. */
  healthChanged(url: string, healthy: boolean): void
  /** An address failed a call. The reason is for the log, never for the caller. */
  callFailed(url: string, reason: string): void
}

/** What the engines of all deployments share. */
export interface UpstreamSurroundings {
  readonly events: UpstreamEvents
  readonly servers: ServerActivities
  readonly drained: DrainedAddresses
}

/** The OpenAI-compatible servers behind one deployment, called over HTTP(S) or a unix socket. */
export function openUpstream(
  description: EngineDescription,
  { events, servers, drained }: UpstreamSurroundings,
  /** undefined: its health is not watched. */
  check: HealthCheck | undefined,
): Engine {
  const { urls, firstByteTimeoutMs, idleTimeoutMs } = description
  const addresses = urls.map((url) => openAddress(url, idleTimeoutMs, servers, drained))
  const balance = description.balance === 'prefix' ? byPrefix(addresses, description.cacheTokens) : leastBusy(addresses)
  const headers: Record<string, string> = {}
  if (description.apiKey !== undefined) headers['authorization'] = `Bearer ${description.apiKey}`
  const unwatch = check
    ? addresses.map((address) =>
        watchHealth(address, check, headers, (healthy) => {
          if (!healthy) balance.forget(address)
          events.healthChanged(address.url, healthy)
        }),
      )
    : []
  const upstream: Upstream = {
    balance,
    headers,
    firstByte: deadlines(firstByteTimeoutMs),
    callFailed: events.callFailed,
  }
  let retainers = 0
  let onReleased: (() => void) | undefined
  return {
    usable: () => addresses.some((address) => address.healthy && !address.isDrained()),
    addresses: () => addresses.map(({ url, healthy, inFlight }) => ({ url, isUp: healthy, inFlight })),
    retain() {
      retainers++
      return () => {
        retainers--
        if (retainers === 0) onReleased?.()
      }
    },
    run: (call) => runCall(call, upstream),
    async close() {
      for (const stop of unwatch) stop()
      if (retainers > 0) await new Promise<void>((resolve) => (onReleased = resolve))
      await Promise.all(addresses.map((address) => address.close()))
    },
  }
}
