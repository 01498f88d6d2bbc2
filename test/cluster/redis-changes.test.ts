import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { announceScript } from '../../src/cluster/changes/redis/announcement.ts'
import { redisChanges } from '../../src/cluster/changes/redis/changes.ts'
import { luaBeside, script } from '../../src/cluster/redis/script.ts'
import { scriptedLink } from '../support/scripted-link.ts'
import { handClock, turn } from '../support/hand-clock.ts'

const versionsScript = script(luaBeside(new URL('../../src/cluster/changes/redis/', import.meta.url).href, 'versions'))
/** Those that this replica follows. */
const CHANGES = ['accounts', 'keys', 'prices', 'catalog', 'lanes', 'sessions', 'batches'] as const
type Versions = Partial<Record<(typeof CHANGES)[number], string>>

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
    async compare(versions: Versions, isHeartbeat = true): Promise<string[]> {
      if (isHeartbeat) scripted.heartbeat()
      const call = scripted.next(versionsScript)
      assert.deepEqual(call.keys, ['weir:{replicas}:versions'])
      call.answer(call.values.map((change) => versions[change as keyof Versions] ?? null))
      for (let turns = 0; turns < 3; turns += 1) await turn()
      return taken.splice(0)
    },
  }
}
describe('the change feed over a scripted Redis', () => {
  it('reloads everything once when a replica joins, except the catalog, which is a file', async (t) => {
    const { join, compare } = stage(t)
    join()
    assert.deepEqual(await compare({}, false), ['accounts', 'keys', 'prices', 'lanes', 'sessions', 'batches'])
    assert.deepEqual(await compare({}), [])
    assert.deepEqual(await compare({ accounts: '1', catalog: '4' }), ['accounts', 'catalog'])
    assert.deepEqual(await compare({ accounts: '1', catalog: '4' }), [])
  })

  it('reloads after the connection was lost', async (t) => {
    const { join, lose, compare, heartbeat, sent } = stage(t)
    join()
    await compare({}, false)
    lose()
    heartbeat()
    assert.deepEqual(sent, [], 'Redis is not asked without a connection')
    join()
    assert.deepEqual(await compare({}, false), ['accounts', 'keys', 'prices', 'lanes', 'sessions', 'batches'])
  })

  it('tries again with the next comparison if a reload failed', async (t) => {
    const { join, compare, state } = stage(t)
    join()
    await compare({}, false)
    state.fails = true
    assert.deepEqual(await compare({ accounts: '1' }), ['accounts'])
    state.fails = false
    assert.deepEqual(await compare({ accounts: '1' }), ['accounts'])
    assert.deepEqual(await compare({ accounts: '1' }), [])
  })

  it('reloads and answers when a message names a change, and the comparison does not reload it again', async (t) => {
    const { join, compare, receive: hear, published, taken } = stage(t)
    join()
    await compare({}, false)
    hear('weir:changes', 'other\nother.1\nkeys\n1')
    await turn()
    assert.deepEqual(taken.splice(0), ['keys'])
    assert.deepEqual(published, [['weir:changes:other', 'one\nother.1']])
    assert.deepEqual(await compare({ keys: '1' }), [])
    hear('weir:changes', 'other\nother.3\nkeys\n3')
    await turn()
    taken.length = 0
    assert.deepEqual(await compare({ keys: '3' }), ['keys'], 'version 2 was missed')
    hear('weir:changes', 'one\none.1\nkeys\n4')
    await turn()
    assert.deepEqual(taken, [], 'its own message')
  })

  it('does not answer if the reload failed, and tries again', async (t) => {
    const { join, compare, receive: hear, published, taken, state } = stage(t)
    join()
    await compare({}, false)
    state.fails = true
    hear('weir:changes', 'other\nother.1\nkeys\n1')
    await turn()
    taken.length = 0
    assert.deepEqual(published, [])
    state.fails = false
    assert.deepEqual(await compare({ keys: '1' }), ['keys'])
  })

  it('announces a change with a version, and waits for every other live replica', async (t) => {
    const { join, compare, changes, next, receive: hear, taken, unreached } = stage(t)
    join()
    await compare({}, false)
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
    assert.deepEqual(await compare({ prices: '1' }), [], 'its own change is not read again')
  })

  it('names the replicas that did not answer within a second', async (t) => {
    const { join, compare, changes, next, receive: hear, unreached, clock } = stage(t)
    join()
    await compare({}, false)
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

  it('resolves at once without other replicas, or if all answered before Redis listed them', async (t) => {
    const { join, compare, changes, next, receive: hear } = stage(t)
    join()
    await compare({}, false)
    const alone = changes.announce('keys')
    await turn()
    next(announceScript).answer([1, ['one']])
    assert.deepEqual(await alone, [])
    const early = changes.announce('keys')
    await turn()
    hear('weir:changes:one', 'two\none.2')
    next(announceScript).answer([2, ['one', 'two']])
    assert.deepEqual(await early, [])
  })

  it('loads its scripts with the link', (t) => {
    const { followers } = stage(t)
    assert.deepEqual(
      followers.flatMap(({ scripts }) => scripts.map(({ sha }) => sha)),
      [announceScript.sha, versionsScript.sha],
    )
    assert.deepEqual(
      followers.flatMap(({ channels }) => channels),
      ['weir:changes', 'weir:changes:one'],
    )
  })

  it('reports that Redis does not answer', async (t) => {
    const { join, compare, changes, next, unreached } = stage(t)
    join()
    await compare({}, false)
    const announced = changes.announce('keys')
    await turn()
    next(announceScript).fail()
    assert.deepEqual(await announced, ['every other replica, because Redis does not answer'])
    assert.equal(unreached.length, 1)
  })

  it('does not call subscribers that have unsubscribed', async (t) => {
    const { changes, join, compare } = stage(t)
    let calls = 0
    const end = changes.subscribe('keys', async () => void (calls += 1))
    join()
    await compare({}, false)
    end()
    await compare({ keys: '1' })
    assert.equal(calls, 1)
  })
})
