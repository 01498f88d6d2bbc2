import type { Change, ChangeFeed } from './change-feed.ts'

/** The change feed of a single process. */
export function memoryChanges(): ChangeFeed {
  const subscribers = new Map<Change, Set<() => Promise<void>>>()

  return {
    async announce(change) {
      await Promise.all([...(subscribers.get(change) ?? [])].map((reload) => reload()))
      return []
    },
    subscribe(change, reload) {
      const all = subscribers.get(change) ?? new Set()
      subscribers.set(change, all.add(reload))
      return () => all.delete(reload)
    },
  }
}
