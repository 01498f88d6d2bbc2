import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { Redis } from 'ioredis'
import { luaBeside } from '../../src/cluster/redis/script.ts'
import { accountScripts } from '../../src/workspaces/spend-limits/redis/account-scripts.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'

/** The rules of spending accounts across replicas, one call at a time, in a real Redis whose time the test sets. */

const source = new URL('../../src/workspaces/spend-limits/redis/', import.meta.url).href
const outside = `local function clock() return tonumber(redis.call('GET', 'now')) end\n`
const scripts = accountScripts((name) => (name === 'outside' ? outside : luaBeside(source, name)))
const EPOCH = 'weir:{replicas}'
const ACCOUNT = 'weir:{replicas}:spending acme'
const KEY_ACCOUNT = 'weir:{replicas}:spending key'
const START = 1_700_000_000_000
const HOUR = 3_600_000
const BILLION = 10 ** 9

let server: RedisServer
let redis: Redis
let now = START
let turn = 0
before(async () => {
  server = await startRedis()
  redis = new Redis({ path: server.socket })
})
after(async () => {
  redis.disconnect()
  await server.remove()
})
beforeEach(async () => {
  now = START
  turn = 0
  await redis.flushall()
  await begin('e')
})

/** Begins an epoch. Times in the hash of the epoch are microseconds. */
const begin = (epoch: string, quietUntil = 0): Promise<unknown> =>
  redis.hset(EPOCH, { epoch, quiet_until: quietUntil * 1000 })

interface Report {
  readonly opening?: number
  readonly month?: string
  readonly held?: string
  /** By month: what was settled, and how much of it is in the database. */
  readonly counts?: Readonly<Record<string, readonly [string, string]>>
  readonly limit?: string
  readonly known?: object
}
interface Call extends Report {
  readonly epoch?: string
  readonly turn?: number
  readonly owner?: string
  readonly predecessor?: string
  /** Of the account of the key, if there is one. */
  readonly key?: Report
  readonly wants?: readonly (readonly [amount: string, limits: readonly (readonly [number, string])[]])[]
}
interface Answer {
  readonly state: string
  readonly quiet: number
  readonly decisions: string
  readonly accounts: readonly {
    readonly generation: number
    readonly spent?: string
    readonly held: string
    readonly is_reached?: boolean
    readonly unread: Readonly<Record<string, unknown>>
    readonly known: Readonly<Record<string, unknown>>
  }[]
}

async function reserve(replica: string, call: Call = {}): Promise<Answer> {
  const { epoch = 'e', owner = `journal-${replica}`, predecessor = '', key, wants = [], ...own } = call
  const reports = [own, ...(key ? [key] : [])].map(
    ({ opening = 1, month = '1', held = '0', counts = {}, limit, known = {} }) => ({
      opening,
      month,
      held,
      counts,
      known,
      next_month: String(Number(month) + 1),
      ...(limit === undefined ? {} : { limit }),
    }),
  )
  const sent = { epoch, replica, owner, predecessor, turn: call.turn ?? ++turn, accounts: reports, wants }
  const keys = [EPOCH, ACCOUNT, ...(key ? [KEY_ACCOUNT] : [])]
  await redis.set('now', now)
  return JSON.parse(
    (await redis.eval(scripts.reserve.lua, keys.length, ...keys, JSON.stringify(sent))) as string,
  ) as Answer
}

/** One reservation in the account of the workspace. */
const want = (replica: string, amount: number | string, limit: number | string, call: Call = {}): Promise<string> =>
  reserve(replica, { ...call, wants: [[String(amount), [[1, String(limit)]]]] }).then(({ decisions }) => decisions)

/** Stores a sum that was read after the replica's last answer. */
async function checkpoint(
  base: number | string,
  about: Answer,
  month = '1',
  at = ACCOUNT,
  index = 0,
): Promise<unknown> {
  const { generation, unread } = about.accounts[index] ?? assert.fail()
  const sent = { epoch: 'e', generation, month, echo: unread[month] ?? {}, base: String(base) }
  await redis.set('now', now)
  return redis.eval(scripts.checkpoint.lua, 2, EPOCH, at, JSON.stringify(sent))
}

/** An account whose sum of the first month has been read. */
async function opened(base: number | string = 0, call: Call = {}): Promise<void> {
  assert.equal(await checkpoint(base, await reserve('a', call)), 1)
}

const about = async (replica: string, call: Call = {}): Promise<Answer['accounts'][number]> =>
  (await reserve(replica, call)).accounts[0] ?? assert.fail()

describe('the spending account in Redis', () => {
  it('reserves up to the limit, and not one unit more', async () => {
    assert.equal(await want('a', 1, 10), '?', 'before the sum is known')
    await opened(4)
    assert.deepEqual([await want('a', 6, 10), await want('a', 7, 10)], ['1', '0'])
    assert.equal(await want('a', 6, 10, { held: '1' }), '0')
    assert.equal(await want('b', 6, 10), '0', 'a holds one')
    await reserve('a')
    assert.equal(await want('b', 6, 10), '1')
  })

  it('counts what each replica holds and what it has settled since the sum was read', async () => {
    await opened(100)
    await reserve('a', { held: '10', counts: { 1: ['5', '0'] } })
    await reserve('b', { held: '20', counts: { 1: ['7', '0'] } })
    const answer = await about('c')
    assert.deepEqual([answer.spent, answer.held], ['112', '30'])
    assert.deepEqual([await want('c', 8, 150), await want('c', 9, 150)], ['1', '0'])
  })

  it('needs room in every account, and takes from none if one is full', async () => {
    const first = await reserve('a', { key: {} })
    await checkpoint(0, first)
    await checkpoint(0, first, '1', KEY_ACCOUNT, 1)
    const both = (amount: number, ofKey: number) =>
      reserve('a', {
        key: {},
        wants: [
          [
            String(amount),
            [
              [1, '100'],
              [2, String(ofKey)],
            ],
          ],
        ],
      })
    assert.deepEqual(
      [(await both(50, 49)).decisions, (await both(101, 200)).decisions, (await both(50, 50)).decisions],
      ['1', '0', '2'],
    )
    const { accounts } = await reserve('b', { key: {} })
    assert.deepEqual(
      accounts.map(({ held }) => held),
      ['50', '50'],
    )
  })

  it('makes reservations of one call one after the other', async () => {
    await opened()
    const limits = [[1, '10']] as const
    const { decisions } = await reserve('a', {
      wants: [
        ['6', limits],
        ['5', limits],
        ['4', limits],
      ],
    })
    assert.equal(decisions, '101')
  })

  it('adds amounts that are larger than a number of Lua holds exactly', async () => {
    const large = '999999999999999999999'
    await opened(large)
    assert.deepEqual(
      [await want('a', 1, '1000000000000000000000'), await want('a', 2, '1000000000000000000000')],
      ['1', '0'],
    )
    const { spent, held } = await about('a', { held: String(BILLION - 1), counts: { 1: ['1', '0'] } })
    assert.deepEqual([spent, held], ['1000000000000000000000', String(BILLION - 1)])
    assert.equal((await about('b', { held: '1' })).held, String(BILLION))
  })

  it('ignores a call of another epoch, and one that is late or repeated', async () => {
    await opened()
    await reserve('a', { turn: 10, held: '5' })
    for (const late of [{ epoch: 'earlier' }, { turn: 10 }, { turn: 9 }])
      assert.equal((await reserve('a', { held: '9', ...late })).state, 'ignored')
    assert.equal((await about('b')).held, '5')
    assert.equal((await reserve('a', { turn: 11 })).state, 'applied')
  })

  it('reserves nothing while replicas still reconnect, and says for how long', async () => {
    await opened()
    await begin('e', now + 2000)
    const { quiet, decisions } = await reserve('a', { wants: [['1', [[1, '10']]]] })
    assert.deepEqual([quiet, decisions], [2000, '?'])
    now += 2000
    assert.equal(await want('a', 1, 10), '1')
  })

  it('counts a replica for an hour after its last report, or until its successor has delivered its journal', async () => {
    await opened()
    await reserve('b', { held: '7' })
    now += HOUR
    assert.equal((await about('a')).held, '7')
    now += 1
    const { held, spent } = await about('a')
    assert.deepEqual([held, spent], ['0', undefined], 'the sum is read again: it may have settled what it held')
    await reserve('c', { held: '3' })
    await checkpoint(0, await reserve('a'))
    assert.equal((await about('d', { predecessor: 'journal-c' })).held, '0')
  })

  it('keeps the sum when a replica leaves that counted for nothing', async () => {
    await opened(9)
    await reserve('b', { counts: { 1: ['4', '4'] } })
    await checkpoint(13, await reserve('a'))
    assert.equal((await about('c', { predecessor: 'journal-b' })).spent, '13')
    await reserve('d', { counts: { 1: ['4', '0'] } })
    assert.equal((await about('e', { predecessor: 'journal-d' })).spent, undefined)
  })

  it('drops the totals of an account that its replica has opened again', async () => {
    await opened(10)
    await reserve('a', { counts: { 1: ['5', '0'] } })
    assert.equal((await about('b')).spent, '15')
    const again = await about('a', { opening: 2 })
    assert.equal(again.spent, undefined)
    await checkpoint(15, await reserve('a', { opening: 2 }))
    assert.equal((await about('b')).spent, '15')
  })

  it('knows in the next epoch what replicas held that have not come back', async () => {
    await opened(10)
    await reserve('b', { held: '6', counts: { 1: ['5', '2'] } })
    const { known } = await about('a', { held: '1' })
    assert.deepEqual(known, { b: ['journal-b', '1', '9'] }, 'without what was delivered')
    await redis.del(ACCOUNT)
    await begin('next')
    assert.equal((await about('a', { epoch: 'next', known })).held, '9')
    assert.equal(
      (await about('c', { epoch: 'next', known: { b: ['journal-b', '1', '12'] } })).held,
      '12',
      'the larger one',
    )
    assert.equal((await about('c', { epoch: 'next', known: { b: ['journal-b', '1', '11'] } })).held, '12')
    const back = await about('b', { epoch: 'next', held: '4' })
    assert.equal(back.held, '4')
    assert.deepEqual((await about('a', { epoch: 'next', known })).held, '4', 'it has said so itself')
    assert.deepEqual(
      (await about('d', { epoch: 'next', known: { x: ['journal-a', '1', '3'] } })).held,
      '4',
      'the journal of another',
    )
  })

  it('counts in the next epoch what it has of replicas that have not reported yet, and asks for its sum', async () => {
    await opened(10)
    await reserve('b', { held: '6', counts: { 1: ['5', '0'] } })
    await begin('next')
    const first = await about('a', { epoch: 'next' })
    assert.deepEqual([first.held, first.spent], ['11', undefined])
    await reserve('b', { epoch: 'next', held: '6', counts: { 1: ['5', '0'] } })
    const { held, known } = await about('a', { epoch: 'next' })
    assert.deepEqual([held, known], ['6', { b: ['journal-b', '1', '11'] }])
  })

  it('says once that a limit is reached', async () => {
    await opened(99)
    assert.equal((await about('a', { limit: '100' })).is_reached, undefined)
    assert.equal((await about('a', { limit: '100', counts: { 1: ['1', '0'] } })).is_reached, true)
    assert.equal((await about('b', { limit: '100' })).is_reached, false)
    assert.equal((await about('b', { limit: '50' })).is_reached, true, 'another limit')
  })

  it('counts the next month too if another replica has entered it', async () => {
    await opened(10)
    assert.equal(await want('a', 1, 10, { month: '1' }), '0')
    const ahead = await reserve('b', { month: '2' })
    assert.deepEqual(Object.keys(ahead.accounts[0]?.unread ?? {}), ['2'])
    assert.equal(await want('a', 1, 20), '?', 'it may be settled in a month whose sum is not known')
    await checkpoint(20, ahead, '2')
    assert.deepEqual(
      [await want('a', 1, 20), await want('a', 1, 21), await want('b', 1, 20, { month: '2' })],
      ['0', '1', '0'],
    )
  })

  it('ends a day after the last report', async () => {
    await opened()
    assert.equal(Math.round((await redis.pttl(ACCOUNT)) / HOUR), 24)
  })
})

describe('a checkpoint of an account', () => {
  it('replaces what the sum includes, and only that', async () => {
    await opened(0)
    const before = await reserve('a', { counts: { 1: ['5', '0'] } })
    assert.equal(before.accounts[0]?.spent, '5')
    now += 61_000
    const asked = await reserve('a', { counts: { 1: ['5', '5'] } })
    assert.deepEqual(asked.accounts[0]?.unread, { 1: { a: ['5', '5'] } })
    await reserve('a', { counts: { 1: ['8', '5'] } })
    assert.equal(await checkpoint(5, asked), 1)
    assert.equal((await about('a', { counts: { 1: ['8', '5'] } })).spent, '8')
  })

  it('changes nothing if the account has changed since, or the month is not there', async () => {
    const first = await reserve('a')
    assert.equal(await checkpoint(1, first), 1)
    assert.equal(await checkpoint(2, first), 0)
    assert.equal((await about('a')).spent, '1')
    await reserve('b')
    assert.equal(await checkpoint(2, first), 0, 'another replica has joined')
    await reserve('b', { counts: { 1: ['1', '1'] } })
    await reserve('b', { opening: 2 })
    assert.equal(await checkpoint(2, first), 0, 'sums were dropped')
    assert.equal(await checkpoint(3, await reserve('a'), '7'), 0)
  })

  /** What a has settled and delivered; the months whose sums it is asked to read. */
  const asked = async (settled: number, delivered: number): Promise<string> => {
    const { unread } = await about('a', { counts: { 1: [String(settled), String(delivered)] } })
    return Object.keys(unread).join()
  }
  /** Reads the sums of both months, after `first`. */
  const readBoth = async (first: Call): Promise<void> => {
    await opened(5, first)
    assert.equal(await checkpoint(0, await reserve('a', first), '2'), 1)
  }

  it('is made after a second if it was read while requests were settled, and everything is in the database', async () => {
    await readBoth({ counts: { 1: ['5', '0'] } })
    now += 999
    assert.equal(await asked(5, 5), '')
    now += 1
    assert.deepEqual([await asked(5, 4), await asked(5, 5)], ['', '1'])
  })

  it('is made after ten seconds if nothing was settled meanwhile, and something has been since', async () => {
    await readBoth({ counts: { 1: ['5', '5'] } })
    now += 9999
    assert.equal(await asked(8, 8), '')
    now += 1
    assert.deepEqual([await asked(5, 5), await asked(8, 8)], ['', '1'])
  })

  it('is made after a minute in any case, since rows may have been corrected', async () => {
    await readBoth({ counts: { 1: ['5', '5'] } })
    now += 59_999
    assert.equal(await asked(5, 5), '')
    now += 1
    assert.equal(await asked(5, 5), '1')
  })

  it('does not wait for a replica that has not reported for five seconds', async () => {
    await readBoth({ counts: { 1: ['5', '5'] } })
    now += 60_000
    await reserve('b', { counts: { 1: ['3', '0'] } })
    now += 4999
    assert.equal(await asked(5, 5), '')
    now += 1
    assert.equal(await asked(5, 5), '1')
  })

  it('is asked for the next month before it begins, and not by a call that wants a reservation', async () => {
    await opened()
    const wants = [['1', [[1, '10']]]] as const
    assert.deepEqual((await about('a', { wants })).unread, {})
    assert.deepEqual((await about('a')).unread, { 2: {} })
  })
})
