import { RefusedWrite } from '../../../src/shared/refused-write.ts'
import type { LedgerRow } from '../../../src/ledger/rows.ts'
import type { LedgerStore } from '../../../src/ledger/ledger.ts'
import type { History, StoreState, StoreOperation } from './history.ts'
import { stored } from './history.ts'

export interface SimulatedStore extends LedgerStore {
  state(): StoreState
}

/** The store refuses these for good, unless they cost nothing. */
const isRefused = ({ requestId, amount }: LedgerRow): boolean => requestId.endsWith('3') && amount > 0n

/** A store in memory, whose transactions are durable when they end. */
export function simulatedStore(before: StoreState, history: History, isFailing: () => boolean): SimulatedStore {
  let state = before
  function transact(operation: Omit<StoreOperation, 'kind'>): void {
    if (isFailing()) throw new Error('the database is locked')
    const { rows } = operation
    if (rows.some(isRefused)) throw new RefusedWrite('no such month')
    const whole = { kind: 'stored', ...operation } as const
    history.push(whole)
    state = stored(state, whole)
  }
  return {
    state: () => state,
    addRows: async (rows, through) => transact({ rows, aside: [], position: through }),
    journalPosition: async () => state.position,
    forgetJournal: async () => {},
    setAside: async (row) => transact({ rows: [], aside: [row], position: undefined }),
    refusedRows: async () =>
      [...state.aside.values()].map((row) => ({ ...row, reason: 'no such month', refusedAt: 0, row })),
    addRefused: async (rows) => transact({ rows, aside: [], position: undefined }),
    earlierIntents: async () => [],
    forgetEarlierIntents: async () => {},
    lastSettledAt: async () => undefined,
  }
}
