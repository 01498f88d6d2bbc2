import { setImmediate as turn } from 'node:timers/promises'
import { ApiError } from '../../../src/shared/errors.ts'
import type { PicoAud } from '../../../src/shared/money/money.ts'
import { sydneyMonth } from '../../../src/shared/money/sydney-time.ts'
import type { Workspace } from '../../../src/workspaces/workspace.ts'
import type { AlarmClock } from '../../../src/shared/clock.ts'
import type { SpendingHold, SpendingKey } from '../../../src/workspaces/spend-limits/spending.ts'
import type { UsageStore } from '../../../src/billing/usage/usage-store.ts'
import type { LinkFollower, Membership, RedisLink } from '../../../src/cluster/redis/link.ts'
import type { Script } from '../../../src/cluster/redis/script.ts'
import { redisSpending, type RedisSpending } from '../../../src/workspaces/spend-limits/redis/spending.ts'

/** What all replicas run on. */
export interface Machine {
  nowMs(): number
  readonly leaseMs: number
  readonly database: Map<number, PicoAud>
  execute(script: Script, keys: readonly string[], values: readonly (string | number)[]): Promise<unknown>
  told(outcome: Outcome): void
}

export type Outcome = 'held' | 'refused' | 'unavailable'

/** A replica with a journal, on a network that delivers when the world says so. */
export interface SimulatedReplica {
  readonly isAlive: boolean
  readonly isJoined: boolean
  /** Rows that are durable here and not in the database. */
  readonly journal: readonly { readonly month: number; readonly amount: PicoAud }[]
  month(): number
  heldByRunning(): PicoAud
  arrive(most: PicoAud): Promise<Outcome>
  /** A request ends, at a part of what is held. */
  settle(percent: number): void
  /** Every request that runs ends at no cost. */
  endAll(): void
  /** One thing that is under way arrives. */
  deliver(): Promise<void>
  deliverAll(): Promise<void>
  /** The journal is brought into the database. */
  ship(): Promise<void>
  heartbeat(): void
  passTo(nowMs: number): Promise<void>
  join(membership: Membership): void
  cut(): Promise<void>
  /** Bytes of a connection that was cut still arrive. */
  deliverLate(): Promise<void>
  crash(isCallExecuted: boolean): Promise<void>
  restart(): Promise<void>
}

/** Something on its way: executed when it arrives, answered when its answer arrives. */
interface UnderWay {
  execute(): Promise<unknown>
  answer(value: unknown): void
  fail(error: Error): void
  isExecuted: boolean
  value: unknown
}

/** Amounts whose sums have more digits than a number in Lua. */
export const UNIT = 1_000_000_007_000_003n
export const LIMIT = 100n * UNIT

/** What has the limit. */
export interface Limited {
  readonly workspace: Workspace
  readonly key?: SpendingKey
}

const unlimited = { id: 'ws', name: 'w', spendLimit: null } as Workspace
export const limitedWorkspace: Limited = { workspace: { ...unlimited, spendLimit: { amount: LIMIT, isSoft: false } } }
export const limitedKey: Limited = { workspace: unlimited, key: { id: 'key', perMonth: LIMIT } }

export interface ReplicaOptions {
  readonly owner: string
  readonly skewMs: number
  readonly limited: Limited
  /** How long the account of a key is kept that no request uses. */
  readonly idleMs: number
}

export async function simulatedReplica(
  { owner, skewMs, limited: { workspace, key }, idleMs }: ReplicaOptions,
  machine: Machine,
): Promise<SimulatedReplica> {
  let starts = 0
  let process = await start()
  let journal: { month: number; amount: PicoAud }[] = []
  let isAlive = true

  async function start() {
    const name = `${owner}.${++starts}`
    const followers: LinkFollower[] = []
    const underWay: UnderWay[] = []
    const late: UnderWay[] = []
    const running = new Map<number, { readonly hold: SpendingHold; most: PicoAud }>()
    const timers = new Set<{ readonly atMs: number; callback(): void }>()
    const waitingForDelivery: { resolve(isDelivered: boolean): void }[] = []
    let membership: Membership | undefined
    let provenUntilMs = 0

    const now = (): number => machine.nowMs() + skewMs
    const send = (execute: () => Promise<unknown>): Promise<unknown> =>
      new Promise((answer, fail) => underWay.push({ execute, answer, fail, isExecuted: false, value: undefined }))
    const clock: AlarmClock = {
      now,
      monotonic: machine.nowMs,
      after(ms, callback) {
        const timer = { atMs: machine.nowMs() + ms, callback }
        timers.add(timer)
        return () => timers.delete(timer)
      },
    }
    const link: RedisLink = {
      replica: name,
      leaseMs: machine.leaseMs,
      run: (script, keys, values) => send(() => machine.execute(script, keys, values)),
      follow: (follower) => void followers.push(follower),
      publish: async () => {},
      membership: () => membership,
      replicas: () => 4,
      proven: () => ({ sinceMs: 0, untilMs: provenUntilMs }),
      close: async () => {},
    }
    const sumOf = (from: number): PicoAud => machine.database.get(from) ?? 0n
    const store = {
      usageSums: async () => [],
      usageTotal: ({ from }: { from: number }) => send(async () => ({ amount: sumOf(from) })),
    } as unknown as UsageStore
    const spending: RedisSpending = await redisSpending({
      link,
      clock,
      store,
      journal: { owner: name, predecessor: starts > 1 ? `${owner}.${starts - 1}` : '' },
      workspace: () => workspace,
      delivered: () => new Promise((resolve) => waitingForDelivery.push({ resolve })),
      events: { limitReached() {} },
      idleMs,
    })
    return {
      spending,
      underWay,
      late,
      running,
      timers,
      waitingForDelivery,
      now,
      member: () => membership,
      heard() {
        if (membership) provenUntilMs = machine.nowMs() + machine.leaseMs
      },
      setMembership(next: Membership | undefined) {
        const was = membership
        membership = next
        if (was && !next) for (const follower of followers) follower.lost()
        if (next) for (const follower of followers) follower.joined(next)
      },
      heartbeat: () => followers.forEach((follower) => follower.heartbeat()),
    }
  }

  /** Everything that can go on without the world has gone on. */
  async function rest(): Promise<void> {
    await turn()
    await turn()
  }

  async function deliverTo(to: typeof process): Promise<void> {
    const [next] = to.underWay
    if (!next) return rest()
    if (next.isExecuted) {
      to.underWay.shift()
      next.answer(next.value)
    } else {
      next.isExecuted = true
      next.value = await next.execute()
    }
    await rest()
  }

  let arrivals = 0
  function settleOne(amountOf: (most: PicoAud) => PicoAud): void {
    const [first] = process.running
    if (!first) return
    const [id, { hold, most }] = first
    const amount = amountOf(most)
    process.running.delete(id)
    if (amount > 0n) journal.push({ month: month(), amount })
    hold.settle(amount)
  }
  const month = (): number => sydneyMonth(process.now()).from

  return {
    get isAlive() {
      return isAlive
    },
    get isJoined() {
      return isAlive && process.member() !== undefined
    },
    get journal() {
      return journal
    },
    month,
    heldByRunning: () => [...process.running.values()].reduce((sum, { most }) => sum + most, 0n),
    async arrive(most) {
      if (!isAlive) return 'unavailable'
      const here = process
      const outcome = await here.spending.hold(workspace, most, key).then(
        (hold): Outcome => {
          // It may have died since.
          if (isAlive && here === process) here.running.set(++arrivals, { hold, most })
          return 'held'
        },
        (error: unknown): Outcome => {
          if (!(error instanceof ApiError)) throw error
          return error.code === 'spend_limit_exceeded' ? 'refused' : 'unavailable'
        },
      )
      machine.told(outcome)
      return outcome
    },
    settle(percent) {
      if (isAlive) settleOne((most) => (most * BigInt(percent)) / 100n)
    },
    endAll() {
      while (process.running.size > 0) settleOne(() => 0n)
    },
    deliver: () => deliverTo(process),
    async deliverAll() {
      do await deliverTo(process)
      while (process.underWay.length > 0)
    },
    async ship() {
      if (!isAlive) return
      // Those who asked before hear that all of it is there.
      const asked = process.waitingForDelivery.splice(0)
      for (const { month: at, amount } of journal) machine.database.set(at, (machine.database.get(at) ?? 0n) + amount)
      journal = []
      for (const { resolve } of asked) resolve(true)
      await rest()
    },
    heartbeat() {
      if (!isAlive) return
      process.heard()
      process.heartbeat()
    },
    async passTo(nowMs) {
      for (const timer of process.timers) {
        if (timer.atMs > nowMs || !isAlive) continue
        process.timers.delete(timer)
        timer.callback()
      }
      await rest()
    },
    join(membership) {
      if (!isAlive) return
      process.setMembership(membership)
      process.heard()
    },
    async cut() {
      const here = process
      const calls = here.underWay.splice(0)
      here.setMembership(undefined)
      for (const call of calls) {
        if (!call.isExecuted) here.late.push(call)
        call.fail(new Error('cut'))
      }
      await rest()
    },
    async deliverLate() {
      await process.late.shift()?.execute()
    },
    async crash(isCallExecuted) {
      const here = process
      // What was sent may still arrive.
      const [call] = here.underWay
      if (call && isCallExecuted && !call.isExecuted && here.member()) await call.execute()
      isAlive = false
      here.running.clear()
      here.timers.clear()
      here.underWay.length = 0
    },
    async restart() {
      if (isAlive) return
      for (const { month: at, amount } of journal) machine.database.set(at, (machine.database.get(at) ?? 0n) + amount)
      journal = []
      process = await start()
      isAlive = true
    },
  }
}
