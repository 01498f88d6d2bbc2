import type { Change, ChangeFeed } from '../ports/changes.ts'

/** The change feed of a single process. */
export function memoryChanges(): ChangeFeed {
  const subscribers = new Map<Change, Set<() => Promise<void>>>()

  return {
    async announce(change) {
      await Promise.all([...(subscribers.get(change) ?? [])].map((takeIn) => takeIn()))
      return []
    },
    subscribe(change, takeIn) {
      const all = subscribers.get(change) ?? new Set()
      subscribers.set(change, all.add(takeIn))
      return () => all.delete(takeIn)
    },
  }
}
