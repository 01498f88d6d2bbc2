import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Redis } from 'ioredis'
import { luaBeside, type Script } from '../../../src/cluster/redis/script.ts'
import {
  accountScripts,
  remoteAccounts,
  spendScripts,
  type AccountAnswer,
  type ReserveAnswer,
} from '../../../src/workspaces/spend-limits/redis/account-scripts.ts'
import { startRedis, type RedisServer } from '../../support/redis-server.ts'

/**
 * What the simulation meets too rarely to be relied on: an exact order of events for each rule of the scripts, with what
 * would be overdrawn without that rule. Each runs on the scripts as they are, and must fail on those without the rule.
 */
interface Story {
  readonly name: string
  readonly script: string
  readonly find: string
  readonly replace: string
  tell(account: Account): Promise<void>
}

interface Account {
  /** A replica reports its state and asks for a reservation. Returns the answer; undefined if the report is ignored. */
  report(replica: string, state?: Partial<ReplicaState>): Promise<ReserveAnswer | undefined>
  /** Stores the database's sum, read after an answer. */
  checkpoint(answer: ReserveAnswer | undefined, base: bigint, month?: number): Promise<void>
}

interface ReplicaState {
  readonly turn: number
  readonly opening: number
  readonly month: number
  readonly held: bigint
  readonly settled: bigint
  readonly delivered: bigint
  readonly want: bigint
  readonly predecessor: string
}

const LIMIT = 100n
const [MONTH, NEXT_MONTH] = [1_793_500_000_000, 1_796_100_000_000]
const EPOCH = 'one'

async function openAccount(redis: Redis, breakLua: (name: string, lua: string) => string): Promise<Account> {
  const source = new URL('../../../src/workspaces/spend-limits/redis/', import.meta.url).href
  const clock = "local function clock() return tonumber(redis.call('GET', 'simulated:now')) end"
  const running = accountScripts((name) => (name === 'outside' ? clock : breakLua(name, luaBeside(source, name))))
  await redis.flushall()
  await redis.set('simulated:now', MONTH)
  await redis.hset('weir:{replicas}', 'epoch', EPOCH, 'quiet_until', '0')
  const member = { epoch: EPOCH, incarnation: 1, quietUntilMs: 0 }
  const accounts = remoteAccounts({
    run(script: Script, keys, values) {
      const { lua } = script === spendScripts.checkpoint ? running.checkpoint : running.reserve
      return redis.eval(lua, keys.length, ...keys, ...values)
    },
  })
  const turns = new Map<string, number>()
  return {
    report(replica, state = {}) {
      const turn = state.turn ?? (turns.get(replica) ?? 0) + 1
      turns.set(replica, Math.max(turn, turns.get(replica) ?? 0))
      const { opening = 1, month = MONTH, held = 0n, settled = 0n, delivered = 0n, want = 0n } = state
      const limits = [{ account: 0, limit: LIMIT }]
      const report = {
        name: 'ws',
        opening,
        month,
        nextMonth: month === MONTH ? NEXT_MONTH : NEXT_MONTH + 1,
        held,
        counts: new Map([[month, { settled, delivered }]]),
        limit: LIMIT,
        known: {},
      }
      return accounts.reserve(member, {
        replica,
        owner: `journal of ${replica}`,
        predecessor: state.predecessor ?? '',
        turn,
        accounts: [report],
        pending: want > 0n ? [{ amount: want, limits }] : [],
      })
    },
    checkpoint: (answer, base, month = MONTH) =>
      accounts.checkpoint(member, 'ws', answer?.accounts[0] as AccountAnswer, month, base),
  }
}

/** undefined if it waits. */
function isHeld(answer: ReserveAnswer | undefined): boolean | undefined {
  const decision = answer?.decisions[0]
  return decision === undefined ? undefined : decision === 1
}

const stories: readonly Story[] = [
  {
    name: 'a sum that was read before a replica came back may lack what that one has brought into the database since',
    script: 'reserve',
    find: "if reported[2] ~= '0' then forget_sums(account) end",
    replace: '',
    async tell({ report, checkpoint }) {
      await checkpoint(await report('one'), 0n)
      // The other one was cut off. It has settled 60, and all of that is in the database by now.
      await report('other', { settled: 60n, delivered: 60n })
      const asked = await report('one', { want: 100n })
      assert.equal(isHeld(asked), undefined, 'the sum is read first')
      await checkpoint(asked, 60n)
      assert.equal(isHeld(await report('one', { want: 41n })), false)
      assert.equal(isHeld(await report('one', { want: 40n })), true)
    },
  },
  {
    name: 'a call that comes late does not take back what was held since',
    script: 'reserve',
    find: 'if me and me.turn >= sent.turn then',
    replace: 'if false then',
    async tell({ report, checkpoint }) {
      await checkpoint(await report('one'), 0n)
      // Call 2 is on its way for long. The connection was cut, and call 3 came through the next one.
      assert.equal(isHeld(await report('one', { turn: 3, want: 60n })), true)
      await report('one', { turn: 2, want: 10n })
      assert.equal(isHeld(await report('other', { want: 80n })), false)
      assert.equal(isHeld(await report('other', { want: 40n })), true)
    },
  },
  {
    name: 'a replica learns what others have that may not be in the database, and nothing of itself or of idle ones',
    script: 'reserve',
    find: "if name ~= sent.replica and open ~= '0' then",
    replace: "if name ~= sent.replica or open ~= '0' then",
    async tell({ report, checkpoint }) {
      await checkpoint(await report('one', { held: 7n }), 0n)
      await report('idle', { settled: 5n, delivered: 5n })
      await report('holding', { held: 3n })
      await report('settling', { held: 3n, settled: 9n, delivered: 2n })
      assert.deepEqual((await report('one', { held: 7n }))?.accounts[0]?.known, {
        holding: ['journal of holding', String(MONTH), '3'],
        settling: ['journal of settling', String(MONTH), '10'],
      })
    },
  },
  {
    name: 'rows that reach the database after its sum was read are not in that sum',
    script: 'checkpoint',
    find: 'if echo then count[2] = echo[2] end',
    replace: 'if echo then count[2] = count[3] end',
    async tell({ report, checkpoint }) {
      const asked = await report('one', { settled: 50n })
      // The sum is read now: 0. Then the row arrives there, and the replica reports it, before the sum is sent.
      await report('one', { settled: 50n, delivered: 50n })
      await checkpoint(asked, 0n)
      assert.equal(isHeld(await report('other', { want: 51n })), false)
      assert.equal(isHeld(await report('other', { want: 50n })), true)
    },
  },
  {
    name: 'a sum that was read before a journal arrived is not taken after it has',
    script: 'checkpoint',
    find: 'account.generation ~= sent.generation or ',
    replace: '',
    async tell({ report, checkpoint }) {
      await report('dead', { settled: 50n })
      const asked = await report('one')
      // The sum is read now: 0. Then the successor brings the journal into the database, so no replica counts it any more.
      await report('successor', { predecessor: 'journal of dead' })
      await checkpoint(asked, 0n)
      const again = await report('one', { want: 100n })
      assert.equal(isHeld(again), undefined, 'the sum is read again')
      await checkpoint(again, 50n)
      assert.equal(isHeld(await report('one', { want: 51n })), false)
      assert.equal(isHeld(await report('one', { want: 50n })), true)
    },
  },
  {
    name: 'when the journal of a dead replica has arrived, the sum is read again',
    script: 'reserve',
    find: 'if is_counted then forget_sums(account) end',
    replace: '',
    async tell({ report, checkpoint }) {
      await checkpoint(await report('dead', { settled: 50n }), 0n)
      const asked = await report('successor', { predecessor: 'journal of dead', want: 100n })
      assert.equal(isHeld(asked), undefined, 'the sum is read again')
      await checkpoint(asked, 50n)
      assert.equal(isHeld(await report('successor', { predecessor: 'journal of dead', want: 51n })), false)
      assert.equal(isHeld(await report('successor', { predecessor: 'journal of dead', want: 50n })), true)
    },
  },
  {
    name: 'the totals of an account that was closed and is opened again begin anew',
    script: 'reserve',
    find: 'if me then forget(account, sent.replica) end',
    replace: '',
    async tell({ report, checkpoint }) {
      await checkpoint(await report('one'), 0n)
      await report('one', { settled: 60n, delivered: 60n })
      // Closed. The database has the 60, and the sum that Redis has does not.
      const asked = await report('one', { opening: 2, want: 100n })
      assert.equal(isHeld(asked), undefined, 'the sum is read again')
      await checkpoint(asked, 60n)
      assert.equal(isHeld(await report('one', { opening: 2, want: 41n })), false)
      assert.equal(isHeld(await report('one', { opening: 2, want: 40n })), true)
    },
  },
  {
    name: 'a sum that was read before an account was opened again is not combined with its new totals',
    script: 'reserve',
    find: '  account.generation = account.generation + 1\nend\n\nlocal function take_members',
    replace: 'end\n\nlocal function take_members',
    async tell({ report, checkpoint }) {
      await report('other')
      await report('one', { settled: 60n, delivered: 60n })
      const asked = await report('other')
      // The sum is read now: 60. Before it is sent, the account is closed and opened again.
      await report('one', { opening: 2 })
      await checkpoint(asked, 60n)
      const again = await report('other', { want: 41n })
      assert.equal(isHeld(again), undefined, 'the sum is read again')
      await checkpoint(again, 60n)
      assert.equal(isHeld(await report('other', { want: 41n })), false)
      assert.equal(isHeld(await report('other', { want: 40n })), true)
    },
  },
  {
    name: 'a request must also fit into the next month, if a replica is there already',
    script: 'reserve',
    find: 'if is_begun[month] and tonumber(month) >= tonumber(report.month) then',
    replace: 'if month == report.month then',
    async tell({ report, checkpoint }) {
      await checkpoint(await report('one'), 0n)
      // The clock of the other one is ahead.
      await checkpoint(await report('ahead', { month: NEXT_MONTH, settled: 80n }), 0n, NEXT_MONTH)
      const asked = await report('one', { want: 50n })
      // Either month's sum may have to be read again.
      for (const month of asked?.accounts[0]?.unread.keys() ?? []) await checkpoint(asked, 0n, month)
      assert.equal(isHeld(await report('one', { want: 50n })), false)
      assert.equal(isHeld(await report('one', { want: 20n })), true)
    },
  },
]

describe('a rule of a hard spend limit over replicas', () => {
  let server: RedisServer
  let redis: Redis
  before(async () => {
    server = await startRedis()
    redis = new Redis({ path: server.socket, protocol: 2 })
  })
  after(async () => {
    redis.disconnect()
    await server.remove()
  })

  for (const { name, script, find, replace, tell } of stories) {
    it(name, async () => {
      await tell(await openAccount(redis, (_name, lua) => lua))
      const broken = await openAccount(redis, (file, lua) => {
        if (file !== script) return lua
        assert.equal(lua.split(find).length, 2, `the text to break occurs exactly once: ${find}`)
        return lua.replace(find, () => replace)
      })
      await assert.rejects(tell(broken), assert.AssertionError, 'without the rule it is overdrawn')
    })
  }
})
