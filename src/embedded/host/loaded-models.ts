import { EngineError } from './runtime/engine-model.ts'
import type { EngineModel } from './runtime/engine-model.ts'
import type { ModelPool } from './wire/exchange.ts'

export interface LoadableModel {
  slug: string
  expectedBytes: number
  load: () => Promise<EngineModel>
}

export interface LoadedModelsOptions {
  /** Throws what the caller should be told when there is no such model, or not yet. */
  find: (slug: string) => LoadableModel
  memoryBudgetBytes: number
  log: (message: string) => void
}

export interface LoadedModels extends ModelPool {
  loadedSlugs(): string[]
  memoryBytes(): number
  activeRequests(): number
  close(): Promise<void>
}

interface Slot {
  model: Promise<EngineModel>
  bytes: number
  users: number
  lastUsed: number
}

/**
 * Models in memory. They load on first use; when the budget is passed, idle ones go, least recently used first. A model
 * in use never goes, so one that is larger than the whole budget still runs, alone.
 */
export function loadedModels({ find, memoryBudgetBytes, log }: LoadedModelsOptions): LoadedModels {
  const slots = new Map<string, Slot>()
  let uses = 0

  const memoryBytes = () => slots.values().reduce((sum, slot) => sum + slot.bytes, 0)

  async function makeRoom(): Promise<void> {
    while (memoryBytes() > memoryBudgetBytes) {
      const idle = [...slots].filter(([, slot]) => slot.users === 0).sort(([, a], [, b]) => a.lastUsed - b.lastUsed)[0]
      if (!idle) return
      slots.delete(idle[0])
      log(`unloading ${idle[0]} to make room`)
      await (await idle[1].model).close()
    }
  }

  async function load(wanted: LoadableModel, slot: Slot): Promise<EngineModel> {
    await makeRoom()
    const started = performance.now()
    const model = await wanted.load()
    slot.bytes = model.memoryBytes
    log(`loaded ${wanted.slug} in ${Math.round(performance.now() - started)} ms`)
    return model
  }

  function hold(wanted: LoadableModel): Slot {
    const present = slots.get(wanted.slug)
    if (present) {
      present.users++
      return present
    }
    const busyBytes = slots.values().reduce((sum, slot) => sum + (slot.users > 0 ? slot.bytes : 0), 0)
    if (busyBytes > 0 && busyBytes + wanted.expectedBytes > memoryBudgetBytes) {
      throw new EngineError(503, 'model_overloaded', `Not enough memory for '${wanted.slug}' beside the models in use.`)
    }
    const { promise, resolve, reject } = Promise.withResolvers<EngineModel>()
    const slot: Slot = { model: promise, bytes: wanted.expectedBytes, users: 1, lastUsed: 0 }
    slots.set(wanted.slug, slot)
    load(wanted, slot).then(resolve, (error: unknown) => {
      slots.delete(wanted.slug)
      reject(error)
    })
    return slot
  }

  return {
    async use(slug, work) {
      const slot = hold(find(slug))
      try {
        return await work(await slot.model)
      } finally {
        slot.users--
        slot.lastUsed = ++uses
        await makeRoom()
      }
    },
    loadedSlugs: () => [...slots.keys()],
    memoryBytes,
    activeRequests: () => slots.values().reduce((sum, slot) => sum + slot.users, 0),
    async close() {
      const open = [...slots.values()]
      slots.clear()
      await Promise.allSettled(open.map(async (slot) => (await slot.model).close()))
    },
  }
}
