import { createWriteStream, renameSync, statSync, type WriteStream } from 'node:fs'

/** What an engine prints, in a file of bounded size. The last lines are kept in memory for the operator. */
export interface EngineLog {
  write(chunk: Buffer): void
  lastLines(): readonly string[]
  close(): void
}

const MAX_FILE_BYTES = 8 * 2 ** 20
/** If the disk is this far behind, output is dropped: the engine must not wait for it. */
const MAX_UNWRITTEN_BYTES = 2 ** 20
const KEPT_CHARACTERS = 8000
const KEPT_LINES = 20

/** A full file becomes `path`.1, in place of the one before. A file that cannot be written does not stop the engine. */
export function engineLog(path: string): EngineLog {
  let kept = ''
  let size = sizeOf(path)
  let file: WriteStream | undefined = open()

  function open(): WriteStream {
    const stream = createWriteStream(path, { flags: 'a', mode: 0o600 })
    stream.on('error', () => {
      if (file === stream) file = undefined
    })
    return stream
  }

  function rotate(): void {
    file?.end()
    try {
      renameSync(path, `${path}.1`)
      file = open()
    } catch {
      file = undefined
    }
    size = 0
  }

  return {
    write(chunk) {
      kept = (kept + chunk.toString()).slice(-KEPT_CHARACTERS)
      if (!file || file.writableLength > MAX_UNWRITTEN_BYTES) return
      file.write(chunk)
      size += chunk.length
      if (size > MAX_FILE_BYTES) rotate()
    },
    lastLines: () => kept.split('\n').filter(Boolean).slice(-KEPT_LINES),
    close: () => file?.end(),
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
