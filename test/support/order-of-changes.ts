import { setImmediate } from 'node:timers/promises'
import type { Change, ChangeFeed } from '../../src/cluster/changes/change-feed.ts'

/**
 * A store and a change feed that note in one list when a write has ended, and when an announcement began and ended. A replica
 * that is notified reads at once, so a write that ends after its announcement began would be missed.
 */
export function orderOfChanges<Store extends object>(store: Store, writes: readonly (keyof Store & string)[]) {
  const steps: string[] = []
  const subscribers = new Map<Change, Set<() => Promise<void>>>()
  const changes: ChangeFeed = {
    async announce(change) {
      steps.push(`announce ${change}`)
      for (const reload of subscribers.get(change) ?? []) await reload()
      await setImmediate()
      steps.push('announced')
      return []
    },
    subscribe(change, reload) {
      const all = subscribers.get(change) ?? new Set()
      subscribers.set(change, all.add(reload))
      return () => all.delete(reload)
    },
  }
  const noted = writes.map((name) => {
    const write = store[name] as (...args: readonly unknown[]) => Promise<unknown>
    return [
      name,
      async (...args: readonly unknown[]) => {
        const result = await write(...args)
        await setImmediate()
        steps.push(name)
        return result
      },
    ] as const
  })
  /** What happened until this call has resolved. */
  async function during(call: () => Promise<unknown>): Promise<readonly string[]> {
    steps.length = 0
    await call()
    return [...steps]
  }
  return { store: { ...store, ...Object.fromEntries(noted) }, changes, during }
}
