import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { knownAddresses, memoryRateLimiter } from '../../src/workspaces/rate-limits/rate-limit.ts'
import { redisRateLimiter } from '../../src/workspaces/rate-limits/redis.ts'
import { scriptedLink } from '../support/scripted-link.ts'
import { turn } from '../support/hand-clock.ts'

const MINUTE_MS = 60_000
const workspace = { kind: 'workspace', id: 'ws' } as const
const address = (id: string) => ({ kind: 'address', id }) as const

function stage() {
  const scripted = scriptedLink()
  const state = { nowMs: 100 * MINUTE_MS }
  const limiter = redisRateLimiter(scripted.link, { now: () => state.nowMs, monotonic: () => 0 })
  return {
    ...scripted,
    limiter,
    clock: state,
    async answer(accepted: 0 | 1, count: number, atMs: number) {
      const [call] = scripted.sent.splice(0, 1)
      call?.answer([accepted, String(atMs), count])
      await turn()
      return call
    },
  }
}

describe('a rate limit over a scripted Redis', () => {
  it('[R1] follows Redis’ decision, in the minutes of Redis’ clock', async () => {
    const { limiter, join, answer, clock } = stage()
    join()
    const taken = limiter.take(workspace, 10)
    // Redis' clock is 70 s ahead.
    const call = await answer(1, 7, clock.nowMs + 70_000)
    assert.deepEqual([call?.keys, call?.values], [['weir:{rate workspace ws}'], [1, 1, 10]])
    const { full, secondsLeft, allowance } = await taken
    assert.deepEqual([full, secondsLeft], [undefined, 50])
    assert.deepEqual(allowance(), { limit: 10, remaining: 3, resetAt: (clock.nowMs + 2 * MINUTE_MS) / 1000 })
    const refused = limiter.take(workspace, 10)
    await answer(0, 10, clock.nowMs)
    assert.ok((await refused).full)
  })

  it('[R1] is read without counting a request', async () => {
    const { limiter, join, answer, clock } = stage()
    join()
    const looked = limiter.peek(workspace, 10)
    const call = await answer(0, 4, clock.nowMs)
    assert.deepEqual(call?.values, [0, 1, 10])
    assert.equal((await looked).allowance().remaining, 6)
  })

  it('[R1] is divided by the number of replicas without Redis, rounded down, less what was accepted in this minute', async () => {
    const { limiter, join, answer, clock, lose, state } = stage()
    state.replicas = 3
    join()
    for (const count of [1, 2]) {
      const taken = limiter.take(workspace, 11)
      await answer(1, count, clock.nowMs)
      await taken
    }
    const refused = limiter.take(workspace, 11)
    await answer(0, 11, clock.nowMs)
    await refused
    lose()
    assert.equal((await limiter.peek(workspace, 11)).allowance().remaining, 1, 'a third of 11, less the two')
    assert.equal((await limiter.take(workspace, 11)).full, undefined)
    assert.ok((await limiter.take(workspace, 11)).full)
    clock.nowMs += MINUTE_MS
    assert.equal((await limiter.peek(workspace, 11)).allowance().remaining, 3)
  })

  it('[R1] of a key is divided in the same way, less what the key has used in this minute', async () => {
    const { limiter, join, sent, clock, lose, state } = stage()
    state.replicas = 2
    join()
    const key = { id: 'key', limit: 5 }
    const taken = limiter.take(workspace, 100, key)
    sent.splice(0)[0]?.answer([1, String(clock.nowMs), 1, 1])
    assert.equal((await taken).full, undefined)
    lose()
    const next = await limiter.take(workspace, 100, key)
    assert.deepEqual([next.full, next.allowanceOfKey()?.remaining], [undefined, 0])
    assert.deepEqual((await limiter.take(workspace, 100, key)).full, { unit: 'requests', isOfKey: true, limit: 2 })
    assert.equal((await limiter.take(workspace, 100, { ...key, id: 'other' })).full, undefined)
    clock.nowMs += MINUTE_MS
    assert.equal((await limiter.take(workspace, 100, key)).full, undefined)
  })

  it('[R1] uses Redis’ clock even while Redis is unreachable', async () => {
    const { limiter, join, answer, clock, lose, state } = stage()
    state.replicas = 1
    join()
    const taken = limiter.take(workspace, 1)
    await answer(1, 1, clock.nowMs + 59_000)
    await taken
    lose()
    assert.ok((await limiter.take(workspace, 1)).full)
    clock.nowMs += 1000
    assert.equal((await limiter.take(workspace, 1)).full, undefined, 'Redis’ minute is over')
  })

  it('[R1] has a key for each of 100,000 addresses in a minute, one for the others, and one for each workspace', async () => {
    const { limiter, join, link, clock } = stage()
    join()
    const keys: string[] = []
    link.run = async (_script, [key = '']) => {
      keys.push(key)
      return [1, String(clock.nowMs), 1]
    }
    for (let index = 0; index < 100_001; index += 1) await limiter.take(address(String(index)), 1)
    await limiter.take(workspace, 1)
    assert.deepEqual(keys.slice(-3), ['weir:{rate address 99999}', 'weir:{rate address *}', 'weir:{rate workspace ws}'])
  })

  it('[R1] falls back to this replica’s part when Redis becomes unreachable during the call', async () => {
    const { limiter, join, sent, state } = stage()
    state.replicas = 2
    join()
    for (const expected of [true, false]) {
      const taken = limiter.take(workspace, 2)
      sent.splice(0, 1)[0]?.fail()
      assert.equal((await taken).full === undefined, expected)
    }
    const looked = limiter.peek(workspace, 2)
    sent.splice(0, 1)[0]?.fail()
    assert.equal((await looked).allowance().remaining, 0)
  })
})

describe('tokens per minute over a scripted Redis', () => {
  const key = { id: 'key', limit: 60 }

  it('are checked in the call that counts the request, and added in one more, in places of their own', async () => {
    const { limiter, join, sent, clock } = stage()
    join()
    const taken = limiter.take(workspace, 10, undefined, { limit: 100, key, isChecked: true })
    const [call] = sent.splice(0)
    const places = ['weir:{rate workspace ws} tokens', 'weir:{rate workspace ws} key tokens']
    assert.deepEqual(call?.keys, ['weir:{rate workspace ws}', ...places])
    assert.deepEqual(call.values, [1, 1, 10, 100, 60])
    call.answer([1, String(clock.nowMs), 3, 40, 5])
    const { full, tokens } = await taken
    const [ofWorkspace, ofKey] = [tokens?.allowanceOfSubject(), tokens?.allowanceOfKey()]
    assert.deepEqual([full, ofWorkspace?.remaining, ofKey?.remaining], [undefined, 60, 55])
    const spent = tokens?.spend(25)
    await turn()
    const [added] = sent.splice(0)
    const noLimit = Number.MAX_SAFE_INTEGER
    assert.deepEqual([added?.keys, added?.values], [places, [25, 2, noLimit, noLimit]], 'also beyond the limits')
    added?.fail()
    await spent
  })

  it('are only read for a request that takes none', async () => {
    const { limiter, join, sent, clock } = stage()
    join()
    const taken = limiter.take(workspace, 10, undefined, { limit: 100, key: undefined, isChecked: false })
    assert.deepEqual(sent[0]?.values, [1, 1, 10, Number.MAX_SAFE_INTEGER])
    sent[0].answer([1, String(clock.nowMs), 1, 120])
    const { full, tokens } = await taken
    assert.deepEqual([full, tokens?.allowanceOfSubject()?.remaining], [undefined, 0])
  })

  it('are counted by this replica as well as in Redis, although a full count of its own refuses nothing there', async () => {
    const { limiter, join, sent, clock, lose, state } = stage()
    state.replicas = 1
    join()
    const rates = { limit: 100, key: undefined, isChecked: true }
    const take = async () => {
      const taken = limiter.take(workspace, 99, undefined, rates)
      sent.splice(0)[0]?.answer([1, String(clock.nowMs), 1, 0])
      return taken
    }
    const { tokens } = await take()
    const spent = tokens?.spend(100)
    await turn()
    sent.splice(0)[0]?.answer([1, String(clock.nowMs), 100])
    await spent
    // Redis has lost its counts.
    assert.equal((await take()).full, undefined)
    lose()
    const refused = await limiter.take(workspace, 99, undefined, rates)
    assert.deepEqual(refused.full, { unit: 'tokens', isOfKey: false, limit: 100 })
    assert.equal(refused.allowanceOfSubject().remaining, 97, 'both requests are counted')
  })

  it('are divided by the number of replicas without Redis, less what this replica has used in this minute', async () => {
    const { limiter, join, sent, clock, lose, state } = stage()
    state.replicas = 3
    join()
    const rates = { limit: 100, key, isChecked: true }
    const taken = limiter.take(workspace, 99, undefined, rates)
    sent.splice(0)[0]?.answer([1, String(clock.nowMs), 1, 0, 0])
    const { tokens } = await taken
    lose()
    await tokens?.spend(19)
    assert.deepEqual(sent, [])
    const next = await limiter.take(workspace, 99, undefined, rates)
    const [ofWorkspace, ofKey] = [next.tokens?.allowanceOfSubject(), next.tokens?.allowanceOfKey()]
    assert.deepEqual([next.full, ofWorkspace?.remaining, ofKey?.remaining], [undefined, 14, 1])
    await next.tokens?.spend(1)
    const refused = await limiter.take(workspace, 99, undefined, rates)
    assert.deepEqual(refused.full, { unit: 'tokens', isOfKey: true, limit: 20 })
    clock.nowMs += MINUTE_MS
    assert.equal((await limiter.take(workspace, 99, undefined, rates)).full, undefined)
  })
})

describe('the addresses of one minute', () => {
  it('[R1] share one count beyond the first 100,000, until the next minute', () => {
    const addresses = knownAddresses(2)
    assert.deepEqual(
      ['a', 'b', 'c', 'a', 'b', 'd'].map((it) => addresses.place(it, 1)),
      ['a', 'b', '*', 'a', 'b', '*'],
    )
    assert.equal(addresses.place('c', 2), 'c')
  })

  it('[R1] start again in each minute, in memory', async () => {
    let now = 0
    const limiter = memoryRateLimiter({ now: () => now, monotonic: () => 0 })
    for (let index = 0; index <= 100_000; index += 1) await limiter.take(address(String(index)), 1)
    assert.ok((await limiter.take(address('new'), 1)).full)
    now = MINUTE_MS
    await limiter.take(address('other'), 1)
    assert.equal((await limiter.take(address('new'), 1)).full, undefined)
  })

  it('[R1] have a count each in memory up to 100,000, and one for the rest; workspaces are not affected', async () => {
    const limiter = memoryRateLimiter({ now: () => 0, monotonic: () => 0 })
    for (let index = 0; index < 100_000; index += 1) await limiter.take(address(String(index)), 2)
    assert.equal((await limiter.take(address('99999'), 2)).full, undefined)
    assert.ok((await limiter.take(address('99999'), 2)).full)
    assert.deepEqual(
      [
        (await limiter.take(address('x'), 2)).full === undefined,
        (await limiter.take(address('y'), 2)).full === undefined,
        (await limiter.take(address('z'), 2)).full === undefined,
      ],
      [true, true, false],
    )
    const taken = await limiter.take(workspace, 3)
    assert.deepEqual([taken.full, taken.secondsLeft], [undefined, 59])
    assert.deepEqual(taken.allowance(), { limit: 3, remaining: 2, resetAt: 60 })
  })
})
