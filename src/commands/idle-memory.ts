import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Long enough to be idle, and short enough that whoever looks at a service that has just started sees what it needs. */
export const IDLE_MS = 3000
/** A larger heap, for example one with a million keys, would hold up a caller for longer than it is worth. */
export const HEAP_MAX_BYTES = 100 * 1024 * 1024

interface Memory {
  heapBytes(): number
  collect(): void
}

const ownMemory: Memory = {
  heapBytes: () => process.memoryUsage().heapUsed,
  collect() {
    setFlagsFromString('--expose-gc')
    // Only a new context has it. A Node without it goes on with its garbage.
    const collect = runInNewContext('globalThis.gc') as ((options: object) => void) | undefined
    setFlagsFromString('--no-expose-gc')
    collect?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  },
}

/**
 * Starting leaves about 35 MB of garbage, most of it in a young generation that has grown for it. V8 would keep them
 * until there is load. So a service that nobody calls when it has started collects once, which takes about 80 ms.
 * Returns a function that cancels this.
 */
export function collectOnceIdle(requestCount: () => number, { heapBytes, collect }: Memory = ownMemory): () => void {
  const before = requestCount()
  const timer = setTimeout(() => {
    if (requestCount() === before && heapBytes() <= HEAP_MAX_BYTES) collect()
  }, IDLE_MS).unref()
  return () => clearTimeout(timer)
}
