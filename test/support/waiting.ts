import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Polls a condition until it holds. On timeout, the error names the condition. The pause between two polls is six times as
 * long as a poll takes: some conditions run commands, and polling them without a pause would starve the process under test.
 */
export async function eventually(what: string, isSo: () => boolean | Promise<boolean>, ms = 10_000): Promise<void> {
  const until = performance.now() + ms
  for (;;) {
    const from = performance.now()
    if (await isSo()) return
    if (performance.now() > until) throw new Error(`not within ${ms} ms: ${what}`)
    await sleep(5 + 6 * (performance.now() - from))
  }
}

/** The promise's value, or a failure that says what did not happen. */
export async function within<Value>(ms: number, what: string, promise: Promise<Value>): Promise<Value> {
  const timer = Promise.withResolvers<never>()
  const handle = setTimeout(() => timer.reject(new Error(`not within ${ms} ms: ${what}`)), ms)
  try {
    return await Promise.race([promise, timer.promise])
  } finally {
    clearTimeout(handle)
  }
}

/** A promise that a test resolves when it is time. */
export interface Gate {
  readonly opened: Promise<void>
  open(): void
}

export function gate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opened: promise, open: resolve }
}
