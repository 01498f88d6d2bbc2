import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { announceScript } from '../../src/changes/redis/announcement.ts'
import { redisChanges } from '../../src/changes/redis/changes.ts'
import { luaBeside, script } from '../../src/redis/script.ts'
import { scriptedLink } from '../support/scripted-link.ts'
import { handClock, turn } from './hand-clock.ts'

const versionsScript = script(luaBeside(new URL('../../src/changes/redis/', import.meta.url).href, 'versions'))
/** In the order of the list: accounts, keys, prices, catalog, lanes. */
const CHANGES = ['accounts', 'keys', 'prices', 'catalog', 'lanes'] as const

function stage(t: TestContext) {
  const clock = handClock(t.mock.timers)
  const scripted = scriptedLink()
  const unreached: string[] = []
  const changes = redisChanges(scripted.link, clock, {
    unreached: (change, replicas) => void unreached.push(`${change} ${replicas.join()}`),
  })
  const taken: string[] = []
  const state = { fails: false }
  for (const change of CHANGES) {
    changes.subscribe(change, async () => {
      taken.push(change)
      if (state.fails) throw new Error('it cannot be read')
    })
  }
  return {
    ...scripted,
    clock,
    changes,
    unreached,
    taken,
    state,
    /** The versions are compared, as once a second. */
    async compare(versions: readonly (string | null)[], isBeat = true): Promise<string[]> {
      if (isBeat) scripted.beat()
      const call = scripted.next(versionsScript)
      assert.deepEqual([call.keys, call.values], [['weir:{replicas}:versions'], CHANGES])
      call.answer(versions)
      for (let turns = 0; turns < 3; turns += 1) await turn()
      return taken.splice(0)
    },
  }
}
const NONE = [null, null, null, null, null]

describe('changes over a scripted Redis', () => {
  it('are read once when a replica joins, but for the catalog, which is a file', async (t) => {
    const { join, compare } = stage(t)
    join()
    assert.deepEqual(await compare(NONE, false), ['accounts', 'keys', 'prices', 'lanes'])
    assert.deepEqual(await compare(NONE), [])
    assert.deepEqual(await compare(['1', null, null, '4', null]), ['accounts', 'catalog'])
    assert.deepEqual(await compare(['1', null, null, '4', null]), [])
  })

  it('are read again after the connection was gone', async (t) => {
    const { join, lose, compare, beat, sent } = stage(t)
    join()
    await compare(NONE, false)
    lose()
    beat()
    assert.deepEqual(sent, [], 'Redis is not asked without a connection')
    join()
    assert.deepEqual(await compare(NONE, false), ['accounts', 'keys', 'prices', 'lanes'])
  })

  it('are tried again with the next comparison if they could not be read', async (t) => {
    const { join, compare, state } = stage(t)
    join()
    await compare(NONE, false)
    state.fails = true
    assert.deepEqual(await compare(['1', null, null, null, null]), ['accounts'])
    state.fails = false
    assert.deepEqual(await compare(['1', null, null, null, null]), ['accounts'])
    assert.deepEqual(await compare(['1', null, null, null, null]), [])
  })

  it('are taken in and answered when a message tells of them, and not read again by the comparison', async (t) => {
    const { join, compare, hear, published, taken } = stage(t)
    join()
    await compare(NONE, false)
    hear('weir:changes', 'other\nother.1\nkeys\n1')
    await turn()
    assert.deepEqual(taken.splice(0), ['keys'])
    assert.deepEqual(published, [['weir:changes:other', 'one\nother.1']])
    assert.deepEqual(await compare([null, '1', null, null, null]), [])
    hear('weir:changes', 'other\nother.3\nkeys\n3')
    await turn()
    taken.length = 0
    assert.deepEqual(await compare([null, '3', null, null, null]), ['keys'], 'version 2 was missed')
    hear('weir:changes', 'one\none.1\nkeys\n4')
    await turn()
    assert.deepEqual(taken, [], 'its own message')
  })

  it('are not answered if they could not be taken in, and tried again', async (t) => {
    const { join, compare, hear, published, taken, state } = stage(t)
    join()
    await compare(NONE, false)
    state.fails = true
    hear('weir:changes', 'other\nother.1\nkeys\n1')
    await turn()
    taken.length = 0
    assert.deepEqual(published, [])
    state.fails = false
    assert.deepEqual(await compare([null, '1', null, null, null]), ['keys'])
  })

  it('are announced with a number, and wait for every other replica that lives', async (t) => {
    const { join, compare, changes, next, hear, taken, unreached } = stage(t)
    join()
    await compare(NONE, false)
    let result: readonly string[] | undefined
    const announced = changes.announce('prices').then((it) => (result = it))
    await turn()
    assert.deepEqual(taken.splice(0), ['prices'], 'first here')
    const call = next(announceScript)
    assert.deepEqual(call.keys, ['weir:{replicas}:versions', 'weir:{replicas}:leases'])
    assert.deepEqual(call.values, ['prices', 'one\none.1\nprices'])
    hear('weir:changes:one', 'two\none.1')
    call.answer([1, ['one', 'two', 'three']])
    await turn()
    assert.equal(result, undefined)
    hear('weir:changes:one', 'three\none.2')
    await turn()
    assert.equal(result, undefined, 'an answer to another announcement')
    hear('weir:changes:one', 'three\none.1')
    await announced
    assert.deepEqual([result, unreached], [[], []])
    assert.deepEqual(await compare([null, null, '1', null, null]), [], 'its own change is not read again')
  })

  it('name the replicas that did not answer within a second', async (t) => {
    const { join, compare, changes, next, hear, unreached, clock } = stage(t)
    join()
    await compare(NONE, false)
    let result: readonly string[] | undefined
    void changes.announce('keys').then((it) => (result = it))
    await turn()
    next(announceScript).answer([1, ['one', 'two', 'three']])
    await turn()
    hear('weir:changes:one', 'two\none.1')
    clock.advance(999)
    await turn()
    assert.equal(result, undefined)
    clock.advance(1)
    await turn()
    assert.deepEqual([result, unreached], [['three'], ['keys three']])
  })

  it('say so if Redis does not answer', async (t) => {
    const { join, compare, changes, next, unreached } = stage(t)
    join()
    await compare(NONE, false)
    const announced = changes.announce('keys')
    await turn()
    next(announceScript).fail()
    assert.deepEqual(await announced, ['every other replica, because Redis does not answer'])
    assert.equal(unreached.length, 1)
  })

  it('end for those who have unsubscribed', async (t) => {
    const { changes, join, compare } = stage(t)
    let calls = 0
    const end = changes.subscribe('keys', async () => void (calls += 1))
    join()
    await compare(NONE, false)
    end()
    await compare([null, '1', null, null, null])
    assert.equal(calls, 1)
  })
})
