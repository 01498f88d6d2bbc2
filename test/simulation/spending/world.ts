import { setImmediate as turn } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { seededRandom } from '../../../src/shared/seeded-random.ts'
import type { PicoAud } from '../../../src/shared/money/money.ts'
import { sydneyMonth } from '../../../src/shared/money/sydney-time.ts'
import { luaBeside } from '../../../src/cluster/redis/script.ts'
import { accountScripts, spendScripts } from '../../../src/workspaces/spend-limits/redis/account-scripts.ts'
import {
  LIMIT,
  limitedWorkspace,
  simulatedReplica,
  UNIT,
  type Limited,
  type Machine,
  type SimulatedReplica,
} from './replica.ts'

/** In the place of outside.lua: the simulation's clock. */
const simulated = "local function clock() return tonumber(redis.call('GET', 'simulated:now')) end"
const source = new URL('../../../src/workspaces/spend-limits/redis/', import.meta.url).href

const LEASE_MS = 5000
const KEPT_MS = 3_600_000
const EPOCH_KEY = 'weir:{replicas}'

export class Overdrawn extends Error {}

export interface Happenings {
  held: number
  refused: number
  unavailable: number
  crashes: number
  losses: number
  cuts: number
  months: number
  /** Calls about an account that its replica had closed before. */
  reopened: number
}

export interface SimulationOptions {
  /** By default a workspace. */
  readonly limited?: Limited
  /** Changes the scripts of all replicas. */
  breakLua?(name: string, lua: string): string
  /** The scripts of the former version. Every other replica runs them, and closes no accounts. */
  formerLua?(name: string, lua: string): string
}

/** Much shorter than in reality, so that accounts are closed in the midst of everything else. */
const IDLE_MS = 600
/** As long as an account is polled after its last use. */
const POLLED_MS = 5000

/**
 * Several replicas of one workspace or key with a hard limit, on the real scripts and in virtual time. Everything that can
 * be late or lost is: calls, their answers, sums that are read, rows on their way to the database, processes, Redis' data.
 * After every step, no month may have more than its limit in rows and in requests that run.
 */
export async function simulateSpending(
  socket: string,
  seed: number,
  steps: number,
  { limited = limitedWorkspace, breakLua = (_name, lua) => lua, formerLua }: SimulationOptions = {},
): Promise<Happenings> {
  const random = seededRandom(seed)
  const below = (count: number): number => Math.floor(random() * count)
  const pick = <Item>(items: readonly Item[]): Item | undefined => items[below(items.length)]
  const redis = new Redis({ path: socket, protocol: 2 })
  const scriptsWith = (change: typeof breakLua) =>
    accountScripts((name) => (name === 'outside' ? simulated : change(name, luaBeside(source, name))))
  const [present, former] = [scriptsWith(breakLua), scriptsWith(formerLua ?? breakLua)]
  const happenings = { held: 0, refused: 0, unavailable: 0, crashes: 0, losses: 0, cuts: 0, months: 0, reopened: 0 }

  // Shortly before a month ends, with clocks that differ.
  let nowMs = sydneyMonth(Date.UTC(2026, 10, 15)).to - 20_000
  let epoch = 0
  /** The rows of the database, by month. */
  const database = new Map<number, PicoAud>()
  const machineOf = (scripts: typeof present): Machine => ({
    nowMs: () => nowMs,
    leaseMs: LEASE_MS,
    database,
    async execute(script, keys, values) {
      const { sha } = script === spendScripts.reserve ? scripts.reserve : scripts.checkpoint
      const { accounts = [] } = JSON.parse(String(values[0])) as { accounts?: readonly { opening: number }[] }
      if (accounts.some(({ opening }) => opening > (limited.key ? 2 : 1))) happenings.reopened += 1
      const [, answer] = (await redis
        .pipeline()
        .set('simulated:now', nowMs)
        .evalsha(sha, keys.length, ...keys, ...values)
        .exec())!
      const [error, value] = answer!
      if (error) throw error
      return value
    },
    told(outcome) {
      happenings[outcome] += 1
    },
  })
  // Some worlds are full of rows, others of requests that run.
  const [fullEvery, partPercent] = pick([
    [2, 100],
    [10, 10],
    [4, 40],
  ] as const)!
  const skews = [0, 20_000, -20_000, 400]
  const replicas: SimulatedReplica[] = []
  let snapshot: Record<string, Buffer> = {}

  async function beginEpoch(): Promise<void> {
    epoch += 1
    await redis.hset(EPOCH_KEY, 'epoch', String(epoch), 'quiet_until', String((nowMs + LEASE_MS) * 1000))
  }
  const membership = () => ({ epoch: String(epoch), incarnation: 1, quietUntilMs: nowMs + LEASE_MS })

  function check(what: string): void {
    const spent = new Map(database)
    const add = (month: number, amount: PicoAud): void => void spent.set(month, (spent.get(month) ?? 0n) + amount)
    for (const replica of replicas) {
      for (const row of replica.journal) add(row.month, row.amount)
      // What runs is settled in the month that the replica is in by then.
      add(replica.month(), replica.heldByRunning())
    }
    for (const [month, amount] of spent) {
      if (amount <= LIMIT) continue
      throw new Overdrawn(`${what}: ${amount} of ${LIMIT} in ${sydneyMonth(month).name} (WEIR_SEED=${seed})`)
    }
  }

  /** Every replica polls Redis and learns the state of all others, as it does once a second. */
  async function pollAll(): Promise<void> {
    // Twice, because the first replica polls before the last one gets its reservations.
    for (let round = 0; round < 2; round += 1) {
      for (const replica of replicas) replica.heartbeat()
      for (const replica of replicas) await replica.deliverAll()
      for (const replica of replicas) await replica.deliverAll()
    }
  }

  /**
   * Redis loses everything, or its data is old. Either every replica rejoins, or one does that knows the state of the
   * others, at most a second old.
   */
  async function lose(isEmpty: boolean): Promise<void> {
    const witness = pick(replicas.filter((it) => it.isJoined))
    if (!witness) return
    const isAllBack = replicas.every((it) => it.isJoined) && below(2) === 0
    if (!isAllBack) {
      // A replica that never served the workspace knows of no other. And what Redis had earlier is less than there is now.
      for (const replica of replicas) arrive(replica)
      await pollAll()
      // Others may have been given something by the last calls.
      witness.heartbeat()
      await witness.deliverAll()
    }
    for (const replica of replicas) await replica.cut()
    await redis.flushall()
    await loadScripts()
    if (!isEmpty) for (const [key, value] of Object.entries(snapshot)) await redis.restore(key, 0, value)
    await beginEpoch()
    for (const replica of isAllBack ? [witness, ...replicas] : [witness]) {
      if (!replica.isJoined) replica.join(membership())
      arrive(witness)
      await replica.deliverAll()
      await witness.deliverAll()
      check('in a new epoch')
    }
    happenings.losses += 1
    // A replica that returns later has delivered rows to the database meanwhile.
    const late = pick(replicas.filter((it) => it.isAlive && !it.isJoined))
    if (!late || below(2) === 0) return
    await pass(LEASE_MS)
    arrive(witness)
    for (let delivered = below(8); delivered > 0; delivered -= 1) await witness.deliver()
    await late.ship()
    late.join(membership())
    await late.deliverAll()
    await witness.deliverAll()
    check('when the last one is back')
  }

  /** Rows are taken back, which makes room again. */
  function correct(): void {
    for (const [month, amount] of database) database.set(month, amount / 4n)
  }

  function arrive(replica: SimulatedReplica): void {
    // From an eighth of a unit to 64 of them.
    void replica.arrive((UNIT * BigInt(2 ** below(10)) + BigInt(below(1000))) / 8n)
  }

  async function loadScripts(): Promise<void> {
    for (const { reserve, checkpoint } of [present, former]) {
      await redis.script('LOAD', reserve.lua)
      await redis.script('LOAD', checkpoint.lua)
    }
    await redis.set('simulated:now', nowMs)
  }

  async function takeSnapshot(): Promise<void> {
    snapshot = {}
    for (const key of await redis.keys('*spending*')) {
      const value = await redis.dumpBuffer(key)
      if (value) snapshot[key] = value
    }
  }

  /** A replica has no requests for so long that it closes its account, unless something is not delivered. */
  async function fallIdle(replica: SimulatedReplica): Promise<void> {
    while (replica.heldByRunning() > 0n) replica.settle(below(partPercent))
    const steps = [
      () => replica.deliverAll(),
      async () => replica.heartbeat(),
      () => replica.ship(),
      () => replica.deliverAll(),
    ]
    for (const step of [...steps, ...steps]) if (below(16) > 0) await step()
    await pass(POLLED_MS + IDLE_MS)
    replica.heartbeat()
  }

  async function pass(ms: number): Promise<void> {
    nowMs += ms
    for (const replica of replicas) await replica.passTo(nowMs)
  }

  const actions: readonly { readonly weight: number; act(replica: SimulatedReplica): unknown }[] = [
    {
      weight: 30,
      act: (it) => void it.arrive(BigInt(1 + below(below(8) === 0 ? 60 : 12)) * UNIT + BigInt(below(1000))),
    },
    { weight: 30, act: (it) => it.settle(below(fullEvery) === 0 ? 100 : below(partPercent)) },
    { weight: 60, act: (it) => it.deliver() },
    { weight: 12, act: (it) => it.ship() },
    { weight: 20, act: (it) => it.heartbeat() },
    { weight: 20, act: () => pass(below(400)) },
    { weight: 3, act: () => pass(below(8000)) },
    { weight: 12, act: (it) => it.isAlive && !it.isJoined && it.join(membership()) },
    { weight: 6, act: (it) => it.deliverLate() },
    { weight: 2, act: (it) => it.isJoined && (happenings.cuts++, it.cut()) },
    { weight: 1, act: (it) => it.isAlive && (happenings.crashes++, it.crash(below(2) === 0)) },
    { weight: 6, act: (it) => it.restart() },
    { weight: limited.key ? 12 : 0, act: (it) => it.isAlive && fallIdle(it) },
    { weight: 1, act: takeSnapshot },
    { weight: 1, act: correct },
    { weight: 1, act: () => below(2) === 0 && lose(below(2) === 0) },
  ]
  // In every world other things are rare.
  const weights = actions.map(({ weight }) => weight * pick([0.2, 1, 1, 4])!)
  const allWeights = weights.reduce((sum, weight) => sum + weight, 0)

  try {
    await redis.flushall()
    await loadScripts()
    await beginEpoch()
    for (const [index, skewMs] of skews.entries()) {
      const isFormer = formerLua !== undefined && index % 2 === 1
      const replica = await simulatedReplica(
        { owner: `owner-${index}`, skewMs, limited, idleMs: isFormer ? Infinity : IDLE_MS },
        machineOf(isFormer ? former : present),
      )
      replicas.push(replica)
      replica.join(membership())
    }
    await pass(LEASE_MS)
    let month = sydneyMonth(nowMs).from
    for (let step = 0; step < steps; step += 1) {
      let chosen = random() * allWeights
      const action = actions.find((_, index) => (chosen -= weights[index]!) < 0) ?? actions[0]!
      const replica = pick(replicas)!
      await action.act(replica)
      check(`step ${step}`)
      if (sydneyMonth(nowMs).from !== month) happenings.months += 1
      month = sydneyMonth(nowMs).from
    }
    await requireExactRoom()
    return happenings
  } finally {
    redis.disconnect()
  }

  /** When all is quiet, what is left can be held to the last unit, and not one more. */
  async function requireExactRoom(): Promise<void> {
    for (const replica of replicas) {
      replica.endAll()
      if (!replica.isAlive) await replica.restart()
      if (!replica.isJoined) replica.join(membership())
    }
    // A replica that is gone counts for as long as anybody tells of it, and as long again after that.
    for (const ms of [...Array.from({ length: 4 }, () => KEPT_MS / 2), ...Array.from({ length: 8 }, () => 10_000)]) {
      await pass(ms)
      // A replica without requests does not poll.
      for (const replica of replicas) void replica.arrive(1n)
      for (const replica of replicas) await replica.ship()
      await pollAll()
      for (const replica of replicas) replica.endAll()
      await pollAll()
      check('at the end')
    }
    const [one, other] = replicas as [SimulatedReplica, SimulatedReplica]
    const left = LIMIT - (database.get(one.month()) ?? 0n)
    const tooMuch = await outcomeOf(one, left + 1n)
    const exact = await outcomeOf(other, left)
    const more = await outcomeOf(one, 1n)
    if (tooMuch !== 'refused' || more !== 'refused' || exact !== 'held') {
      throw new Overdrawn(
        `of ${left} left, one more is ${tooMuch}, all is ${exact}, then one is ${more} (WEIR_SEED=${seed})`,
      )
    }
  }

  async function outcomeOf(replica: SimulatedReplica, most: PicoAud): Promise<string> {
    const outcome = replica.arrive(most)
    for (let round = 0; round < 20; round += 1) await replica.deliverAll()
    return Promise.race([outcome, turn('not decided')])
  }
}
