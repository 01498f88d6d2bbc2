import type { Clock } from '../shared/clock.ts'
import type { BatchStore, WrittenResult } from './batch-store.ts'

/** Writes the results of lines that end at about the same time in one transaction. */
export interface ResultWriter {
  /** Resolves when the result is durable. False: the range has been claimed again, and nothing was written. */
  write(result: WrittenResult): Promise<boolean>
  /** Resolves when the stored result is final. */
  complete(result: WrittenResult): Promise<void>
}

const MAX_AT_ONCE = 100

interface Waiting {
  readonly result: WrittenResult
  resolve(isWritten: boolean): void
  reject(error: unknown): void
}

export function resultWriter(store: Pick<BatchStore, 'writeResults' | 'completeResults'>, clock: Clock): ResultWriter {
  const writing = inTurn((results) => store.writeResults(results, clock.now()))
  const completing = inTurn(async (results) => {
    await store.completeResults(results, clock.now())
    return results.map(() => true)
  })
  return { write: writing, complete: async (result) => void (await completing(result)) }
}

/** While one transaction runs, the next one collects. */
function inTurn(
  write: (results: readonly WrittenResult[]) => Promise<readonly boolean[]>,
): (result: WrittenResult) => Promise<boolean> {
  let waiting: Waiting[] = []
  let isWriting = false

  async function writeAll(): Promise<void> {
    isWriting = true
    while (waiting.length > 0) {
      const group = waiting.slice(0, MAX_AT_ONCE)
      waiting = waiting.slice(MAX_AT_ONCE)
      try {
        const written = await write(group.map(({ result }) => result))
        for (const [index, { resolve }] of group.entries()) resolve(written[index] ?? false)
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
    }
    isWriting = false
  }

  return (result) =>
    new Promise((resolve, reject) => {
      waiting.push({ result, resolve, reject })
      if (!isWriting) void writeAll()
    })
}
