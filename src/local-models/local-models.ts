import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { availableParallelism, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Engine } from '../engines/engine.ts'
import { bothStates, modelFiles, type FilesState, type PullProgress } from './files/model-files.ts'
import { pullInChild } from './files/pull-in-child.ts'
import { INSTALLATION, runtimeFiles, RUNTIME_NAME } from './files/runtime-files.ts'
import { findModel, modelBytes, runtimeBytes, whyUnknown } from './installed.ts'
import { embeddedEngine } from './embedded-engine.ts'
import { engineLimits } from './machine-limits.ts'
import { engineSupervisor, type SupervisorOptions } from './supervisor.ts'

const POLL_MS = 1000
const RETRY_MS = 30_000

/** Everything a service needs to run models itself: their files, the hosts that run them, and an engine for each. */
export interface LocalModels {
  knows(slug: string): boolean
  /** The engine of a model. `open` connects to the socket of its host. */
  engine(slug: string, open: (socketPath: string) => Engine): Engine
  /** Downloads the runtime, then missing models in this order. In the background, until all are there. */
  pullMissing(slugs: readonly string[], events: FetchEvents): void
  close(): Promise<void>
}

export interface FetchEvents {
  progress(progress: PullProgress): void
  ready(slug: string): void
  failed(slug: string, reason: string): void
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
  // Short, because a unix socket's path is limited to about 100 characters. The first host that starts creates it.
  const socketDirectory = join(tmpdir(), `weir-${randomUUID()}`)
  const supervisor = engineSupervisor({
    socketDirectory,
    modelsDirectory: directory,
    ...engineLimits({ cores: availableParallelism(), memoryBytes: totalmem() }),
    log: options.log,
  })
  const stopped = new AbortController()
  const states = new Map<string, FilesState>()
  let runtimeState: FilesState = 'missing'
  /** What this service is downloading, or will when others are done. */
  const underway = new Set<string>()

  // Another process may pull or remove a model. A request must not wait for the disk to find out.
  const looking = setInterval(() => {
    if (states.size > 0) checkRuntime()
    for (const slug of states.keys()) poll(slug)
  }, POLL_MS)
  looking.unref()

  function poll(slug: string): void {
    states.set(slug, files.stateOf(slug))
  }

  /** Stays true once the runtime is there: only another version of the service replaces it. */
  function checkRuntime(): void {
    if (runtimeState !== 'present') runtimeState = runtime.stateOf()
  }

  /** The runtime is first, because no model runs without it. */
  async function pullAll(slugs: readonly string[], events: FetchEvents): Promise<void> {
    if (slugs.length === 0) return
    checkRuntime()
    const needed = runtimeState === 'present' ? [] : [RUNTIME_NAME]
    const missing = [...needed, ...slugs.filter((slug) => !files.isPresent(slug))].filter((it) => !underway.has(it))
    for (const name of missing) underway.add(name)
    for (const name of missing) {
      while (!stopped.signal.aborted && !(await pull(name, events))) {
        await sleep(RETRY_MS, undefined, { signal: stopped.signal, ref: false }).catch(() => {})
      }
      underway.delete(name)
    }
  }

  /** Returns whether it worked. */
  async function pull(name: string, events: FetchEvents): Promise<boolean> {
    const order = name === RUNTIME_NAME ? { environment, installation } : { directory, slug: name, environment }
    try {
      await pullInChild(order, { onProgress: events.progress, signal: stopped.signal })
      checkRuntime()
      if (states.has(name)) poll(name)
      events.ready(name)
      return true
    } catch (error) {
      if (!stopped.signal.aborted) events.failed(name, (error as Error).message)
      return false
    }
  }

  return {
    knows: (slug) => findModel(slug) !== undefined,
    engine(slug, open) {
      const model = findModel(slug)
      if (!model) throw new Error(whyUnknown(slug))
      checkRuntime()
      poll(slug)
      return embeddedEngine(open(supervisor.socketPath(model.runtime)), {
        supervisor,
        runtime: model.runtime,
        missingFiles() {
          const state = bothStates(states.get(slug) ?? 'missing', runtimeState)
          if (state === 'present') return undefined
          const isArriving = state === 'arriving' || underway.has(states.get(slug) === 'present' ? RUNTIME_NAME : slug)
          const bytes = modelBytes(model) + (runtimeState === 'present' ? 0 : runtimeBytes)
          return { slug: model.catalog.id, bytes, isArriving }
        },
      })
    },
    pullMissing: (slugs, events) => void pullAll(slugs, events),
    async close() {
      stopped.abort()
      clearInterval(looking)
      await supervisor.stop()
      rmSync(socketDirectory, { recursive: true, force: true })
    },
  }
}
