import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { open, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { changingByteBudget, type HeldBytes } from '../../shared/byte-budget.ts'
import type { DiskRoom } from '../../shared/disk-room.ts'
import { ApiError } from '../../shared/errors.ts'
import { withoutTrailing } from '../../shared/without-trailing.ts'
import type { Clock } from '../../shared/clock.ts'
import type { FileStore } from './files.ts'
import { contentTypeOf, fileName } from './file-name.ts'

interface LocalFilesOptions {
  readonly dataDir: string
  /** The address at which callers reach the public listener. */
  readonly publicUrl: () => string
  readonly linkTtlSeconds: number
  /** The limit on all files together. Those of one owner get half of it. */
  readonly maxBytes: number
}

/** The minimum size that a file counts for, so that the number of small files is limited too. */
const BLOCK_BYTES = 4096
const SWEEP_MS = 60_000
const MAX_SWEPT = 1000

/**
 * Stores files in the data directory, behind signed links that expire. A file is deleted when its link
 * expires. A full directory or disk accepts no new files, so existing links never break. The files of one owner may use
 * half of the room; those of an earlier run have no owner any more.
 */
export function localFiles(options: LocalFilesOptions, clock: Clock, disk: DiskRoom): FileStore {
  const { linkTtlSeconds, maxBytes } = options
  const folder = join(options.dataDir, 'files')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const secret = readOrCreateSecret(join(options.dataDir, 'link-secret'))
  /** Oldest first, because all have the same lifetime. */
  const files = new Map<string, { readonly held: HeldBytes; readonly expiresAt: number }>()
  const budget = changingByteBudget((held) => {
    const onDisk = held + disk.left()
    return { all: Math.min(maxBytes, onDisk), owner: Math.min(maxBytes / 2, onDisk * disk.ownerShare) }
  })
  recover()
  const sweeper = setInterval(() => void sweep(), Math.min(SWEEP_MS, linkTtlSeconds * 1000)).unref()

  /** Finds the files of an earlier run, and deletes half-written ones. Other files are left alone. */
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
    for (const { name, bytes, writtenAt } of found) {
      const held = budget.open('')
      held.keep(sizeOf(bytes))
      files.set(name, { held, expiresAt: writtenAt + linkTtlSeconds * 1000 })
    }
  }

  async function sweep(): Promise<void> {
    const now = clock.now()
    const expired: string[] = []
    for (const [name, { expiresAt }] of files) {
      if (expiresAt > now || expired.length === MAX_SWEPT) break
      expired.push(name)
    }
    for (const name of expired) await drop(name)
  }

  async function drop(name: string): Promise<void> {
    const file = files.get(name)
    if (!file) return
    files.delete(name)
    await discard(join(folder, name))
    file.held.release()
  }

  /** A file that cannot be deleted now is found again at the next start. */
  const discard = (path: string): Promise<void> => rm(path, { force: true }).catch(() => {})

  const sign = (name: string, expires: string): string =>
    createHmac('sha256', secret).update(`${name}\n${expires}`).digest('base64url')

  return {
    async put(bytes, contentType, owner) {
      await sweep()
      await disk.measure(bytes.length).catch(refuse)
      // Reserve the space before writing, so that concurrent calls cannot exceed the limit.
      const held = budget.open(owner)
      const limit = held.hold(sizeOf(bytes.length))
      if (limit !== undefined) throw full(limit)
      const name = fileName(randomBytes(16), contentType)
      const expires = Math.floor(clock.now() / 1000) + linkTtlSeconds
      files.set(name, { held, expiresAt: expires * 1000 })
      const path = join(folder, name)
      try {
        await disk.write(bytes.length, () => writeFile(`${path}.part`, bytes, { mode: 0o600 }))
        await rename(`${path}.part`, path)
      } catch (cause) {
        await discard(`${path}.part`)
        await drop(name)
        refuse(cause)
      }
      const query = `expires=${expires}&signature=${sign(name, String(expires))}`
      return `${withoutTrailing(options.publicUrl(), '/')}/files/${name}?${query}`
    },
    async open(name, query) {
      const parameters = new URLSearchParams(query)
      const expires = parameters.get('expires') ?? ''
      const contentType = contentTypeOf(name)
      if (contentType === undefined || !isSame(parameters.get('signature') ?? '', sign(name, expires))) {
        throw new ApiError('not_found', 'There is no such file, or the link to it is incomplete.')
      }
      const secondsLeft = Math.ceil(Number(expires) - clock.now() / 1000)
      if (secondsLeft <= 0) throw new ApiError('not_found', 'The link has expired. Ask for the image again.')
      // One handle for both, so that a sweep in between cannot truncate the answer.
      const handle = await open(join(folder, name)).catch(() => undefined)
      if (!handle) throw new ApiError('not_found', 'The file no longer exists.')
      const { size: length } = await handle.stat()
      return { contentType, length, secondsLeft, stream: handle.createReadStream() }
    },
    async close() {
      clearInterval(sweeper)
    },
  }
}

const sizeOf = (bytes: number): number => Math.max(BLOCK_BYTES, bytes)

function full(limit: 'share' | 'budget'): ApiError {
  const message =
    limit === 'share' ? 'This workspace has used its share of the file storage.' : 'The file storage is full.'
  return new ApiError('service_unavailable', `${message} Try again later, or ask for b64_json.`)
}

function refuse(cause: unknown): never {
  throw new ApiError('service_unavailable', 'The file could not be stored. Try again, or ask for b64_json.', { cause })
}

/** Compares in constant time. */
function isSame(given: string, right: string): boolean {
  const one = Buffer.from(given)
  const other = Buffer.from(right)
  return one.length === other.length && timingSafeEqual(one, other)
}

/** Created once, readable only by the operator, and kept so that links survive a restart. */
function readOrCreateSecret(file: string): Buffer {
  // A full disk may have left an empty file.
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0) {
    writeFileSync(`${file}.part`, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flush: true })
    renameSync(`${file}.part`, file)
  }
  const secret = Buffer.from(readFileSync(file, 'utf8').trim(), 'hex')
  if (secret.length < 32) throw new Error(`${file} is damaged; delete it, and a new secret is created`)
  return secret
}
