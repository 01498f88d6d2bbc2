import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Engine } from '../engines/engine.ts'
import { downloadQueue, type DownloadEnd } from './download-queue.ts'
import { bothStates, modelFiles, type FilesState, type PullProgress, type Removal } from './files/model-files.ts'
import { pullInChild } from './files/pull-in-child.ts'
import { INSTALLATION, runtimeFiles, RUNTIME_NAME } from './files/runtime-files.ts'
import { findModel, hostProgram, manifest, modelBytes, runtimeBytes, whyUnknown } from './installed.ts'
import { embeddedEngine } from './embedded-engine.ts'
import { engineLimits, thisMachine, type Machine } from './machine-limits.ts'
import { engineSupervisor, type SupervisorOptions } from './supervisor.ts'
import type { LoadedModel, ManifestModel, RuntimeName } from '../../packages/local-models/contract.ts'

const POLL_MS = 1000

/** Everything a service needs to run models itself: their files, the hosts that run them, and an engine for each. */
export interface LocalModels {
  /** The engine of a model. `open` connects to the socket of its host. */
  engine(slug: string, open: (socketPath: string) => Engine): Engine
  /**
   * Downloads the runtime, then missing models in this order, and what the operator asked for earlier. In the
   * background, until all are there. What was paused or removed stays so. `events` gets those of every download.
   */
  pullMissing(slugs: readonly string[], events: FetchEvents): void
  /** Starts or resumes the download of a model. Rejects if the disk cannot hold it. */
  download(slug: string): Promise<void>
  pause(slug: string): void
  remove(slug: string): Promise<Removal>
  /** The models that share its files. */
  sharing(slug: string): readonly string[]
  stateOf(slug: string): LocalModelState
  /** Whether what every model needs is installed. */
  runtimeState(): LocalFilesState
  /** What the hosts of this process have in memory, and may have. */
  memory(): Promise<LocalMemory>
  close(): Promise<void>
}

export interface FetchEvents {
  progress(progress: PullProgress): void
  ready(slug: string): void
  failed(slug: string, reason: string): void
  /** It was paused or removed. */
  stopped(slug: string): void
}

export const downloadStates = ['not_downloaded', 'downloading', 'paused', 'ready', 'failed'] as const
export type LocalFilesState = (typeof downloadStates)[number]

export interface LocalModelState {
  readonly state: LocalFilesState
  /** Other downloads are first. */
  readonly isWaiting: boolean
  readonly receivedBytes: number
  readonly problem: string | undefined
}

export interface LocalMemory extends Machine {
  /** Of each runtime. */
  readonly budgetBytes: number
  readonly loaded: Readonly<Record<RuntimeName, readonly LoadedModel[]>>
}

export function localModels(options: {
  readonly directory: string
  readonly environment: NodeJS.ProcessEnv
  readonly log: SupervisorOptions['log']
  readonly installation?: string
}): LocalModels {
  const { directory, environment, installation = INSTALLATION } = options
  const files = modelFiles(directory, { environment })
  const runtime = runtimeFiles({ environment, installation })
  const machine = thisMachine()
  const limits = engineLimits(machine)
  // Short, because a unix socket's path is limited to about 100 characters. The first host that starts creates it.
  const socketDirectory = join(tmpdir(), `weir-${randomUUID()}`)
  const supervisor = engineSupervisor({
    hostProgram,
    socketDirectory,
    modelsDirectory: directory,
    ...limits,
    log: options.log,
  })
  const states = new Map<string, FilesState>()
  let runtimeState: FilesState = 'missing'
  /** Where the events of downloads go. */
  let sink: FetchEvents | undefined
  const queue = downloadQueue(pull)

  // Another process may pull, pause or remove a model. A request must not wait for the disk to find out.
  const looking = setInterval(() => {
    if (states.size > 0) checkRuntime()
    for (const slug of states.keys()) poll(slug)
  }, POLL_MS)
  looking.unref()

  function poll(slug: string): void {
    const [before, now] = [states.get(slug), files.stateOf(slug)]
    states.set(slug, now)
    const model = findModel(slug)
    // Its memory, and the disk space of files that a host has open, are free only after that.
    if (model && before === 'present' && now !== 'present') void supervisor.unload(model.runtime, model.catalog.id)
  }

  /** Stays true once the runtime is there: only another version of the service replaces it. */
  function checkRuntime(): void {
    if (runtimeState !== 'present') runtimeState = runtime.stateOf()
  }

  function requireModel(slug: string): ManifestModel {
    const model = findModel(slug)
    if (!model) throw new Error(whyUnknown(slug))
    return model
  }

  function enqueue(slugs: readonly string[], isAsked: boolean): void {
    if (slugs.length === 0) return
    checkRuntime()
    if (runtimeState !== 'present') queue.add(RUNTIME_NAME, { isAsked })
    for (const slug of slugs) if (!files.isPresent(slug)) queue.add(slug, { isAsked })
  }

  async function pull(name: string, signal: AbortSignal): Promise<DownloadEnd> {
    const isModel = name !== RUNTIME_NAME
    const order = isModel ? { directory, slug: name, environment } : { environment, installation }
    let isReceiving = false
    const onProgress = (progress: PullProgress): void => {
      if (isModel && !isReceiving) remember(name, undefined)
      isReceiving = true
      sink?.progress(progress)
    }
    try {
      await pullInChild(order, { onProgress, signal })
      checkRuntime()
      if (isModel) files.setOrder(name, undefined)
      for (const slug of states.keys()) poll(slug)
      sink?.ready(name)
      return 'done'
    } catch (error) {
      if (signal.aborted) return 'stopped'
      if (isModel && isStopped(name)) {
        sink?.stopped(name)
        return 'stopped'
      }
      const { message } = error as Error
      if (isModel) remember(name, message)
      sink?.failed(name, message)
      return 'failed'
    }
  }

  /** The operator has paused or removed it. */
  const isStopped = (slug: string): boolean => ['pause', 'remove'].includes(files.orderOf(slug) ?? '')

  function remember(slug: string, problem: string | undefined): void {
    try {
      files.setProblem(slug, problem)
    } catch {
      // The directory may be read-only, which is then the problem itself.
    }
  }

  function stop(slug: string): void {
    for (const name of [slug, ...files.sharing(slug)]) {
      queue.drop(name)
      sink?.stopped(name)
    }
  }

  function runtimeNow(): LocalFilesState {
    checkRuntime()
    if (runtimeState === 'present') return 'ready'
    return runtimeState === 'arriving' || queue.has(RUNTIME_NAME) ? 'downloading' : 'not_downloaded'
  }

  return {
    engine(slug, open) {
      const model = requireModel(slug)
      const { id } = model.catalog
      checkRuntime()
      poll(slug)
      return embeddedEngine(open(supervisor.socketPath(model.runtime)), {
        supervisor,
        runtime: model.runtime,
        missingFiles() {
          const state = bothStates(states.get(slug) ?? 'missing', runtimeState)
          if (state === 'present') return undefined
          const isArriving = state === 'arriving' || queue.has(states.get(slug) === 'present' ? RUNTIME_NAME : id)
          const bytes = modelBytes(model) + (runtimeState === 'present' ? 0 : runtimeBytes)
          return { slug: id, bytes, isArriving, isPaused: state === 'paused' }
        },
      })
    },
    pullMissing(slugs, events) {
      sink = events
      const ids = slugs.map((slug) => requireModel(slug).catalog.id)
      enqueue(
        ids.filter((id) => !isStopped(id)),
        false,
      )
      const ordered = manifest.map(({ catalog }) => catalog.id).filter((id) => files.orderOf(id) === 'download')
      enqueue(ordered, true)
    },
    async download(slug) {
      const { id } = requireModel(slug).catalog
      await files.checkSpace(id)
      if (!files.isPresent(id)) files.setOrder(id, 'download')
      enqueue([id], true)
      if (states.has(slug)) poll(slug)
    },
    pause(slug) {
      const { id } = requireModel(slug).catalog
      files.setOrder(id, 'pause')
      stop(id)
    },
    async remove(slug) {
      const { id } = requireModel(slug).catalog
      stop(id)
      try {
        return await files.remove(id)
      } finally {
        for (const known of states.keys()) poll(known)
      }
    },
    sharing: (slug) => files.sharing(slug),
    stateOf(slug) {
      const { id } = requireModel(slug).catalog
      const own = files.stateOf(id)
      const isQueued = queue.has(id)
      const state = own === 'present' ? runtimeNow() : own === 'missing' && isQueued ? 'downloading' : WORDS[own]
      const isWaiting = state === 'downloading' && isQueued && !queue.isRunning(id)
      return { state, isWaiting, receivedBytes: files.receivedBytes(id), problem: files.problemOf(id) }
    },
    runtimeState: runtimeNow,
    async memory() {
      const [onnx, llama] = await Promise.all([supervisor.loaded('onnx'), supervisor.loaded('llama')])
      return { ...machine, budgetBytes: limits.memoryBudgetBytes, loaded: { onnx, llama } }
    },
    async close() {
      queue.close()
      clearInterval(looking)
      await supervisor.stop()
      rmSync(socketDirectory, { recursive: true, force: true })
    },
  }
}

const WORDS = { arriving: 'downloading', paused: 'paused', failed: 'failed', missing: 'not_downloaded' } as const
