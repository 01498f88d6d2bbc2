import { NEWEST_OF_CODE, type Refusal, type RefusalBatch, type RefusedHour } from './refusals.ts'

/** Refusals that are not in the store yet. Their number is bounded, however many requests are refused. */
export interface PendingRefusals {
  add(refusal: Refusal): void
  /** Removes and returns everything; undefined if there is nothing. */
  take(): RefusalBatch | undefined
  /** Puts back a batch that the store did not accept. */
  putBack(batch: RefusalBatch): void
}

const HOUR_MS = 3_600_000
/** How many pairs of key and code are counted separately per workspace and hour. All others share one key, ''. */
const PAIRS_OF_WORKSPACE = 100
/** Reached only if the store accepts nothing for a long time. Further refusals are not counted. */
const ENTRIES_MAX = 50_000

export function pendingRefusals(): PendingRefusals {
  let hours = new Map<string, { -readonly [Field in keyof RefusedHour]: RefusedHour[Field] }>()
  let newest = new Map<string, Refusal[]>()
  let newestCount = 0
  /** The pairs of key and code that are counted separately in this hour, by workspace. */
  let counted = new Map<string, Set<string>>()
  let currentHour = 0

  function keyToCount({ workspaceId, keyId, code }: Refusal, hour: number): string {
    if (hour !== currentHour) {
      currentHour = hour
      counted = new Map()
    }
    let pairs = counted.get(workspaceId)
    if (!pairs) counted.set(workspaceId, (pairs = new Set()))
    const pair = `${keyId} ${code}`
    if (pairs.has(pair)) return keyId
    if (pairs.size >= PAIRS_OF_WORKSPACE) return ''
    pairs.add(pair)
    return keyId
  }

  function count({ workspaceId, hour, keyId, code, requests }: RefusedHour): void {
    const place = `${hour} ${workspaceId} ${keyId} ${code}`
    const entry = hours.get(place)
    if (entry) entry.requests += requests
    else if (hours.size < ENTRIES_MAX) hours.set(place, { workspaceId, hour, keyId, code, requests })
  }

  function keep(refusal: Refusal): void {
    const place = `${refusal.workspaceId} ${refusal.code}`
    const kept = newest.get(place)
    if (kept && kept.length >= NEWEST_OF_CODE) kept.shift()
    else if (newestCount >= ENTRIES_MAX) return
    else newestCount++
    if (kept) kept.push(refusal)
    else newest.set(place, [refusal])
  }

  return {
    add(refusal) {
      const { workspaceId, code, at } = refusal
      const hour = at - (at % HOUR_MS)
      count({ workspaceId, hour, keyId: keyToCount(refusal, hour), code, requests: 1 })
      keep(refusal)
    },
    take() {
      if (hours.size === 0) return undefined
      const batch = { hours: [...hours.values()], newest: [...newest.values()].flat() }
      hours = new Map()
      newest = new Map()
      newestCount = 0
      return batch
    },
    putBack(batch) {
      const later = [...newest.values()].flat()
      newest = new Map()
      newestCount = 0
      for (const refusal of [...batch.newest, ...later]) keep(refusal)
      for (const hour of batch.hours) count(hour)
    },
  }
}
