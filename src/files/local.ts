import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { open, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiError } from '../core/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { FileStore } from '../ports/files.ts'
import { contentTypeOf, fileName } from './file-name.ts'

export interface LocalOptions {
  readonly dataDir: string
  /** Where callers reach the public listener. */
  readonly publicUrl: () => string
  readonly linkTtlSeconds: number
  /** All files together. */
  readonly maxBytes: number
}

/** What a file takes at least, so that small ones are bounded in number too. */
const BLOCK_BYTES = 4096
const SWEEP_MS = 60_000
const SWEPT_AT_ONCE = 1000

/**
 * Files in the data directory, behind links that are signed and expire. A file goes when its link does; when
 * the directory is full, nothing new is taken, and no link that was given out breaks.
 */
export function localFiles(options: LocalOptions, clock: Clock): FileStore {
  const { linkTtlSeconds, maxBytes } = options
  const folder = join(options.dataDir, 'files')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const secret = keptSecret(join(options.dataDir, 'link-secret'))
  /** Oldest first: all live equally long. */
  const files = new Map<string, { readonly bytes: number; readonly expiresAt: number }>()
  let total = 0
  recover()
  const sweeper = setInterval(() => void sweep(), Math.min(SWEEP_MS, linkTtlSeconds * 1000)).unref()

  /** What an earlier run left; half-written files and those of others are no files of ours. */
  function recover(): void {
    const found: { name: string; bytes: number; writtenAt: number }[] = []
    for (const name of readdirSync(folder)) {
      const path = join(folder, name)
      if (name.endsWith('.part')) rmSync(path, { force: true })
      if (contentTypeOf(name) === undefined) continue
      const { size, mtimeMs } = statSync(path)
      found.push({ name, bytes: size, writtenAt: mtimeMs })
    }
    found.sort((one, other) => one.writtenAt - other.writtenAt)
    for (const { name, bytes, writtenAt } of found) keep(name, bytes, writtenAt + linkTtlSeconds * 1000)
  }

  function keep(name: string, bytes: number, expiresAt: number): void {
    files.set(name, { bytes: Math.max(BLOCK_BYTES, bytes), expiresAt })
    total += Math.max(BLOCK_BYTES, bytes)
  }

  async function sweep(): Promise<void> {
    const now = clock.now()
    const expired: string[] = []
    for (const [name, { expiresAt }] of files) {
      if (expiresAt > now || expired.length === SWEPT_AT_ONCE) break
      expired.push(name)
    }
    for (const name of expired) await drop(name)
  }

  async function drop(name: string): Promise<void> {
    const file = files.get(name)
    if (!file) return
    files.delete(name)
    await discard(join(folder, name))
    total -= file.bytes
  }

  /** What cannot be deleted now is found by the next start. */
  const discard = (path: string): Promise<void> => rm(path, { force: true }).catch(() => {})

  const sign = (name: string, expires: string): string =>
    createHmac('sha256', secret).update(`${name}\n${expires}`).digest('base64url')

  return {
    async put(bytes, contentType) {
      await sweep()
      if (total + bytes.length > maxBytes) {
        throw new ApiError('service_unavailable', 'The file storage is full. Try again later, or ask for b64_json.')
      }
      const name = fileName(randomBytes(16), contentType)
      const expires = Math.floor(clock.now() / 1000) + linkTtlSeconds
      // Room is taken before it is filled, or many at once would all find it free.
      keep(name, bytes.length, expires * 1000)
      const path = join(folder, name)
      try {
        await writeFile(`${path}.part`, bytes, { mode: 0o600 })
        await rename(`${path}.part`, path)
      } catch (cause) {
        await discard(`${path}.part`)
        await drop(name)
        throw new ApiError('service_unavailable', 'The file could not be stored. Try again, or ask for b64_json.', {
          cause,
        })
      }
      const query = `expires=${expires}&signature=${sign(name, String(expires))}`
      return `${options.publicUrl().replace(/\/+$/, '')}/files/${name}?${query}`
    },
    async open(name, query) {
      const parameters = new URLSearchParams(query)
      const expires = parameters.get('expires') ?? ''
      const contentType = contentTypeOf(name)
      if (contentType === undefined || !isSame(parameters.get('signature') ?? '', sign(name, expires))) {
        throw new ApiError('not_found', 'There is no such file, or the link to it is not complete.')
      }
      const secondsLeft = Math.ceil(Number(expires) - clock.now() / 1000)
      if (secondsLeft <= 0) throw new ApiError('not_found', 'The link has expired. Ask for the image again.')
      // One handle for both, so that a sweep in between cannot cut the answer short.
      const handle = await open(join(folder, name)).catch(() => undefined)
      if (!handle) throw new ApiError('not_found', 'The file is no longer there.')
      const { size: length } = await handle.stat()
      return { contentType, length, secondsLeft, stream: handle.createReadStream() }
    },
    async close() {
      clearInterval(sweeper)
    },
  }
}

/** In a time that does not tell how much was right. */
function isSame(given: string, right: string): boolean {
  const one = Buffer.from(given)
  const other = Buffer.from(right)
  return one.length === other.length && timingSafeEqual(one, other)
}

/** Made once, and kept where only the operator can read it: links outlive a restart. */
function keptSecret(file: string): Buffer {
  try {
    writeFileSync(file, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const secret = Buffer.from(readFileSync(file, 'utf8').trim(), 'hex')
  if (secret.length < 32) throw new Error(`${file} holds no secret; delete it, and a new one is made`)
  return secret
}
