import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { promptHasher } from '../../src/engines/prefix/prompt-blocks.ts'
import { saltedPrompt, type Prompt } from '../../src/engines/prefix/warm-prefixes.ts'
import type { EngineAddress } from '../../src/engines/address.ts'
import { byPrefix, leastBusy, type Balance } from '../../src/engines/balance.ts'
import { noActivity } from '../../src/engines/server-activity.ts'
import type { Client } from '../../src/engines/http-client/index.ts'

type Scripted = EngineAddress & { drained: boolean }

function addresses(count = 3): Scripted[] {
  return Array.from({ length: count }, (_, index) => {
    const address: Scripted = {
      url: `http://engine-${index}/v1`,
      prefix: '/v1',
      client: undefined as unknown as Client,
      query: () => Promise.reject(new Error('not asked')),
      inFlight: 0,
      healthy: true,
      drained: false,
      isDrained: () => address.drained,
      activity: noActivity(),
      close: () => Promise.resolve(),
    }
    return address
  })
}

function promptOf(characters: number, seed: number): Prompt {
  const hasher = promptHasher()
  hasher.beginMessage(false)
  hasher.text(`${seed} `.repeat(characters).slice(0, characters))
  hasher.endMessage()
  return saltedPrompt(hasher.result(), 'workspace')
}

const none = new Set<EngineAddress>()
const nextOf = (balance: Balance, all: readonly EngineAddress[], prompt?: Prompt, tried = none): number => {
  const chosen = balance.next(prompt, tried)
  return chosen ? all.indexOf(chosen.address) : -1
}

/** Both ways treat calls without a prompt alike. */
const ways: readonly (readonly [string, (all: readonly EngineAddress[]) => Balance])[] = [
  ['least busy', leastBusy],
  ['by prefix', (all) => byPrefix(all, 1000)],
]

for (const [name, balanceOf] of ways) {
  describe(`a call without a prompt, ${name}`, () => {
    it('goes to the address with the fewest calls, and to the first of several', () => {
      const all = addresses()
      const balance = balanceOf(all)
      assert.equal(nextOf(balance, all), 0)
      all[0]!.inFlight = 2
      all[1]!.inFlight = 1
      all[2]!.inFlight = 1
      assert.equal(nextOf(balance, all), 1)
      all[2]!.inFlight = 0
      assert.equal(nextOf(balance, all), 2)
      assert.equal(balance.next(undefined, none)?.learn(10), undefined)
    })

    it('goes to an address that is down only if no other is left', () => {
      const all = addresses()
      const balance = balanceOf(all)
      all[0]!.healthy = false
      all[1]!.inFlight = 1_000_000
      all[2]!.healthy = false
      assert.equal(nextOf(balance, all), 1)
      all[1]!.healthy = false
      assert.equal(nextOf(balance, all), 0)
    })

    it('goes to no address that was tried or is drained', () => {
      const all = addresses()
      const balance = balanceOf(all)
      assert.equal(nextOf(balance, all, undefined, new Set([all[0]!])), 1)
      all[1]!.drained = true
      assert.equal(nextOf(balance, all, undefined, new Set([all[0]!])), 2)
      all[2]!.drained = true
      assert.equal(nextOf(balance, all, undefined, new Set([all[0]!])), -1)
    })

    it('does not depend on caches', () => {
      const all = addresses()
      const balance = balanceOf(all)
      balance.forget(all[0]!)
      balance.resize(all[0]!, 5)
      assert.equal(nextOf(balance, all), 0)
    })
  })
}

describe('a call with a prompt', () => {
  it('goes where it went before, and reports what is expected to be cached there', () => {
    const all = addresses()
    const balance = byPrefix(all, 100_000)
    const prompt = promptOf(6000, 1)
    const first = balance.next(prompt, none)!
    assert.deepEqual(first.learn(0), { here: 0, anywhere: 0, isTelling: false })
    const second = balance.next(prompt, none)!
    assert.equal(second.address, first.address)
    const expected = second.learn(1500)
    assert.ok(expected && expected.here > 0.9 && expected.anywhere === expected.here, JSON.stringify(expected))
    assert.equal(expected.isTelling, true)
  })

  it('goes elsewhere if that address was tried, is drained or is down', () => {
    for (const what of ['tried', 'drained', 'down'] as const) {
      const all = addresses()
      const balance = byPrefix(all, 100_000)
      const prompt = promptOf(6000, 1)
      const home = balance.next(prompt, none)!.address as Scripted
      if (what === 'drained') home.drained = true
      if (what === 'down') home.healthy = false
      const tried = what === 'tried' ? new Set([home]) : none
      const away = balance.next(prompt, tried)!
      assert.notEqual(away.address, home)
      assert.deepEqual(away.learn(0), { here: 0, anywhere: 0, isTelling: false })
      // All that is left.
      for (const other of all) if (other !== home) other.drained = true
      assert.equal(balance.next(prompt, tried)?.address, what === 'down' ? home : undefined)
    }
  })

  it('goes elsewhere if that address has too many calls, and reports that it was warm there', () => {
    const all = addresses()
    const balance = byPrefix(all, 100_000)
    const prompt = promptOf(6000, 1)
    const home = balance.next(prompt, none)!.address
    home.inFlight = 100
    const away = balance.next(prompt, none)!
    assert.notEqual(away.address, home)
    const { here, anywhere } = away.learn(0)!
    assert.equal(here, 0)
    assert.ok(anywhere > 0.9, String(anywhere))
  })

  it('goes to an address that is down if no other is left', () => {
    const all = addresses()
    const balance = byPrefix(all, 100_000)
    for (const address of all) address.healthy = false
    assert.ok(balance.next(promptOf(6000, 1), none))
    all[1]!.healthy = true
    for (let seed = 0; seed < 10; seed++) assert.equal(nextOf(balance, all, promptOf(6000, seed)), 1)
    const left = balance.next(promptOf(6000, 1), new Set([all[1]!]))
    assert.ok(left && left.address !== all[1], 'one that is down, since the other was tried')
    all[0]!.drained = true
    all[2]!.drained = true
    assert.equal(balance.next(promptOf(6000, 1), new Set([all[1]!])), undefined)
  })

  it('finds nothing cached at an address that was restarted', () => {
    const all = addresses()
    const balance = byPrefix(all, 100_000)
    const prompt = promptOf(6000, 1)
    const { address } = balance.next(prompt, none)!
    for (const other of all) if (other !== address) balance.forget(other)
    assert.ok(balance.next(prompt, none)!.learn(1000)!.here > 0.9)
    balance.forget(address)
    assert.equal(balance.next(prompt, none)!.learn(0)!.anywhere, 0)
  })

  it('finds as much as the cache of an address holds, at four characters a token', () => {
    /** Which of ten prompts are still warm, oldest first, of 6,000 characters each. */
    const warm = (cacheTokens: number, resized?: number): number => {
      const all = addresses(1)
      const balance = byPrefix(all, cacheTokens)
      if (resized !== undefined) balance.resize(all[0]!, resized)
      for (let seed = 0; seed < 10; seed++) balance.next(promptOf(6000, seed), none)
      let count = 0
      for (let seed = 9; seed >= 0; seed--) {
        const isWarm = balance.next(promptOf(6000, seed), none)!.learn(0)!.here > 0.5
        if (!isWarm) break
        count++
      }
      return count
    }
    assert.equal(warm(100_000), 10)
    assert.equal(warm(4 * 1500 + 700), 4)
    assert.equal(warm(100_000, 2 * 1500 + 700), 2)
  })
})
