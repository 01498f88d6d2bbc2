import { pino } from 'pino'

/** Where log lines go: to a file descriptor, many at a time. */
export interface LogDestination {
  write(line: string): void
  /** Resolves when every line written so far has left. */
  flush(): Promise<void>
}

const BATCH_CHARACTERS = 16_000
const BATCH_MS = 250
/** A reader that takes nothing, a stalled pipe, must not cost the memory of the service: what is beyond is lost. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024

/**
 * pino's own destination measures and joins all that it holds with each line. Here it gets a whole batch
 * at a time; it knows how to write when a descriptor is not ready or takes a part.
 */
export function logDestination(descriptor: number): LogDestination {
  // Without a least length its `flush` would not wait.
  const destination = pino.destination({ dest: descriptor, sync: false, minLength: 1, maxLength: MAX_WAITING_BYTES })
  let lines: string[] = []
  let characters = 0
  let timer: NodeJS.Timeout | undefined

  function pass(): void {
    clearTimeout(timer)
    timer = undefined
    if (lines.length === 0) return
    process.off('exit', passAtExit)
    const batch = lines.join('')
    lines = []
    characters = 0
    destination.write(batch)
  }

  function passAtExit(): void {
    pass()
    destination.flushSync()
  }

  return {
    write(line) {
      if (lines.length === 0) process.once('exit', passAtExit)
      lines.push(line)
      characters += line.length
      if (characters >= BATCH_CHARACTERS) pass()
      else timer ??= setTimeout(pass, BATCH_MS)
    },
    flush() {
      pass()
      return new Promise((resolve) => destination.flush(() => resolve()))
    },
  }
}
