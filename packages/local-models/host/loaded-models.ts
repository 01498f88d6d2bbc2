import type { LoadedModel } from '../contract.ts'
import { HostError } from './runtime/host-error.ts'
import type { EngineModel } from './runtime/engine-model.ts'
import type { ModelPool } from './wire/host-call.ts'

export interface LoadableModel {
  readonly slug: string
  readonly expectedBytes: number
  load(): Promise<EngineModel>
}

export interface LoadedModelsOptions {
  /** Throws an HostError if there is no such model, or its files are missing. */
  find(slug: string): LoadableModel
  readonly memoryBudgetBytes: number
  log(message: string): void
}

export interface LoadedModels extends ModelPool {
  list(): LoadedModel[]
  /** Frees the memory of a model. One in use stays until its requests have ended. */
  unload(slug: string): Promise<void>
  memoryBytes(): number
  activeRequests(): number
  close(): Promise<void>
}

interface Slot {
  readonly model: Promise<EngineModel>
  bytes: number
  users: number
  lastUsed: number
  /** Unloaded as soon as it is idle. */
  isLeaving?: true
}

/**
 * The models in memory. A model loads on first use. Over budget, idle models are unloaded, least recently used first. A
 * model in use stays, so one that is larger than the whole budget still runs, alone.
 */
export function loadedModels({ find, memoryBudgetBytes, log }: LoadedModelsOptions): LoadedModels {
  const slots = new Map<string, Slot>()
  let uses = 0

  const memoryBytes = (): number => slots.values().reduce((sum, slot) => sum + slot.bytes, 0)

  async function makeRoom(): Promise<void> {
    while (memoryBytes() > memoryBudgetBytes) {
      const idle = [...slots].filter(([, slot]) => slot.users === 0)
      const [oldest] = idle.sort(([, one], [, other]) => one.lastUsed - other.lastUsed)
      if (!oldest) return
      const [slug, slot] = oldest
      log(`unloading ${slug} to make room`)
      await close(slug, slot)
    }
  }

  async function close(slug: string, slot: Slot): Promise<void> {
    slots.delete(slug)
    await (await slot.model).close()
  }

  async function load(loadable: LoadableModel, slot: Slot): Promise<EngineModel> {
    await makeRoom()
    const startedAt = performance.now()
    const model = await loadable.load()
    slot.bytes = model.memoryBytes
    log(`loaded ${loadable.slug} in ${Math.round(performance.now() - startedAt)} ms`)
    return model
  }

  function slotFor(loadable: LoadableModel): Slot {
    const present = slots.get(loadable.slug)
    if (present) {
      present.users++
      return present
    }
    const busyBytes = slots.values().reduce((sum, slot) => sum + (slot.users > 0 ? slot.bytes : 0), 0)
    if (busyBytes > 0 && busyBytes + loadable.expectedBytes > memoryBudgetBytes) {
      throw new HostError('model_overloaded', `The models in use leave no memory for '${loadable.slug}'.`)
    }
    const { promise, resolve, reject } = Promise.withResolvers<EngineModel>()
    const slot: Slot = { model: promise, bytes: loadable.expectedBytes, users: 1, lastUsed: 0 }
    slots.set(loadable.slug, slot)
    load(loadable, slot).then(resolve, (error: unknown) => {
      slots.delete(loadable.slug)
      reject(error)
    })
    return slot
  }

  return {
    async use(slug, work) {
      const loadable = find(slug)
      const slot = slotFor(loadable)
      try {
        return await work(await slot.model)
      } finally {
        slot.users--
        slot.lastUsed = ++uses
        if (slot.isLeaving && slot.users === 0 && slots.get(loadable.slug) === slot) await close(loadable.slug, slot)
        await makeRoom()
      }
    },
    list: () => [...slots].map(([model, { bytes, users }]) => ({ model, bytes, requests: users })),
    async unload(slug) {
      const slot = slots.get(slug)
      if (!slot) return
      if (slot.users === 0) await close(slug, slot)
      else slot.isLeaving = true
    },
    memoryBytes,
    activeRequests: () => slots.values().reduce((sum, slot) => sum + slot.users, 0),
    async close() {
      const open = [...slots.values()]
      slots.clear()
      await Promise.allSettled(open.map(async (slot) => (await slot.model).close()))
    },
  }
}
