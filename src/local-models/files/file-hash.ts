import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'

export async function fileHash(
  path: string,
  algorithm: 'sha256' | 'sha512',
  encoding: 'hex' | 'base64',
): Promise<string> {
  const hash = createHash(algorithm)
  await pipeline(createReadStream(path), hash)
  return hash.digest(encoding)
}

/** The hash by which git, and so a model hub, names a small file: sha1 over a header and the content. */
export async function gitBlobHash(path: string): Promise<string> {
  const hash = createHash('sha1')
  hash.update(`blob ${(await stat(path)).size}\0`)
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}
