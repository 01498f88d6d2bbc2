import type { Intent, LedgerRow } from '../core/money/ledger.ts'
import type { Clock } from '../ports/clock.ts'
import type { Ledger, LedgerBatch } from '../ports/ledger.ts'

const MAX_BATCH = 2000
const RETRY_MS = 250
/** How long a caller's last byte waits for a failing store. The row itself is kept until it is written. */
const SETTLE_PATIENCE_MS = 5000

interface Waiting<Item> {
  item: Item
  /** Replaces the item once the caller has waited too long. */
  readonly late?: Item | undefined
  readonly since: number
  resolve(): void
  reject(error: Error): void
}

/**
 * Many requests share a transaction: everything that arrives while a batch is being written goes into the next one.
 * A lone request waits for one fsync, and a thousand at once share one.
 *
 * When the store fails, intents are refused at once, so that nothing is served that cannot be recorded. Rows are
 * tried again until they are written, for as long as the process lives.
 */
export function groupCommit(write: (batch: LedgerBatch) => Promise<void>, clock: Clock): Ledger {
  let intents: Waiting<Intent>[] = []
  let rows: Waiting<LedgerRow>[] = []
  /** The batch that is being written. */
  let writing:
    | { readonly intents: readonly Waiting<Intent>[]; readonly rows: readonly Waiting<LedgerRow>[] }
    | undefined
  let failure: Error | undefined
  let retryAt = 0
  let emptied: (() => void)[] = []

  function pump(): void {
    if (writing) return
    if (intents.length === 0 && rows.length === 0) {
      for (const done of emptied.splice(0)) done()
      return
    }
    const batch = { intents: intents.splice(0, MAX_BATCH), rows: rows.splice(0, MAX_BATCH) }
    writing = batch
    write({ intents: batch.intents.map(itemOf), rows: batch.rows.map(itemOf) }).then(
      () => {
        writing = undefined
        failure = undefined
        for (const intent of batch.intents) intent.resolve()
        for (const row of batch.rows) row.resolve()
        pump()
      },
      (error: Error) => {
        writing = undefined
        failure = error
        retryAt = clock.monotonic() + RETRY_MS
        for (const intent of batch.intents) intent.reject(error)
        const overdue = clock.monotonic() - SETTLE_PATIENCE_MS
        for (const row of batch.rows.filter(({ since }) => since <= overdue)) {
          row.item = row.late ?? row.item
          row.reject(error)
        }
        rows = [...batch.rows, ...rows]
        setTimeout(pump, RETRY_MS)
      },
    )
  }

  function add<Item>(list: Waiting<Item>[], item: Item, late?: Item): Promise<void> {
    return new Promise((resolve, reject) => {
      list.push({ item, late, since: clock.monotonic(), resolve, reject })
      pump()
    })
  }

  return {
    note(intent) {
      // After a failure, the first intent after the pause tries the store again.
      if (failure && clock.monotonic() < retryAt) return Promise.reject(failure)
      return add(intents, intent)
    },
    settle: (row, late) => add(rows, row, late),
    // A row is durable when its transaction is, and then every reader sees it.
    readable: () => Promise.resolve(),
    status() {
      const all = [rows, intents, writing?.rows ?? [], writing?.intents ?? []]
      const oldest = Math.min(...all.map((list) => list[0]?.since ?? Infinity))
      return {
        healthy: failure === undefined,
        waiting: all.reduce((sum, list) => sum + list.length, 0),
        lagMs: oldest === Infinity ? 0 : clock.monotonic() - oldest,
      }
    },
    flush: () =>
      new Promise((resolve) => {
        emptied = [...emptied, resolve]
        pump()
      }),
  }
}

function itemOf<Item>(waiting: Waiting<Item>): Item {
  return waiting.item
}
