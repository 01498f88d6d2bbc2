/**
 * Keeps at least the `limit / 2` most recently used values, and never more than `limit`. There are two generations:
 * used values move to the younger one, and when that is full, the older one is dropped. So a value in regular use costs
 * one lookup and is never moved.
 */
export interface RecentValues<Value> {
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
