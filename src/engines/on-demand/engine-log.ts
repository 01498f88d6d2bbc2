import { createWriteStream, fstatSync, openSync, renameSync, type WriteStream } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'

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

/**
 * A full file becomes `path`.1, in place of the one before. A file that cannot be written does not stop the engine, and
 * is opened again with its next output: the disk may have room by then.
 */
export function engineLog(path: string): EngineLog {
  const decoder = new StringDecoder('utf8')
  let kept = ''
  let size = 0
  let file: WriteStream | undefined

  function open(flags: 'a' | 'w'): void {
    try {
      // Opened at once: after a rename, it would be another file.
      const fd = openSync(path, flags, 0o600)
      size = fstatSync(fd).size
      const stream = createWriteStream(path, { fd })
      stream.on('error', () => {
        if (file === stream) file = undefined
      })
      file = stream
    } catch {
      file = undefined
    }
  }

  function rotate(): void {
    file?.end()
    try {
      renameSync(path, `${path}.1`)
    } catch {
      // The file was removed, or the other name cannot be replaced. The log still starts a new file.
    }
    open('w')
  }

  return {
    write(chunk) {
      kept = (kept + decoder.write(chunk)).slice(-KEPT_CHARACTERS)
      if (!file) open('a')
      if (!file || file.writableLength > MAX_UNWRITTEN_BYTES) return
      file.write(chunk)
      size += chunk.length
      if (size > MAX_FILE_BYTES) rotate()
    },
    // A progress bar writes over its line.
    lastLines: () =>
      kept
        .split(/[\r\n]+/)
        .filter(Boolean)
        .slice(-KEPT_LINES),
    close: () => file?.end(),
  }
}
