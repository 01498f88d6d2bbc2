/**
 * Keeps what was made for the keys used most recently. Callers choose the shape of some statements (a list may have any
 * length), so only those used least recently may go: the statements of the ledger are needed all the time.
 */
export function statementCache<Value>(max: number, make: (key: string) => Value) {
  // A Map remembers the order of insertion: the first key is the one used least recently.
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
