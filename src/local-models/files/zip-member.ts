import { promisify } from 'node:util'
import { open, type Entry, type Options, type ZipFile } from 'yauzl'

const openArchive = promisify<string, Options, ZipFile>(open)

/** Reads one member of a zip archive, such as a Python wheel. Keeps only a chunk in memory. */
export async function* zipMemberBytes(archivePath: string, memberPath: string): AsyncGenerator<Buffer> {
  const archive = await openArchive(archivePath, { lazyEntries: true, autoClose: false })
  try {
    const entry = await findEntry(archive, memberPath)
    const bytes = await promisify(archive.openReadStream.bind(archive))(entry)
    yield* bytes as AsyncIterable<Buffer>
  } finally {
    archive.close()
  }
}

function findEntry(archive: ZipFile, memberPath: string): Promise<Entry> {
  return new Promise((resolve, reject) => {
    archive.on('error', reject)
    archive.on('end', () => reject(new Error(`${memberPath} is not in the package`)))
    archive.on('entry', (entry: Entry) => (entry.fileName === memberPath ? resolve(entry) : archive.readEntry()))
    archive.readEntry()
  })
}
