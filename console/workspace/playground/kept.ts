import { signal, type ReadonlySignal } from '@preact/signals'
import { createStore, delMany, get, set, update } from 'idb-keyval'
import { session } from '../session.ts'

/**
 * What the playground keeps in this browser, and nowhere else: for each workspace the newest things, bounded in number
 * and in size. The oldest are dropped first.
 */

export interface KeptEntry<Facts> {
  readonly id: string
  readonly at: number
  /** Characters of the value as JSON. */
  readonly size: number
  readonly facts: Facts
}

export interface Keeper<Facts, Value> {
  /** Counts the changes that this page made. */
  readonly changes: ReadonlySignal<number>
  /** The newest first. */
  list(): Promise<readonly KeptEntry<Facts>[]>
  read(id: string): Promise<Value | undefined>
  /** Resolves with false if the browser cannot keep it. */
  keep(id: string, facts: Facts, value: Value): Promise<boolean>
  remove(id: string): Promise<void>
  clear(): Promise<void>
}

export function keeper<Facts, Value>(name: string, limits: { count: number; size: number }): Keeper<Facts, Value> {
  const store = createStore(`weir-${name}`, 'kept')
  const changes = signal(0)
  const workspace = (): string => session.value?.workspace ?? ''
  const listKey = (): IDBValidKey => [workspace()]
  const keyOf = (id: string): IDBValidKey => [workspace(), id]

  /** Replaces the list, and deletes the values of the entries that are no longer in it. */
  async function change(next: (entries: readonly KeptEntry<Facts>[]) => readonly KeptEntry<Facts>[]): Promise<void> {
    let dropped: readonly KeptEntry<Facts>[] = []
    await update<readonly KeptEntry<Facts>[]>(
      listKey(),
      (entries = []) => {
        const left = next(entries)
        const ids = new Set(left.map(({ id }) => id))
        dropped = entries.filter(({ id }) => !ids.has(id))
        return left
      },
      store,
    )
    await delMany(
      dropped.map(({ id }) => keyOf(id)),
      store,
    )
    changes.value++
  }

  return {
    changes,
    list: async () => (await get<readonly KeptEntry<Facts>[]>(listKey(), store).catch(() => undefined)) ?? [],
    read: (id) => get<Value>(keyOf(id), store).catch(() => undefined),
    async keep(id, facts, value) {
      const entry = { id, at: Date.now(), size: JSON.stringify(value).length, facts }
      if (entry.size > limits.size) return false
      try {
        await set(keyOf(id), value, store)
        await change((entries) => fitting([entry, ...entries.filter((it) => it.id !== id)], limits))
        return true
      } catch {
        // The browser keeps nothing in a private window, or its disk is full.
        return false
      }
    },
    remove: (id) => change((entries) => entries.filter((it) => it.id !== id)),
    clear: () => change(() => []),
  }
}

function fitting<Entry extends { readonly size: number }>(
  entries: readonly Entry[],
  limits: { count: number; size: number },
): readonly Entry[] {
  let size = 0
  return entries.slice(0, limits.count).filter((entry) => (size += entry.size) <= limits.size)
}

/** Names a kept thing. Browsers have randomUUID only over TLS and on this machine. */
export function newId(): string {
  return crypto.getRandomValues(new Uint32Array(3)).join('-')
}
