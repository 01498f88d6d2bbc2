import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { sydneyMonth } from '../../src/shared/money/sydney-time.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import type { AlarmClock } from '../../src/shared/clock.ts'
import type { SpendingKey } from '../../src/workspaces/spend-limits/spending.ts'
import type { UsageStore } from '../../src/billing/usage/usage-store.ts'
import { spendScripts } from '../../src/workspaces/spend-limits/redis/account-scripts.ts'
import { redisSpending } from '../../src/workspaces/spend-limits/redis/spending.ts'
import { scriptedLink } from '../support/scripted-link.ts'
import { handClock, turn } from '../support/hand-clock.ts'

const LEASE_MS = 5000
const month = sydneyMonth(Date.UTC(2026, 10, 15))
const CENT = 10_000_000_000n

/** What the replica said, as `reserve.lua` reads it. */
interface SentReport {
  readonly replica: string
  readonly epoch: string
  readonly turn: number
  readonly opening: number
  readonly month: string
  readonly next_month: string
  readonly held: string
  readonly counts: Readonly<Record<string, readonly [settled: string, delivered: string]>>
  readonly wants: readonly (readonly [amount: string, limit: string])[]
  readonly limit?: string
  readonly known: object
}

/** A call about one account, in one piece. */
function flat(text: string): SentReport {
  const { accounts, wants, ...call } = JSON.parse(text) as {
    readonly accounts: readonly object[]
    readonly wants: readonly (readonly [amount: string, limits: readonly (readonly [number, string])[]])[]
  }
  const limits = wants.map(([amount, [limit]]) => [amount, limit?.[1]])
  return { ...call, ...accounts?.[0], wants: limits } as unknown as SentReport
}

/** An answer about one account. */
function told({ quiet = 0, decisions = '', ...about }: { quiet?: number; decisions?: string }): string {
  const account = { generation: 1, spent: '0', held: '0', unread: {}, known: {}, ...about }
  return JSON.stringify({ state: 'applied', quiet, decisions, accounts: [account] })
}

/** One replica that keeps the limit of one workspace, on a Redis and a database that the test plays. */
async function stage(
  t: TestContext,
  {
    isSoft = false,
    spendLimit = 100n,
    first = 0n,
  }: { isSoft?: boolean; spendLimit?: bigint | null; first?: bigint } = {},
) {
  const hand = handClock(t.mock.timers)
  let now = month.to - 100_000
  const clock: AlarmClock = { ...hand, now: () => now }
  const scripted = scriptedLink({ leaseMs: LEASE_MS })
  scripted.state.proven = { sinceMs: 0, untilMs: Infinity }
  const state = {
    workspace: {
      id: 'ws',
      name: 'acme',
      spendLimit: spendLimit === null ? null : { amount: spendLimit, isSoft },
    } as Workspace,
  }
  const reads: { readonly month: number; answer(amount: bigint): void; fail(): void }[] = []
  const deliveries: { resolve(isDelivered: boolean): void; reject(error: Error): void }[] = []
  const reached: bigint[] = []
  const store = {
    usageSums: async () => [{ group: 'ws', amount: first }],
    usageTotal: ({ from }: { from: number }) =>
      new Promise((resolve, reject) => {
        reads.push({
          month: from,
          answer: (amount) => resolve({ amount }),
          fail: () => reject(new Error('the database is away')),
        })
      }),
  } as unknown as UsageStore
  const spending = await redisSpending({
    link: scripted.link,
    clock,
    store,
    journal: { owner: 'journal', predecessor: 'earlier' },
    workspace: () => state.workspace,
    delivered: () => new Promise((resolve, reject) => deliveries.push({ resolve, reject })),
    events: { limitReached: (_workspace, spent) => reached.push(spent) },
  })
  const said = (): SentReport => flat(String(scripted.sent[0]?.values[0] ?? '{"wants":[]}'))

  return {
    ...scripted,
    spending,
    linkState: scripted.state,
    state,
    reads,
    deliveries,
    reached,
    said,
    setTime: (at: number) => void (now = at),
    async pass(ms: number) {
      hand.advance(ms)
      await turn()
    },
    hold(most: bigint, key?: SpendingKey) {
      const outcome = { kind: 'waiting', message: '' }
      const hold = spending.hold(state.workspace, most, key)
      hold.then(
        () => (outcome.kind = 'held'),
        (error: { code: string; message: string }) =>
          Object.assign(outcome, { kind: error.code, message: error.message }),
      )
      return { outcome, hold }
    },
    /** Redis answers the oldest call. */
    async answer(answer: object = {}): Promise<SentReport> {
      const call = said()
      const decisions = '1'.repeat(call.wants.length)
      scripted.next(spendScripts.reserve).answer(told({ decisions, ...answer }))
      await turn()
      return call
    },
  }
}

describe('a hard spend limit whose Redis is scripted', () => {
  it('[S1] calls Redis and follows its decision, with the figures of the other replicas', async (t) => {
    const { join, hold, answer, sent } = await stage(t)
    join()
    const [first, second] = [hold(60n), hold(2n * CENT)]
    await turn()
    assert.deepEqual((await answer()).wants, [['60', '100']], 'one call at a time')
    const asked = await answer({ decisions: '0', spent: String(3n * CENT), held: String(4n * CENT) })
    assert.deepEqual([asked.held, asked.wants, asked.turn], ['60', [[String(2n * CENT), '100']], 2])
    assert.equal(first.outcome.kind, 'held')
    assert.equal(second.outcome.kind, 'spend_limit_exceeded')
    assert.match(
      second.outcome.message,
      /A\$0\.03 is spent, running requests may cost up to A\$0\.04, and this .* A\$0\.02/,
    )
    assert.deepEqual(sent, [])
  })

  it('[S1] reports at once what was reserved without a limit while a call was in flight', async (t) => {
    const { join, heartbeat, hold, answer, said, sent } = await stage(t, { isSoft: true })
    join()
    await hold(10n).hold
    await answer()
    heartbeat()
    await turn()
    assert.equal(said().held, '10')
    await hold(5n).hold
    assert.equal(sent.length, 1, 'one call at a time')
    await answer()
    assert.equal(said().held, '15')
  })

  it('[S1] does not report a workspace that was only refused while Redis was unreachable', async (t) => {
    const { join, heartbeat, hold, pass, sent } = await stage(t)
    const { outcome } = hold(10n)
    await pass(1000)
    assert.equal(outcome.kind, 'service_unavailable')
    join()
    await pass(4000)
    heartbeat()
    await turn()
    assert.deepEqual(sent, [])
  })

  it('[S1] ignores an answer that is older than the lease', async (t) => {
    const { join, hold, answer, pass, lose } = await stage(t)
    join()
    const exact = hold(10n)
    await pass(LEASE_MS)
    await answer()
    assert.equal(exact.outcome.kind, 'held', 'one of exactly that age is good')
    const late = hold(10n)
    await pass(LEASE_MS + 1)
    await answer()
    assert.equal(late.outcome.kind, 'waiting')
    lose()
    join({ incarnation: 2 })
    assert.deepEqual((await answer()).held, '10', 'it says again what it has')
    assert.equal(late.outcome.kind, 'held')
  })

  it('[S1] repeats a call that Redis ignored, or that an earlier membership sent', async (t) => {
    const { join, hold, answer, next, heartbeat, lose } = await stage(t)
    join()
    const { outcome } = hold(10n)
    next(spendScripts.reserve).answer(JSON.stringify({ state: 'ignored' }))
    await turn()
    assert.equal(outcome.kind, 'waiting')
    heartbeat()
    const call = next(spendScripts.reserve)
    lose()
    join({ incarnation: 2, epoch: 'two' })
    call.answer(told({ decisions: '1' }))
    await turn()
    assert.equal(outcome.kind, 'waiting')
    heartbeat()
    assert.equal((await answer()).epoch, 'two')
    assert.equal(outcome.kind, 'held')
  })

  it('[S1] refuses with 503 if Redis fails the call, and waits if the connection was lost', async (t) => {
    const { join, hold, next, lose, pass } = await stage(t)
    join()
    const refused = hold(10n)
    next(spendScripts.reserve).fail()
    await turn()
    assert.equal(refused.outcome.kind, 'service_unavailable')
    const waiting = hold(10n)
    const call = next(spendScripts.reserve)
    lose()
    call.fail()
    await turn()
    await pass(999)
    assert.equal(waiting.outcome.kind, 'waiting')
    await pass(1)
    assert.equal(waiting.outcome.kind, 'service_unavailable', 'after a second without Redis')
    const late = hold(10n)
    await turn()
    assert.equal(late.outcome.kind, 'service_unavailable')
  })

  it('[S1] serves without Redis within what Redis counts for this replica, and not a unit more', async (t) => {
    const { join, hold, answer, lose, spending, state, pass } = await stage(t)
    join()
    const first = await Promise.all([hold(30n).hold, answer()]).then(([it]) => it)
    const second = await Promise.all([hold(30n).hold, answer()]).then(([it]) => it)
    lose()
    first.settle(10n)
    await turn()
    const over = hold(21n)
    assert.equal(over.outcome.kind, 'waiting')
    const fits = await spending.hold(state.workspace, 20n)
    await pass(1000)
    assert.equal(over.outcome.kind, 'service_unavailable')
    second.settle(30n)
    fits.settle(20n)
    await assert.rejects(spending.hold(state.workspace, 1n), { code: 'service_unavailable' })
  })

  it('[S1] stops using its allotment a tenth of the lease before the proof ends', async (t) => {
    const { join, hold, answer, lose, linkState, pass, spending, state } = await stage(t)
    join()
    const first = await Promise.all([hold(30n).hold, answer()]).then(([it]) => it)
    linkState.proven = { sinceMs: 0, untilMs: 1000 + 2000 + LEASE_MS * 0.1 }
    lose()
    first.settle(0n)
    await pass(1999)
    ;(await spending.hold(state.workspace, 30n)).settle(0n)
    await pass(1)
    await assert.rejects(spending.hold(state.workspace, 30n), { code: 'service_unavailable' })
  })

  it('[S1] makes no reservation while a new epoch admits nothing', async (t) => {
    const { join, hold, answer, pass, sent, lose } = await stage(t)
    join()
    const { outcome } = hold(10n)
    await answer({ quiet: 400, decisions: '?' })
    assert.deepEqual([outcome.kind, sent], ['waiting', []])
    await pass(399)
    assert.deepEqual(sent, [])
    await pass(1)
    await answer()
    assert.equal(outcome.kind, 'held')
    const second = hold(10n)
    await answer({ quiet: 400, decisions: '?' })
    lose()
    join({ epoch: 'two', incarnation: 2 })
    await answer()
    assert.equal(second.outcome.kind, 'held', 'another epoch has its own quiet time')
  })

  it('[S1] reads a sum that Redis does not have before anything is decided', async (t) => {
    const { join, hold, answer, reads, next } = await stage(t)
    join()
    const { outcome } = hold(10n)
    const echo = { one: ['0', '0'] }
    await answer({ decisions: '?', spent: undefined, unread: { [month.from]: echo } })
    assert.equal(reads[0]?.month, month.from)
    reads[0]?.answer(42n)
    await turn()
    const checkpoint = next(spendScripts.checkpoint)
    assert.deepEqual(JSON.parse(String(checkpoint.values[0])), {
      epoch: 'one',
      generation: 1,
      month: String(month.from),
      echo,
      base: '42',
    })
    checkpoint.answer(1)
    await turn()
    await answer()
    assert.equal(outcome.kind, 'held')
  })

  it('[S1] refuses with 503 if that sum cannot be read', async (t) => {
    const { join, hold, answer, reads } = await stage(t)
    join()
    const { outcome } = hold(10n)
    await answer({ decisions: '?', spent: undefined, unread: { [month.from]: {} } })
    reads[0]?.fail()
    await turn()
    assert.equal(outcome.kind, 'service_unavailable')
  })

  it('[S1] keeps deciding while a sum is refreshed, even if that fails', async (t) => {
    const { join, hold, answer, reads, heartbeat, next } = await stage(t)
    join()
    hold(10n)
    await answer()
    heartbeat()
    await answer({ unread: { [month.to]: {} } })
    assert.equal(reads[0]?.month, month.to)
    const during = hold(10n)
    await answer()
    assert.equal(during.outcome.kind, 'held')
    heartbeat()
    await answer({ unread: { [month.to]: {} } })
    assert.equal(reads.length, 1, 'one at a time')
    const waiting = hold(10n)
    reads[0]?.fail()
    await turn()
    await answer()
    assert.equal(waiting.outcome.kind, 'held')
    heartbeat()
    await answer({ unread: { [month.to]: {} } })
    reads[1]?.answer(7n)
    await turn()
    assert.match(String(next(spendScripts.checkpoint).values[0]), /"base":"7"/)
  })

  it('loads its scripts with the link, and names the journal that it writes and the one that it found', async (t) => {
    const { join, hold, answer, followers } = await stage(t)
    assert.deepEqual(followers[0]?.scripts, [spendScripts.reserve, spendScripts.checkpoint])
    join()
    hold(10n)
    const said = (await answer()) as object
    assert.deepEqual({ ...said, owner: 'journal', predecessor: 'earlier' }, said)
  })

  it('sends its complete state after it has rejoined, following a call that failed or was too late', async (t) => {
    const { join, hold, answer, next, heartbeat, pass, sent } = await stage(t)
    join()
    const first = await Promise.all([hold(30n).hold, answer()]).then(([it]) => it)
    first.settle(0n)
    next(spendScripts.reserve).fail()
    await turn()
    await pass(60_000)
    heartbeat()
    assert.equal((await answer()).held, '0', 'what Redis has not confirmed is in use')
    await pass(60_000)
    heartbeat()
    assert.deepEqual(sent, [])
  })

  it('sends its complete state after it has rejoined, even after its first call', async (t) => {
    const { join, lose, hold, answer, sent } = await stage(t)
    join()
    await Promise.all([hold(30n).hold, answer()])
    assert.deepEqual(sent, [])
    lose()
    join()
    assert.equal((await answer()).held, '30')
  })

  it('sends its complete state: what it holds, what it has settled by month, and how much of that is delivered', async (t) => {
    const { join, hold, answer, heartbeat, deliveries, setTime } = await stage(t)
    join()
    const first = await Promise.all([hold(30n).hold, answer()]).then(([it]) => it)
    await Promise.all([hold(20n).hold, answer()])
    first.settle(25n)
    const told = await answer()
    assert.deepEqual(told.counts, { [month.from]: ['25', '0'] })
    assert.deepEqual(
      [told.replica, told.held, told.limit, told.month, told.next_month],
      ['one', '20', '100', String(month.from), String(month.to)],
    )
    heartbeat()
    await answer()
    deliveries[0]?.resolve(true)
    await turn()
    assert.deepEqual((await answer()).counts, { [month.from]: ['25', '25'] })
    setTime(month.to)
    heartbeat()
    assert.deepEqual((await answer()).counts, { [month.to]: ['0', '0'] }, 'a month that is all delivered is over')
  })

  it('reports what was delivered while the workspace had no limit once it has one again', async (t) => {
    const { join, hold, answer, heartbeat, deliveries, state, sent, pass } = await stage(t)
    join()
    const first = await Promise.all([hold(30n).hold, answer()]).then(([it]) => it)
    first.settle(25n)
    await answer()
    const { workspace } = state
    state.workspace = { ...workspace, spendLimit: null }
    heartbeat()
    deliveries[0]?.resolve(true)
    await pass(600_000)
    assert.deepEqual(sent, [])
    state.workspace = workspace
    heartbeat()
    assert.deepEqual((await answer()).counts, { [month.from]: ['25', '25'] })
  })

  it('reports nothing as delivered while the journal does not keep up', async (t) => {
    const { join, hold, answer, heartbeat, deliveries, sent } = await stage(t)
    join()
    const first = await Promise.all([hold(30n).hold, answer()]).then(([it]) => it)
    first.settle(25n)
    await answer()
    for (const end of [() => deliveries[0]?.resolve(false), () => deliveries[1]?.reject(new Error('away'))]) {
      heartbeat()
      await answer()
      end()
      await turn()
      assert.deepEqual(sent, [])
    }
    heartbeat()
    assert.deepEqual((await answer()).counts, { [month.from]: ['25', '0'] })
  })

  it('passes on the last known state of other replicas in the first call of an epoch, unless it is an hour old', async (t) => {
    const { join, hold, answer, heartbeat, lose, pass } = await stage(t)
    const known = { other: ['their journal', '1', '5'] }
    join()
    hold(10n)
    await answer({ known })
    heartbeat()
    assert.deepEqual((await answer({ known })).known, {}, 'not in the same epoch')
    lose()
    join({ epoch: 'two', incarnation: 2 })
    assert.deepEqual((await answer({ known })).known, known)
    lose()
    await pass(3_600_000)
    join({ epoch: 'three', incarnation: 3 })
    assert.deepEqual((await answer()).known, {})
  })

  it('frees a raised reservation that was granted after the request ended', async (t) => {
    const { join, hold, answer, heartbeat } = await stage(t)
    join()
    const first = await Promise.all([hold(10n).hold, answer()]).then(([it]) => it)
    const raised = first.raise(40n)
    await turn()
    first.settle(10n)
    assert.deepEqual((await answer()).wants, [['30', '100']])
    await raised
    heartbeat()
    assert.equal((await answer()).held, '30')
    assert.equal((await answer()).held, '0')
  })

  it('shows only the other requests when it refuses a raise', async (t) => {
    const { join, hold, answer } = await stage(t, { spendLimit: 10n * CENT })
    join()
    const first = await Promise.all([hold(2n * CENT).hold, answer()]).then(([it]) => it)
    const raised = assert.rejects(first.raise(9n * CENT), /running requests may cost up to A\$0\.03, .* up to A\$0\.09/)
    await turn()
    await answer({ decisions: '0', held: String(5n * CENT) })
    await raised
  })
})

describe('the report about a workspace', () => {
  it('is sent at once, even in the turn in which there was nothing to send, or no Redis', async (t) => {
    const { join, spending, state, sent } = await stage(t)
    spending.headers(state.workspace)
    join()
    assert.equal(sent.length, 1)
  })
})

describe('the report about a workspace every second', () => {
  it('continues for five seconds after its last use, and while a request runs', async (t) => {
    const { join, hold, answer, heartbeat, pass, sent } = await stage(t)
    join()
    const first = await Promise.all([hold(30n).hold, answer()]).then(([it]) => it)
    await pass(60_000)
    heartbeat()
    await answer()
    first.settle(0n)
    await answer()
    await pass(4999)
    heartbeat()
    await answer()
    await pass(1)
    heartbeat()
    assert.deepEqual(sent, [])
  })

  it('continues while a sum has to be read', async (t) => {
    const { join, hold, answer, heartbeat, pass, sent } = await stage(t)
    join()
    const first = await Promise.all([hold(30n).hold, answer()]).then(([it]) => it)
    first.settle(0n)
    await answer({ unread: { [month.to]: {} } })
    await pass(60_000)
    heartbeat()
    assert.equal(sent.length, 1)
  })

  it('is not sent without a limit', async (t) => {
    const { join, hold, heartbeat, sent, state, spending } = await stage(t, { spendLimit: null })
    join()
    assert.deepEqual(spending.headers(state.workspace), {})
    const it = await hold(30n).hold
    heartbeat()
    it.settle(1n)
    assert.deepEqual([sent, state.workspace.spendLimit], [[], null])
  })
})

describe('a soft spend limit whose Redis is scripted', () => {
  it('does not wait for Redis, and reports once that it is reached', async (t) => {
    const { join, hold, answer, reached, spending, state, heartbeat } = await stage(t, { isSoft: true })
    join()
    const running = await hold(1000n).hold
    assert.equal((await answer({ spent: '150', is_reached: true })).held, '1000')
    assert.deepEqual(reached, [150n])
    running.settle(7n)
    running.settle(8n)
    assert.equal(spending.headers(state.workspace)['X-Spend-Alert'], 'soft limit reached')
    heartbeat()
    const { held, counts } = await answer()
    assert.deepEqual([held, Object.values(counts)], ['0', [['7', '0']]])
  })

  it('shows what all replicas have spent: the last answer, plus what was settled here since', async (t) => {
    const { join, hold, answer, spending, state, pass, sent } = await stage(t, { isSoft: true, first: 2n * CENT })
    const used = () => spending.headers(state.workspace)['X-Spend-Used']
    assert.equal(used(), '0.02', 'before Redis was asked, the sum of the start')
    join()
    const it = await hold(10n).hold
    while (sent.length > 0) await answer({ spent: String(5n * CENT) })
    assert.equal(used(), '0.05')
    it.settle(3n * CENT)
    assert.equal(used(), '0.08')
    await pass(999)
    assert.equal(used(), '0.08')
    assert.deepEqual(sent, [])
    await pass(1)
    assert.equal(used(), '0.08')
    assert.equal(sent.length, 1, 'after a second it asks again')
    await answer({ spent: String(9n * CENT) })
    assert.equal(used(), '0.09')
  })

  it('starts at nothing in a new month', async (t) => {
    const { join, hold, answer, spending, state, setTime } = await stage(t, { isSoft: true, first: 2n * CENT })
    join()
    const it = await hold(10n).hold
    await answer({ spent: String(5n * CENT) })
    setTime(month.to)
    assert.equal(spending.headers(state.workspace)['X-Spend-Used'], '0.00')
    it.settle(CENT, month.to)
    assert.equal(spending.headers(state.workspace)['X-Spend-Used'], '0.01')
  })
})

describe('a replica that leaves', () => {
  it('reports that everything is delivered, if it is', async (t) => {
    const { join, hold, answer, spending, deliveries } = await stage(t)
    join()
    const first = await Promise.all([hold(30n).hold, answer()]).then(([it]) => it)
    first.settle(25n)
    await answer()
    const closed = spending.close()
    deliveries[0]?.resolve(true)
    await turn()
    const told = await answer()
    assert.deepEqual([told.held, told.counts], ['0', { [month.from]: ['25', '25'] }])
    await turn()
    await answer()
    await closed
  })

  it('does not report workspaces that are not in use', async (t) => {
    const { join, hold, answer, spending, pass, sent } = await stage(t)
    join()
    const first = await Promise.all([hold(30n).hold, answer()]).then(([it]) => it)
    first.settle(0n)
    await answer()
    await pass(5000)
    await spending.close()
    assert.deepEqual(sent, [])
  })

  it('waits at most two seconds for the database and two for Redis', async (t) => {
    const { join, hold, answer, spending, sent, pass } = await stage(t)
    join()
    const first = await Promise.all([hold(30n).hold, answer()]).then(([it]) => it)
    first.settle(25n)
    await answer()
    let isClosed = false
    const closed = spending.close().then(() => (isClosed = true))
    await pass(1999)
    assert.deepEqual(sent, [])
    await pass(1)
    assert.equal(sent.length, 1, 'it says what it has')
    await pass(1999)
    assert.ok(!isClosed)
    await pass(1)
    await closed
  })
})

describe('the account of a key that no request uses', () => {
  const key: SpendingKey = { id: 'key', perMonth: 100n }
  const HOUR_MS = 3_600_000

  /** A request of the key that cost nothing has ended, and Redis has that. Returns the number of the opening. */
  async function useOnce({ hold, answer }: Awaited<ReturnType<typeof stage>>): Promise<number> {
    const { hold: held } = hold(30n, key)
    await answer()
    const it = await held
    it.settle(0n)
    return (await answer()).opening
  }

  it('is closed an hour after its last report, and opened again under another number', async (t) => {
    const here = await stage(t, { spendLimit: null })
    here.join()
    const first = await useOnce(here)
    await here.pass(HOUR_MS - 1)
    here.heartbeat()
    assert.equal(await useOnce(here), first, 'a millisecond earlier it is the same')
    await here.pass(HOUR_MS)
    here.heartbeat()
    assert.notEqual(await useOnce(here), first)
  })

  it('is not reported again when it is closed', async (t) => {
    const here = await stage(t, { spendLimit: null })
    here.join()
    await useOnce(here)
    await here.pass(HOUR_MS)
    here.heartbeat()
    here.lose()
    here.join({ epoch: 'two', incarnation: 2 })
    assert.deepEqual(here.sent, [])
  })

  for (const most of [30n, 0n]) {
    it(`stays while a request runs that may cost ${most}`, async (t) => {
      const here = await stage(t, { spendLimit: null })
      here.join()
      const first = await useOnce(here)
      const { hold: held } = here.hold(most, key)
      if (most > 0n) await here.answer()
      const running = await held
      await here.pass(HOUR_MS)
      here.heartbeat()
      if (most > 0n) await here.answer()
      running.settle(7n)
      const { opening, counts } = await here.answer()
      assert.deepEqual([opening, Object.values(counts)], [first, [['7', '0']]])
    })
  }

  it('is closed after a request that was refused', async (t) => {
    const here = await stage(t, { spendLimit: null })
    here.join()
    const first = await useOnce(here)
    const { outcome } = here.hold(200n, key)
    await here.answer({ decisions: '0' })
    assert.equal(outcome.kind, 'spend_limit_exceeded')
    await here.pass(HOUR_MS)
    here.heartbeat()
    assert.notEqual(await useOnce(here), first)
  })

  it('stays until the database has what was settled, and Redis knows that', async (t) => {
    const here = await stage(t, { spendLimit: null })
    here.join()
    const { hold: held } = here.hold(30n, key)
    await here.answer()
    ;(await held).settle(25n)
    const { opening: first } = await here.answer()
    await here.pass(HOUR_MS)
    here.heartbeat()
    here.deliveries[0]?.resolve(true)
    await turn()
    here.next(spendScripts.reserve).fail()
    await here.pass(HOUR_MS)
    here.heartbeat()
    const delivered = await here.answer()
    assert.deepEqual([delivered.opening, Object.values(delivered.counts)], [first, [['25', '25']]])
    await here.pass(HOUR_MS)
    here.heartbeat()
    assert.notEqual(await useOnce(here), first)
  })

  it('stays while Redis has not answered, and while a sum is read', async (t) => {
    const here = await stage(t, { spendLimit: null })
    here.join()
    const first = await useOnce(here)
    const { outcome } = here.hold(30n, key)
    await here.pass(HOUR_MS)
    here.heartbeat()
    await here.answer()
    assert.equal(outcome.kind, 'waiting', 'the answer is older than the lease')
    here.heartbeat()
    const asked = await here.answer({ decisions: '?', spent: undefined, unread: { [month.from]: {} } })
    assert.equal(asked.opening, first)
    await here.pass(HOUR_MS)
    here.heartbeat()
    await here.answer({ spent: undefined, unread: { [month.from]: {} } })
    here.reads[0]?.answer(0n)
    await turn()
    here.next(spendScripts.checkpoint).answer(1)
    await turn()
    assert.equal((await here.answer()).opening, first)
    assert.equal(outcome.kind, 'held')
  })
})
