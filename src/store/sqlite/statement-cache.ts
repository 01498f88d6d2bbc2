/**
 * A cache that evicts the least recently used values. Callers determine the shape of some statements (a list may have any
 * length), but the statements of the ledger are used all the time and must stay.
 */
export function statementCache<Value>(max: number, make: (key: string) => Value) {
  // A Map keeps the order of insertion, so the first key is the least recently used.
  const kept = new Map<string, Value>()
  return {
    get(key: string): Value {
      const value = kept.get(key) ?? make(key)
      kept.delete(key)
      kept.set(key, value)
      if (kept.size > max) kept.delete(kept.keys().next().value ?? '')
      return value
    },
    size: () => kept.size,
  }
}
