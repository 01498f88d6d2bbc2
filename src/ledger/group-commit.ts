import type { Intent, LedgerRow } from '../core/money/ledger.ts'
import { writeInParts, type RefusedWrite } from '../core/refused-write.ts'
import type { Clock } from '../ports/clock.ts'
import type { Ledger, LedgerStore } from '../ports/ledger.ts'

const MAX_BATCH = 2000
const RETRY_MS = 250
/** How long a caller's last byte waits for a failing store. The row itself is kept until it is written. */
const SETTLE_PATIENCE_MS = 5000

export interface LedgerEvents {
  /** The row is durable, but not in the ledger. */
  setAside(row: LedgerRow, reason: string): void
}

interface Waiting<Kind, Item> {
  readonly kind: Kind
  item: Item
  /** Replaces the item once the caller has waited too long. */
  readonly late?: Item | undefined
  readonly since: number
  isDone: boolean
  resolve(): void
  reject(error: Error): void
}
type WaitingIntent = Waiting<'intent', Intent>
type WaitingRow = Waiting<'row', LedgerRow>

/**
 * Many requests share a transaction: everything that arrives while a batch is being written goes into the next one.
 * A lone request waits for one fsync, and a thousand at once share one.
 *
 * When the store fails, intents are refused at once, so that nothing is served that cannot be recorded. Rows are
 * tried again until they are written, for as long as the process lives. When the store refuses a batch for good, the
 * refused rows are found and set aside, and the rest of the batch is written.
 */
export function groupCommit(
  store: Pick<LedgerStore, 'writeLedger' | 'setAside'>,
  clock: Clock,
  events: LedgerEvents,
): Ledger {
  let intents: WaitingIntent[] = []
  let rows: WaitingRow[] = []
  /** The batch that is being written. */
  let writing: { readonly intents: readonly WaitingIntent[]; readonly rows: readonly WaitingRow[] } | undefined
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
    writeInParts([...batch.intents, ...batch.rows], write, refused).then(
      () => {
        writing = undefined
        failure = undefined
        pump()
      },
      (error: Error) => {
        writing = undefined
        failure = error
        retryAt = clock.monotonic() + RETRY_MS
        for (const intent of batch.intents) intent.reject(error)
        const left = batch.rows.filter(({ isDone }) => !isDone)
        const overdue = clock.monotonic() - SETTLE_PATIENCE_MS
        for (const row of left.filter(({ since }) => since <= overdue)) {
          row.item = row.late ?? row.item
          row.reject(error)
        }
        rows = [...left, ...rows]
        setTimeout(pump, RETRY_MS)
      },
    )
  }

  async function write(part: readonly (WaitingIntent | WaitingRow)[]): Promise<void> {
    const batch: { intents: Intent[]; rows: LedgerRow[] } = { intents: [], rows: [] }
    for (const it of part) {
      if (it.kind === 'intent') batch.intents.push(it.item)
      else batch.rows.push(it.item)
    }
    await store.writeLedger(batch)
    part.forEach(done)
  }

  async function refused(waiting: WaitingIntent | WaitingRow, refusal: RefusedWrite): Promise<void> {
    if (waiting.kind === 'intent') return waiting.reject(refusal)
    await store.setAside(waiting.item, refusal.message, clock.now())
    events.setAside(waiting.item, refusal.message)
    done(waiting)
  }

  return {
    note(intent) {
      // After a failure, the first intent after the pause tries the store again.
      if (failure && clock.monotonic() < retryAt) return Promise.reject(failure)
      return new Promise((resolve, reject) => {
        intents.push({ kind: 'intent', item: intent, since: clock.monotonic(), isDone: false, resolve, reject })
        pump()
      })
    },
    settle: (row, late) =>
      new Promise((resolve, reject) => {
        rows.push({ kind: 'row', item: row, late, since: clock.monotonic(), isDone: false, resolve, reject })
        pump()
      }),
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

function done(waiting: WaitingIntent | WaitingRow): void {
  waiting.isDone = true
  waiting.resolve()
}
