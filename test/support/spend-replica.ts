import type { LedgerRow } from '../../src/ledger/rows.ts'
import type { PicoAud } from '../../src/shared/money/money.ts'
import type { SpendLimit, Workspace } from '../../src/workspaces/workspace.ts'
import type { SpendingKey } from '../../src/workspaces/spend-limits/spending.ts'
import type { Store } from '../../src/store/store.ts'
import { redisSpending, type RedisSpending } from '../../src/workspaces/spend-limits/redis/spending.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { sampleRow } from './ledger-samples.ts'
import { testReplica, type TestReplica } from './redis-replica.ts'

/** A replica that holds and settles, with a journal in front of a database that others have, too. */
export interface SpendReplica {
  readonly replica: TestReplica
  readonly spending: RedisSpending
  /** Rows that the database does not have yet. */
  readonly journal: LedgerRow[]
  /** Serves one request: holds `most`, lets `during` pass, and settles `amount`. */
  serve(most: PicoAud, amount: PicoAud, during?: Promise<unknown>, key?: SpendingKey): Promise<void>
  /** Brings the journal into the database. */
  ship(): Promise<void>
  /** Goes away in order. */
  close(): Promise<void>
  /** As if it were killed. */
  vanish(): Promise<void>
}

/** The workspace that all replicas serve. */
export function limitedWorkspace(amount: PicoAud, isSoft = false) {
  let workspace = { id: `ws_${crypto.randomUUID()}`, name: 'acme', spendLimit: { amount, isSoft } } as Workspace
  return {
    get current() {
      return workspace
    },
    set(spendLimit: SpendLimit | null) {
      workspace = { ...workspace, spendLimit }
    },
  }
}

let requests = 0

export async function spendReplica(
  url: string,
  store: Store,
  workspace: { readonly current: Workspace },
  { predecessor = '', shipsItself = true, told = [] as PicoAud[] } = {},
): Promise<SpendReplica> {
  const replica = testReplica(url)
  const journal: LedgerRow[] = []
  let shipping: Promise<void> = Promise.resolve()

  function ship(): Promise<void> {
    shipping = shipping.then(async () => {
      const rows = journal.slice()
      await store.addRows(rows)
      journal.splice(0, rows.length)
    })
    return shipping
  }
  const spending = await redisSpending({
    link: replica.link,
    clock: systemClock,
    store,
    journal: { owner: replica.name, predecessor },
    workspace: () => workspace.current,
    async delivered() {
      if (shipsItself) await ship()
      return shipsItself
    },
    events: { limitReached: (_workspace, spent) => told.push(spent) },
  })
  return {
    replica,
    spending,
    journal,
    ship,
    async serve(most, amount, during, key) {
      const hold = await spending.hold(workspace.current, most, key)
      await during
      const workspaceId = workspace.current.id
      journal.push(
        sampleRow(`spent-${++requests}`, { workspaceId, amount, settledAt: Date.now(), ...(key && { keyId: key.id }) }),
      )
      hold.settle(amount)
    },
    async close() {
      await spending.close()
      await replica.close()
    },
    vanish: () => replica.vanish(),
  }
}
