import { createReadStream } from 'node:fs'
import { Parser, type ReadEntry } from 'tar'

/** Reads one member of a .tgz. Reads no further than that member and keeps only a chunk in memory. */
export async function* tarMemberBytes(tarballPath: string, memberPath: string): AsyncGenerator<Buffer> {
  const file = createReadStream(tarballPath)
  const found = Promise.withResolvers<ReadEntry>()
  let member: ReadEntry | undefined
  const parser = new Parser({
    strict: true,
    filter: (path) => path === memberPath,
    onReadEntry(entry) {
      member = entry
      found.resolve(entry)
    },
  })
  function fail(error: Error): void {
    found.reject(error)
    member?.destroy(error)
  }
  parser.on('error', fail)
  parser.on('end', () => found.reject(new Error(`${memberPath} is not in the package`)))
  file.on('error', fail).pipe(parser)
  try {
    yield* await found.promise
  } finally {
    file.destroy()
  }
}
