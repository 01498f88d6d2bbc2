import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { availableParallelism, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Engine } from '../../ports/engine.ts'
import { modelFiles, type FilesState, type PullProgress } from '../files/model-files.ts'
import { pullInChild } from '../files/pull-in-child.ts'
import { findModel, modelBytes } from '../manifest/manifest.ts'
import { embeddedEngine } from './embedded-engine.ts'
import { engineLimits } from './machine-limits.ts'
import { engineSupervisor, type SupervisorOptions } from './supervisor.ts'

const LOOK_MS = 1000
const RETRY_MS = 30_000

/** Everything a service needs to run models itself: their files, the hosts that run them, and an engine for each. */
export interface LocalModels {
  knows(slug: string): boolean
  /** The engine of a model. `open` connects to the socket of its host. */
  engine(slug: string, open: (socketPath: string) => Engine): Engine
  /** Fetches missing models in the background, in this order, and tries again until they are there. */
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
}): LocalModels {
  const { directory, environment } = options
  const files = modelFiles(directory, { environment })
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
  /** What this service fetches, or will when others are done. */
  const underway = new Set<string>()

  // Another process may pull or remove a model. A request must not wait for the disk to find out.
  const looking = setInterval(() => {
    for (const slug of states.keys()) look(slug)
  }, LOOK_MS)
  looking.unref()

  function look(slug: string): void {
    states.set(slug, files.stateOf(slug))
  }

  async function pullAll(slugs: readonly string[], events: FetchEvents): Promise<void> {
    const missing = slugs.filter((slug) => !underway.has(slug) && !files.isPresent(slug))
    for (const slug of missing) underway.add(slug)
    for (const slug of missing) {
      while (!stopped.signal.aborted && !(await pull(slug, events))) {
        await sleep(RETRY_MS, undefined, { signal: stopped.signal, ref: false }).catch(() => {})
      }
      underway.delete(slug)
    }
  }

  /** Returns whether it worked. */
  async function pull(slug: string, events: FetchEvents): Promise<boolean> {
    try {
      await pullInChild({ directory, slug, environment }, { onProgress: events.progress, signal: stopped.signal })
      if (states.has(slug)) look(slug)
      events.ready(slug)
      return true
    } catch (error) {
      if (!stopped.signal.aborted) events.failed(slug, (error as Error).message)
      return false
    }
  }

  return {
    knows: (slug) => findModel(slug) !== undefined,
    engine(slug, open) {
      const model = findModel(slug)
      if (!model) throw new Error(`the embedded engine does not know the model "${slug}"`)
      look(slug)
      return embeddedEngine(open(supervisor.socketPath(model.runtime)), {
        supervisor,
        runtime: model.runtime,
        missingFiles() {
          const state = states.get(slug)
          if (state === 'present') return undefined
          const id = model.catalog.id
          return { slug: id, bytes: modelBytes(model), isArriving: state === 'arriving' || underway.has(slug) }
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
