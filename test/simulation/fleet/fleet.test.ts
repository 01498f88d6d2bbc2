import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { someOf } from '../../support/long-run.ts'
import { play, type Fleet } from './fleet.ts'
import * as held from './held-out-loads.ts'
import * as loads from './loads.ts'

/** The short form of `npm run bench -- fleet`, whose table is in docs/guides/warm-prefixes.md. */
const fleet = (engines: number, replicas: number): Fleet => ({ engines, replicas, cacheTokens: 200_000, seed: 9 })

describe('a simulated fleet that chooses addresses by prefix', () => {
  // Most of the time goes into making the loads.
  const cacheable = [
    ['agents', () => loads.agents(1, 130), fleet(4, 1)],
    ['agents', () => loads.agents(1, 130), fleet(4, 4)],
    ['shared prompts', () => loads.sharedPrompts(3, 600), fleet(4, 1)],
    // These, no constant was chosen by.
    ['other shared prompts', () => loads.sharedPrompts(103, 640), fleet(4, 4)],
    ['own documents', () => held.ownDocuments(110, 90), fleet(4, 1)],
  ] as const
  for (const [name, make, where] of someOf(cacheable, 2)) {
    it(`has nine tenths of the possible hits: ${name}, ${where.replicas} replicas`, () => {
      const load = make()
      const [busy, prefix, oracle] = [
        play(load, 'least busy', where),
        play(load, 'prefix', where),
        play(load, 'oracle', where),
      ]
      assert.ok(prefix.hitRate >= oracle.hitRate * 0.9, `${prefix.hitRate} of ${oracle.hitRate}`)
      assert.ok(prefix.requestsPerSecond > busy.requestsPerSecond * 1.1)
    })
  }

  const uncacheable = {
    'hot prefix': () => loads.hotPrefix(4, 700),
    unrelated: () => loads.unrelated(6, 900),
    short: () => loads.short(7, 600),
    retrieval: () => loads.retrieval(5, 500),
    quiet: () => held.quiet(115, 400),
    'quiet tenants': () => held.quietTenants(113, 400),
  }
  for (const [name, make] of someOf(Object.entries(uncacheable), 2)) {
    it(`is as fast as one that chooses the least busy: ${name}`, () => {
      const load = make()
      const [busy, prefix] = [play(load, 'least busy', fleet(4, 1)), play(load, 'prefix', fleet(4, 1))]
      assert.ok(prefix.requestsPerSecond >= busy.requestsPerSecond * 0.98, JSON.stringify({ prefix, busy }))
    })
  }

  it('gives the same result every time', () => {
    const once = play(loads.sharedPrompts(3, 100), 'prefix', fleet(2, 2))
    assert.deepEqual(play(loads.sharedPrompts(3, 100), 'prefix', fleet(2, 2)), once)
  })
})
