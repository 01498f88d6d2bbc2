import type { Clock } from '../shared/clock.ts'
import type { BatchStore, WrittenResult } from './batch-store.ts'

/** Writes what happens to lines at about the same time in one transaction. */
export interface ResultWriter {
  /** Resolves when the result is durable. False: the range has been claimed again, and nothing was written. */
  write(result: WrittenResult): Promise<boolean>
  /** Resolves when the stored result is final. */
  complete(result: WrittenResult): Promise<void>
}

const MAX_AT_ONCE = 100

interface Waiting {
  readonly result: WrittenResult
  readonly isStored: boolean
  resolve(isWritten: boolean): void
  reject(error: unknown): void
}

export function resultWriter(store: Pick<BatchStore, 'writeResults'>, clock: Clock): ResultWriter {
  let waiting: Waiting[] = []
  let isWriting = false

  /** While one transaction runs, the next one collects. */
  async function writeAll(): Promise<void> {
    isWriting = true
    while (waiting.length > 0) {
      const group = waiting.slice(0, MAX_AT_ONCE)
      waiting = waiting.slice(MAX_AT_ONCE)
      await writeGroup(group)
    }
    isWriting = false
  }

  async function writeGroup(group: readonly Waiting[]): Promise<void> {
    const { stored = [], fresh = [] } = Object.groupBy(group, ({ isStored }) => (isStored ? 'stored' : 'fresh'))
    const resultsOf = (some: readonly Waiting[]): readonly WrittenResult[] => some.map(({ result }) => result)
    try {
      const written = await store.writeResults(resultsOf(fresh), resultsOf(stored), clock.now())
      for (const [index, { resolve }] of fresh.entries()) resolve(written[index] ?? false)
      for (const { resolve } of stored) resolve(true)
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }

  const add = (result: WrittenResult, isStored: boolean): Promise<boolean> =>
    new Promise((resolve, reject) => {
      waiting.push({ result, isStored, resolve, reject })
      if (!isWriting) void writeAll()
    })

  return {
    write: (result) => add(result, false),
    complete: async (result) => void (await add(result, true)),
  }
}
