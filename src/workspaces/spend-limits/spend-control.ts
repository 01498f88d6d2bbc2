import type { Accounts } from '../accounts.ts'
import type { Workspace } from '../workspace.ts'
import type { AlarmClock } from '../../shared/clock.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { SpendEvents, Spending, SpendView } from './spending.ts'
import type { UsageStore } from '../../billing/usage/usage-store.ts'
import type { RedisLink } from '../../cluster/redis/link.ts'
import { memorySpending } from './memory.ts'
import type { JournalOwners } from './redis/account-scripts.ts'

/** The part of compose.ts that chooses how spend limits are kept. */
export interface SpendControlParts {
  readonly store: UsageStore
  readonly ledger: Ledger
  readonly clock: AlarmClock
  readonly accounts: Pick<Accounts, 'workspaces'>
  /** undefined: there are no other replicas. */
  readonly link: RedisLink | undefined
  /** undefined: no other process writes to the database. */
  readonly journal: JournalOwners | undefined
  readonly events: SpendEvents
}

export interface SpendControl extends Spending, SpendView {
  close(): Promise<void>
}

/** A caller gets its answer after five seconds at the latest, even if its row still waits for the disk. */
const KEEPS_UP_MS = 2000

/** Uses Redis if several replicas write to one database, and memory otherwise. */
export async function openSpendControl(parts: SpendControlParts): Promise<SpendControl> {
  const { store, ledger, clock, accounts, link, journal, events } = parts
  if (!link || !journal) return { ...(await memorySpending(store, clock, events)), close: async () => {} }
  const { redisSpending } = await import('./redis/spending.ts')
  return redisSpending({
    link,
    clock,
    store,
    journal,
    workspace: workspacesById(accounts),
    async delivered() {
      if (ledger.status().lagMs > KEEPS_UP_MS) return false
      await ledger.readable()
      return true
    },
    events,
  })
}

/** Called every second for every active workspace. The list is a new array after a change. */
function workspacesById(accounts: Pick<Accounts, 'workspaces'>): (id: string) => Workspace | undefined {
  let listed: readonly Workspace[] = []
  let byId = new Map<string, Workspace>()
  return (id) => {
    if (listed !== accounts.workspaces()) {
      listed = accounts.workspaces()
      byId = new Map(listed.map((workspace) => [workspace.id, workspace]))
    }
    return byId.get(id)
  }
}
