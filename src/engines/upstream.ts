import type { EngineDescription, EngineKind, EngineQuestions, Deployment } from '../catalog/model.ts'
import { deadlines, headerLines } from './http-client/index.ts'
import { adapterLoads } from './adapter-loads.ts'
import type { Engine, EngineAddressState } from './engine.ts'
import type { DrainedAddresses } from '../catalog/lane-settings-store.ts'
import { openAddress, type EngineAddress } from './address.ts'
import { byPrefix, leastBusy } from './balance.ts'
import { watchHealth } from './health.ts'
import { openLoadReader, watchCacheSize } from './server-reports.ts'
import type { ServerActivities } from './server-activity.ts'
import { runCall, type Upstream } from './upstream-call.ts'

export interface UpstreamEvents {
  /** An address went down or recovered. */
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

/** Used if neither the catalog nor the server gives one. An overestimate does no harm. */
const UNKNOWN_CACHE_TOKENS = 500_000

/** The OpenAI-compatible servers behind one deployment, called over HTTP(S) or a unix socket. */
export function openUpstream(
  description: EngineDescription,
  { events, servers, drained }: UpstreamSurroundings,
  { health, cacheSize, load, adapters: loading, takesRequestIds = true }: EngineQuestions,
): Engine {
  const { urls, firstByteTimeoutMs, idleTimeoutMs } = description
  const addresses = urls.map((url) => openAddress(url, idleTimeoutMs, servers, drained))
  const isByPrefix = description.balance === 'prefix'
  const cacheTokens = addresses.map(() => description.cacheTokens ?? UNKNOWN_CACHE_TOKENS)
  const balance = isByPrefix
    ? byPrefix(addresses, description.cacheTokens ?? UNKNOWN_CACHE_TOKENS)
    : leastBusy(addresses)
  const { apiKey, kind } = description
  const lines = headerLines(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` })
  const caches = cacheSize
    ? addresses.map((address, index) =>
        watchCacheSize(address, cacheSize, lines, (tokens) => {
          cacheTokens[index] = tokens
          balance.resize(address, tokens)
        }),
      )
    : []
  const adapters = loading && adapterLoads(loading, lines)
  const loads = load ? addresses.map((address) => openLoadReader(address, { kind, question: load, lines })) : []
  /** The server is down, or was restarted. */
  function forget(address: EngineAddress): void {
    balance.forget(address)
    adapters?.forget(address)
  }
  const unwatch = health
    ? addresses.map((address, index) =>
        watchHealth(address, health, lines, (healthy) => {
          if (healthy) caches[index]?.pollAgain()
          else forget(address)
          events.healthChanged(address.url, healthy)
        }),
      )
    : []
  const upstream: Upstream = {
    balance,
    adapters,
    forget,
    lines,
    takesRequestIds,
    firstByte: deadlines(firstByteTimeoutMs),
    callFailed: events.callFailed,
  }
  let retainers = 0
  let onReleased: (() => void) | undefined
  return {
    usable: () => addresses.some((address) => address.healthy && !address.isDrained()),
    addresses: () =>
      addresses.map(({ url, healthy, inFlight }, index) => ({
        url,
        isUp: healthy,
        inFlight,
        cacheTokens: isByPrefix ? cacheTokens[index] : undefined,
        load: loads[index]?.load(),
      })),
    readLoad: async () => void (await Promise.all(loads.map((it) => it.read()))),
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
      for (const watch of caches) watch.stop()
      if (retainers > 0) await new Promise<void>((resolve) => (onReleased = resolve))
      await Promise.all(addresses.map((address) => address.close()))
    },
  }
}

/** The engines of all deployments. */
export interface EngineSet {
  of(deployment: Deployment): Engine | undefined
  /** The addresses of all engines, by lane. */
  addresses(): Iterable<readonly [lane: string, address: EngineAddressState]>
  /** Asks all servers for their load, for `addresses`. */
  readLoads(): Promise<void>
  /** undefined if the lane has no engine. */
  kindOf(lane: string): EngineKind | undefined
  /** Applies a new catalog. An engine whose description did not change stays open. */
  update(deployments: readonly Deployment[]): void
  close(): Promise<void>
}

export function engineSet(open: (description: EngineDescription, lane: string) => Engine): EngineSet {
  let current = new Map<string, { readonly description: string; readonly kind: EngineKind; readonly engine: Engine }>()
  return {
    of: (deployment) => current.get(deployment.lane)?.engine,
    kindOf: (lane) => current.get(lane)?.kind,
    *addresses() {
      for (const [lane, { engine }] of current) for (const address of engine.addresses()) yield [lane, address]
    },
    async readLoads() {
      await Promise.all([...current.values()].map(async ({ engine }) => engine.readLoad?.()))
    },
    update(deployments) {
      const next: typeof current = new Map()
      for (const { lane, engine: description } of deployments) {
        if (!description) continue
        const text = JSON.stringify(description)
        const same = current.get(lane)
        const keep = same?.description === text ? same : undefined
        next.set(lane, keep ?? { description: text, kind: description.kind, engine: open(description, lane) })
      }
      for (const [lane, old] of current) if (next.get(lane) !== old) void old.engine.close()
      current = next
    },
    async close() {
      await Promise.all([...current.values()].map(({ engine }) => engine.close()))
    },
  }
}
