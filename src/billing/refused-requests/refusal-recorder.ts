import { pendingRefusals } from './pending-refusals.ts'
import type { AlarmClock } from '../../shared/clock.ts'
import type { RefusalReads, Refusals, RefusalStore } from './refusal-store.ts'

/** Writes refusals to the store, many at a time. */

/** Long enough for thousands of refusals to share a transaction. */
const PAUSE_MS = 2000
/** How long counts and requests are kept. */
const KEPT_MS = 31 * 86_400_000
/** A failing store must not keep the service from stopping. */
const LAST_WRITE_MS = 2000

export interface OpenRefusals extends Refusals {
  /** Resolves when the store has everything that this process has refused, or does not accept it. */
  written(): Promise<void>
  close(): Promise<void>
}

export interface RefusalParts {
  readonly store: Pick<RefusalStore, 'addRefusals'>
  /** For reports. */
  readonly reader: RefusalReads
  readonly clock: AlarmClock
  /** Called when the store stops accepting refusals. They are kept in memory, as far as there is room. */
  failed(reason: Error): void
}

export function openRefusals({ store, reader, clock, failed }: RefusalParts): OpenRefusals {
  const pending = pendingRefusals()
  let writing: Promise<void> | undefined
  let cancelAlarm: (() => void) | undefined
  let isFailing = false

  function writeSoon(): void {
    cancelAlarm ??= clock.after(PAUSE_MS, () => void written())
  }

  async function written(): Promise<void> {
    cancelAlarm?.()
    cancelAlarm = undefined
    // The batch that is being written may have been taken before the latest refusals.
    await writing
    writing ??= write().finally(() => (writing = undefined))
    await writing
  }

  async function write(): Promise<void> {
    const batch = pending.take()
    if (!batch) return
    try {
      await store.addRefusals(batch, clock.now() - KEPT_MS)
      isFailing = false
    } catch (error) {
      if (!isFailing) failed(error as Error)
      isFailing = true
      pending.putBack(batch)
      writeSoon()
    }
  }

  const afterwards =
    <Args extends unknown[], Result>(read: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      await written()
      return read(...args)
    }

  return {
    add(refusal) {
      pending.add(refusal)
      writeSoon()
    },
    written,
    refusedOverTime: afterwards(reader.refusedOverTime),
    refusedGroups: afterwards(reader.refusedGroups),
    refusedRequests: afterwards(reader.refusedRequests),
    refusedRequest: afterwards(reader.refusedRequest),
    async close() {
      const late = Promise.withResolvers<void>()
      const cancel = clock.after(LAST_WRITE_MS, late.resolve)
      await Promise.race([written(), late.promise])
      cancel()
      cancelAlarm?.()
    },
  }
}
