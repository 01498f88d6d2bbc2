import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { knownByHash } from '../../src/workspaces/keys/known-by-hash.ts'
import { openKnownKeys } from '../../src/workspaces/keys/known-keys.ts'
import type { ApiKey } from '../../src/workspaces/workspace.ts'
import { noLimits } from '../support/key-limits.ts'

const keyOf = (hash: string): ApiKey => ({
  id: `key_${hash}`,
  workspaceId: 'ws_1',
  hash,
  ending: null,
  name: null,
  createdAt: 1,
  expiresAt: null,
  revokedAt: null,
  ...noLimits,
})

/** A store in memory whose lookups answer when the test lets them. */
async function stage(hashes: readonly string[] = []) {
  const keys = new Map(hashes.map((hash) => [hash, keyOf(hash)]))
  const changed: string[] = []
  const lookups: { readonly hashes: readonly string[]; answer(): void; fail(): void }[] = []
  const known = await openKnownKeys({
    keysByHash(asked) {
      // What the database sees when the question arrives, not when it answers.
      const seen = asked.flatMap((hash) => keys.get(hash) ?? [])
      const { promise, resolve, reject } = Promise.withResolvers<ApiKey[]>()
      lookups.push({ hashes: asked, answer: () => resolve(seen), fail: () => reject(new Error('the disk is gone')) })
      return promise
    },
    lastKeyChange: async () => changed.length,
    keyChanges: async (after, limit) =>
      changed.map((hash, index) => ({ number: index + 1, hash })).slice(after, after + limit),
  })
  const change = (key: ApiKey): void => {
    keys.set(key.hash, key)
    changed.push(key.hash)
  }
  return {
    known,
    lookups,
    create: (hash: string) => change(keyOf(hash)),
    revoke: (hash: string) => change({ ...keyOf(hash), revokedAt: 5 }),
    /** What is found without a lookup, whose answer nothing here would wait for. */
    async remembered(hash: string) {
      const { length } = lookups
      const asked = known.find(hash)
      assert.equal(lookups.length, length, `${hash} is looked up again`)
      return asked
    },
    async found(hash: string) {
      const asked = known.find(hash)
      lookups.at(-1)?.answer()
      return asked
    },
  }
}

describe('known keys', () => {
  it('are looked up once, and then found in memory', async () => {
    const { lookups, found, remembered } = await stage(['a'])
    assert.equal(lookups.length, 0, 'nothing is read at the start')
    assert.equal((await found('a'))?.id, 'key_a')
    assert.equal((await remembered('a'))?.id, 'key_a')
    assert.equal(lookups.length, 1)
  })

  it('that do not exist are remembered as such, until they are created', async () => {
    const { known, lookups, found, create, remembered } = await stage()
    assert.equal(await found('a'), null)
    assert.equal(await remembered('a'), null)
    create('a')
    await known.refresh()
    assert.equal((await found('a'))?.id, 'key_a')
    assert.equal(lookups.length, 2)
  })

  it('are all looked up again after all were forgotten, those that do not exist too', async () => {
    const reads: (readonly string[])[] = []
    const known = knownByHash({
      what: 'keys',
      knownMax: 10,
      async read(hashes) {
        reads.push(hashes)
        return new Map(hashes.filter((hash) => hash !== 'none').map((hash) => [hash, hash]))
      },
    })
    for (const round of [1, 2]) {
      for (const _ of [1, 2]) assert.deepEqual([await known.find('a'), await known.find('none')], ['a', null])
      assert.equal(reads.length, 2 * round)
      known.forgetAll()
    }
  })

  it('that are revoked are refused as soon as the change is applied, and others stay', async () => {
    const { known, found, revoke, remembered } = await stage(['a', 'b'])
    await found('a')
    await found('b')
    revoke('a')
    await known.refresh()
    assert.equal((await remembered('b'))?.id, 'key_b')
    assert.equal(await found('a'), null)
  })

  it('are looked up once for each change', async () => {
    const { known, found, remembered, create } = await stage(['a'])
    create('a')
    await known.refresh()
    await found('a')
    await known.refresh()
    assert.ok(await remembered('a'))
  })

  for (const others of [0, 1500]) {
    it(`that are revoked during a lookup, with ${others} others, are not accepted by its result`, async () => {
      const { known, lookups, revoke, remembered } = await stage(['a'])
      const asked = known.find('a')
      revoke('a')
      for (let index = 0; index < others; index++) revoke(`k${index}`)
      await known.refresh()
      lookups[0]?.answer()
      await turn()
      lookups[1]?.answer()
      assert.equal(await asked, null)
      assert.equal(await remembered('a'), null)
    })
  }

  it('that are revoked in large numbers are all refused', async () => {
    const names = Array.from({ length: 1500 }, (_, index) => `k${index}`)
    const { known, found, revoke } = await stage(names)
    const last = names.at(-1) ?? ''
    await found(last)
    for (const name of names) revoke(name)
    await known.refresh()
    assert.equal(await found(last), null)
  })

  it('that are revoked while a large number of changes is applied are not kept', async () => {
    const changes = Array.from({ length: 1000 }, (_, index) => ({ number: index + 1, hash: `other ${index}` }))
    let isRevoked = false
    let during: (() => Promise<void>) | undefined
    const known = await openKnownKeys({
      keysByHash: async () => [isRevoked ? { ...keyOf('a'), revokedAt: 2 } : keyOf('a')],
      async lastKeyChange() {
        await during?.()
        return isRevoked ? 1001 : 0
      },
      keyChanges: async (after, limit) => changes.slice(after, after + limit),
    })
    during = async () => {
      assert.equal((await known.find('a'))?.id, 'key_a')
      isRevoked = true
    }
    await known.refresh()
    assert.equal(await known.find('a'), null)
  })

  it('are looked up together: once for each key, one query at a time, however many requests wait', async () => {
    const { known, lookups } = await stage(['a', 'b'])
    const asked = Array.from({ length: 1000 }, (_, index) => known.find(['a', 'b', `c${index}`][index % 3] ?? ''))
    assert.deepEqual(
      lookups.map(({ hashes }) => hashes),
      [['a']],
    )
    for (let number = 0; number < lookups.length; number++) {
      lookups[number]?.answer()
      await turn()
    }
    assert.deepEqual(
      lookups.map(({ hashes }) => hashes.length),
      [1, 250, 84],
    )
    const found = await Promise.all(asked)
    assert.equal(found.filter((key) => key?.id === 'key_a').length, 334)
    assert.equal(found.filter((key) => key === null).length, 333)
  })

  it('are not displaced by any number of keys that do not exist', async () => {
    const { found, remembered } = await stage(['a'])
    await found('a')
    const guesses = 120_000
    for (let index = 0; index < guesses; index += 250) {
      // Every batch is one lookup behind the first.
      const asked = Array.from({ length: 250 }, (_, offset) => found(`guess ${index + offset}`))
      void asked
      await turn()
    }
    assert.equal((await remembered('a'))?.id, 'key_a')
  })

  it('have a limit of 10,000 waiting lookups: more are refused', async () => {
    const { known, lookups } = await stage()
    const asked = Array.from({ length: 10_000 }, (_, index) => known.find(`guess ${index}`))
    await assert.rejects(known.find('one more'), /Too many API keys are being looked up/)
    const again = known.find('guess 1')
    for (let number = 0; number < lookups.length; number++) {
      lookups[number]?.answer()
      await turn()
    }
    assert.deepEqual(new Set(await Promise.all([...asked, again])), new Set([null]))
  })

  it('are not rejected because the database is unreachable: the caller may try again', async () => {
    const { known, lookups, found, remembered } = await stage(['a', 'b'])
    await found('b')
    const asked = known.find('a')
    lookups.at(-1)?.fail()
    await assert.rejects(asked, { code: 'service_unavailable' })
    assert.equal((await remembered('b'))?.id, 'key_b', 'keys in use still work')
    assert.equal((await found('a'))?.id, 'key_a')
  })
})
