import type { PicoAud } from '../../src/shared/money/money.ts'
import type { AlarmClock } from '../../src/shared/clock.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import type { Spending, SpendView } from '../../src/workspaces/spend-limits/spending.ts'
import type { UsageStore } from '../../src/billing/usage/usage-store.ts'
import { memorySpending } from '../../src/workspaces/spend-limits/memory.ts'
import { redisSpending } from '../../src/workspaces/spend-limits/redis/spending.ts'
import { startRedis, type RedisServer } from './redis-server.ts'
import { settledEpoch, testReplica, type TestReplica } from './redis-replica.ts'
import { eventually } from './waiting.ts'

/** A way to keep spend limits. */
export interface SpendingAdapter {
  readonly name: string
  start(): Promise<void>
  stop(): Promise<void>
  open(parts: SpendingAdapterParts): Promise<Spending & SpendView & { close(): Promise<void> }>
}

export interface SpendingAdapterParts {
  readonly store: UsageStore
  readonly clock: AlarmClock
  workspace(): Workspace
  limitReached(spent: PicoAud): void
}

const memory: SpendingAdapter = {
  name: 'memory',
  start: async () => {},
  stop: async () => {},
  async open({ store, clock, limitReached }) {
    const spending = await memorySpending(store, clock, { limitReached: (_workspace, spent) => limitReached(spent) })
    return { ...spending, close: async () => {} }
  },
}

/** Long, so that a machine that is busy loses no connection. */
const LEASE_MS = 5000

function redis(): SpendingAdapter {
  let server: RedisServer
  let first: TestReplica
  return {
    name: 'Redis',
    async start() {
      server = await startRedis()
      // An empty Redis holds nothing for one lease.
      first = testReplica(server.url, { leaseMs: LEASE_MS })
      await settledEpoch(first)
    },
    async stop() {
      await first.close()
      await server.remove()
    },
    async open({ store, clock, workspace, limitReached }) {
      const replica = testReplica(server.url, { clock, leaseMs: LEASE_MS })
      const spending = await redisSpending({
        link: replica.link,
        clock,
        store,
        journal: { owner: replica.name, predecessor: '' },
        workspace,
        delivered: async () => false,
        events: { limitReached: (_workspace, spent) => limitReached(spent) },
      })
      await eventually('it has joined', () => replica.link.membership() !== undefined)
      return {
        ...spending,
        async close() {
          await spending.close()
          await replica.close()
        },
      }
    },
  }
}

export const spendingAdapters: readonly SpendingAdapter[] = [memory, redis()]
