import { ApiError } from '../../shared/errors.ts'

/**
 * A cache of values by the hash of a secret. Values in use are in memory; others are looked up. Hashes without a value are
 * cached separately, so that random secrets cannot evict values in use. At most one lookup is in flight at a time, and the
 * next one covers all hashes requested in the meantime, so many callers cause few queries.
 */
export interface KnownByHash<Value> {
  /** Resolves with null if the value does not exist, or no longer exists. */
  find(hash: string): Promise<Value | null>
  forget(hash: string): void
  forgetAll(): void
}

export interface HashSource<Value> {
  /** For error messages, such as "API keys". */
  readonly what: string
  readonly knownMax: number
  /** The values that are valid, by their hash. */
  read(hashes: readonly string[]): Promise<ReadonlyMap<string, Value>>
}

const UNKNOWN_MAX = 10_000
const LOOKUP_MAX = 250
const WAITING_MAX = 10_000

interface Lookup<Value> {
  readonly found: PromiseWithResolvers<Value | null>
  /** The hash was forgotten after the lookup began, so its result cannot be used. */
  isOutdated: boolean
}

export function knownByHash<Value>({ what, knownMax, read }: HashSource<Value>): KnownByHash<Value> {
  const known = recentValues<Value>(knownMax)
  const unknown = recentValues<true>(UNKNOWN_MAX)
  const lookups = new Map<string, Lookup<Value>>()
  /** The hashes whose lookup has not begun. */
  let waiting: string[] = []
  let isReading = false

  async function readWaiting(): Promise<void> {
    if (isReading) return
    isReading = true
    while (waiting.length > 0) {
      const hashes = waiting.slice(0, LOOKUP_MAX)
      waiting = waiting.slice(LOOKUP_MAX)
      await lookUp(hashes)
    }
    isReading = false
  }

  async function lookUp(hashes: readonly string[]): Promise<void> {
    for (const hash of hashes) (lookups.get(hash) as Lookup<Value>).isOutdated = false
    try {
      const found = await read(hashes)
      for (const hash of hashes) settle(hash, found.get(hash))
    } catch (cause) {
      const error = new ApiError('service_unavailable', `The ${what} cannot be looked up now. Try again.`, { cause })
      for (const hash of hashes) take(hash)?.found.reject(error)
    }
  }

  function settle(hash: string, value: Value | undefined): void {
    if (lookups.get(hash)?.isOutdated) return void waiting.push(hash)
    if (value === undefined) unknown.set(hash, true)
    else known.set(hash, value)
    take(hash)?.found.resolve(value ?? null)
  }

  function take(hash: string): Lookup<Value> | undefined {
    const lookup = lookups.get(hash)
    lookups.delete(hash)
    return lookup
  }

  return {
    async find(hash) {
      const remembered = known.get(hash) ?? (unknown.get(hash) ? null : undefined)
      if (remembered !== undefined) return remembered
      const underWay = lookups.get(hash)
      if (underWay) return underWay.found.promise
      if (lookups.size >= WAITING_MAX) {
        throw new ApiError('service_unavailable', `Too many ${what} are being looked up. Try again.`)
      }
      const lookup: Lookup<Value> = { found: Promise.withResolvers(), isOutdated: false }
      lookups.set(hash, lookup)
      waiting.push(hash)
      void readWaiting()
      return lookup.found.promise
    },
    forget(hash) {
      known.delete(hash)
      unknown.delete(hash)
      const lookup = lookups.get(hash)
      if (lookup) lookup.isOutdated = true
    },
    forgetAll() {
      known.clear()
      unknown.clear()
      for (const lookup of lookups.values()) lookup.isOutdated = true
    },
  }
}

/**
 * Keeps at least the `limit / 2` most recently used values, and never more than `limit`. There are two generations:
 * used values move to the younger one, and when that is full, the older one is dropped. So a value in regular use costs
 * one lookup and is never moved.
 */
interface RecentValues<Value> {
  get(name: string): Value | undefined
  set(name: string, value: Value): void
  delete(name: string): void
  clear(): void
}

export function recentValues<Value>(limit: number): RecentValues<Value> {
  let younger = new Map<string, Value>()
  let older = new Map<string, Value>()

  function add(name: string, value: Value): void {
    younger.set(name, value)
    if (younger.size < limit / 2) return
    older = younger
    younger = new Map()
  }

  return {
    get(name) {
      const young = younger.get(name)
      if (young !== undefined) return young
      const old = older.get(name)
      if (old === undefined) return undefined
      add(name, old)
      return old
    },
    set: add,
    delete(name) {
      younger.delete(name)
      older.delete(name)
    },
    clear() {
      younger = new Map()
      older = new Map()
    },
  }
}
