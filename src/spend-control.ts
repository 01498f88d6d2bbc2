import type { Accounts } from './accounts/accounts.ts'
import type { Workspace } from './ports/accounts.ts'
import type { AlarmClock } from './ports/clock.ts'
import type { Ledger } from './ports/ledger.ts'
import type { SpendEvents, Spending, SpendView } from './ports/spending.ts'
import type { UsageStore } from './ports/usage.ts'
import type { RedisLink } from './redis/link.ts'
import { memorySpending } from './spending/memory.ts'
import type { JournalOwners } from './spending/redis/account-scripts.ts'

/** The part of compose.ts that chooses who keeps spend limits. */
export interface SpendControlParts {
  readonly books: UsageStore
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

/** A row whose caller was let go after five seconds may still wait for the disk. */
const KEEPS_UP_MS = 2000

/** Redis, where several replicas write to one database; else this process alone. */
export async function openSpendControl(parts: SpendControlParts): Promise<SpendControl> {
  const { books, ledger, clock, accounts, link, journal, events } = parts
  if (!link || !journal) return { ...(await memorySpending(books, clock, events)), close: async () => {} }
  const { redisSpending } = await import('./redis-adapters.ts')
  return redisSpending({
    link,
    clock,
    store: books,
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

/** Looked up for every active workspace every second. The list is another one when something has changed. */
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
