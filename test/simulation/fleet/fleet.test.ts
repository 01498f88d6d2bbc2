import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { play, type Fleet } from './fleet.ts'
import * as held from './held-out-loads.ts'
import * as loads from './loads.ts'

/** The short form of `npm run bench -- fleet`, whose table is in docs/guides/warm-prefixes.md. */
const fleet = (engines: number, replicas: number): Fleet => ({ engines, replicas, cacheTokens: 200_000, seed: 9 })

describe('a simulated fleet that chooses addresses by prefix', () => {
  for (const [load, where] of [
    [loads.agents(1, 130), fleet(4, 1)],
    [loads.agents(1, 130), fleet(4, 4)],
    [loads.sharedPrompts(3, 600), fleet(4, 1)],
    // These, no constant was chosen by.
    [loads.sharedPrompts(103, 640), fleet(4, 4)],
    [held.ownDocuments(110, 90), fleet(4, 1)],
  ] as const) {
    it(`has nine tenths of the possible hits: ${load.name}, ${where.replicas} replicas`, () => {
      const [busy, prefix, oracle] = [
        play(load, 'least busy', where),
        play(load, 'prefix', where),
        play(load, 'oracle', where),
      ]
      assert.ok(prefix.hitRate >= oracle.hitRate * 0.9, `${prefix.hitRate} of ${oracle.hitRate}`)
      assert.ok(prefix.requestsPerSecond > busy.requestsPerSecond * 1.1)
    })
  }

  for (const load of [
    loads.hotPrefix(4, 700),
    loads.unrelated(6, 900),
    loads.short(7, 600),
    loads.retrieval(5, 500),
    held.quiet(115, 400),
    held.quietTenants(113, 400),
  ]) {
    it(`is as fast as one that chooses the least busy: ${load.name}`, () => {
      const [busy, prefix] = [play(load, 'least busy', fleet(4, 1)), play(load, 'prefix', fleet(4, 1))]
      assert.ok(prefix.requestsPerSecond >= busy.requestsPerSecond * 0.98, JSON.stringify({ prefix, busy }))
    })
  }

  it('gives the same result every time', () => {
    const once = play(loads.sharedPrompts(3, 100), 'prefix', fleet(2, 2))
    assert.deepEqual(play(loads.sharedPrompts(3, 100), 'prefix', fleet(2, 2)), once)
  })
})
