import { pino } from 'pino'

/** Writes log lines to a file descriptor in batches. */
export interface LogDestination {
  write(line: string): void
  /** Resolves when every line so far has been written to the descriptor. */
  flush(): Promise<void>
}

const BATCH_CHARACTERS = 16_000
const BATCH_MS = 250
/** Further lines are dropped, so that a stalled reader cannot exhaust the memory of the service. */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024

/**
 * pino's own destination measures and joins its whole buffer for every line, so it gets whole batches instead. It still
 * handles descriptors that are not ready and partial writes.
 */
export function logDestination(descriptor: number): LogDestination {
  // Without a minLength, `flush` would not wait.
  const destination = pino.destination({ dest: descriptor, sync: false, minLength: 1, maxLength: MAX_BUFFERED_BYTES })
  let lines: string[] = []
  let characters = 0
  let timer: NodeJS.Timeout | undefined

  function writeBatch(): void {
    clearTimeout(timer)
    timer = undefined
    if (lines.length === 0) return
    process.off('exit', writeAtExit)
    const batch = lines.join('')
    lines = []
    characters = 0
    destination.write(batch)
  }

  function writeAtExit(): void {
    writeBatch()
    destination.flushSync()
  }

  return {
    write(line) {
      if (lines.length === 0) process.once('exit', writeAtExit)
      lines.push(line)
      characters += line.length
      if (characters >= BATCH_CHARACTERS) writeBatch()
      else timer ??= setTimeout(writeBatch, BATCH_MS)
    },
    flush() {
      writeBatch()
      return new Promise((resolve) => destination.flush(() => resolve()))
    },
  }
}
