import { rm } from 'node:fs/promises'
import type { ModelFile } from '../../../packages/local-models/contract.ts'
import { download, sizeOf, type FileAddress } from './download.ts'
import type { Fetching } from './fetching.ts'
import { fileHash } from './file-hash.ts'

/** Throws if the file is not the expected one. */
type Check = (path: string) => Promise<void>

/** Downloads a file and deletes it if it fails the check. */
export async function downloadChecked(
  address: FileAddress,
  { partPath, onBytes, signal }: Pick<Fetching, 'partPath' | 'onBytes' | 'signal'>,
  check: Check,
): Promise<void> {
  const wasResumed = (await sizeOf(partPath)) > 0
  await download({ ...address, partPath, onBytes, signal })
  try {
    await checkOrDelete(partPath, check)
  } catch (error) {
    if (!wasResumed) throw error
    // The existing part may have been damaged: start over once.
    await download({ ...address, partPath, onBytes, signal })
    await checkOrDelete(partPath, check)
  }
}

export async function checkOrDelete(path: string, check: Check): Promise<void> {
  try {
    await check(path)
  } catch (error) {
    await rm(path, { force: true })
    throw error
  }
}

export async function checkPinned(path: string, { sha256 }: ModelFile): Promise<void> {
  if (sha256 === undefined) throw new Error('a file from this source needs a pinned sha256')
  const actual = await fileHash(path, 'sha256', 'hex')
  if (actual !== sha256) throw new Error(`wrong sha256: expected ${sha256}, got ${actual}`)
}
