/** Caches formatted labels, which are few and used constantly: the catalog and the error table bound their number. */
export function memo<Key, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const cache = new Map<Key, Value>()
  return (key) => {
    let value = cache.get(key)
    if (value === undefined) cache.set(key, (value = make(key)))
    return value
  }
}
