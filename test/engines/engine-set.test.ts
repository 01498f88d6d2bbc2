import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Deployment, EngineDescription } from '../../src/catalog/model.ts'
import { engineSet } from '../../src/engines/upstream.ts'
import type { Engine } from '../../src/engines/engine.ts'

/** Engines that only know their address and whether they are closed. */
function stage() {
  const opened: string[] = []
  const closed: string[] = []
  const set = engineSet(({ urls: [url = ''] }) => {
    opened.push(url)
    const addresses = [`${url}/1`, `${url}/2`].map((it) => ({ url: it, isUp: true, inFlight: 0 }))
    return { close: async () => void closed.push(url), addresses: () => addresses } as unknown as Engine
  })
  const deployment = (lane: string, url?: string): Deployment =>
    ({ lane, engine: url === undefined ? undefined : ({ urls: [url] } as unknown as EngineDescription) }) as Deployment
  return { set, opened, closed, deployment }
}

describe('the engines of a catalog', () => {
  it('stay open as long as their description is the same', () => {
    const { set, opened, closed, deployment } = stage()
    set.update([deployment('a', 'one'), deployment('b', 'two')])
    const engine = set.of(deployment('a'))
    set.update([deployment('b', 'two'), deployment('a', 'one')])
    assert.equal(set.of(deployment('a')), engine)
    assert.deepEqual([opened, closed], [['one', 'two'], []])
  })

  it('are replaced when their description changes, and closed when they are removed', () => {
    const { set, opened, closed, deployment } = stage()
    set.update([deployment('a', 'one'), deployment('b', 'two')])
    const engine = set.of(deployment('a'))
    set.update([deployment('a', 'three')])
    assert.ok(set.of(deployment('a')) && set.of(deployment('a')) !== engine)
    assert.equal(set.of(deployment('b')), undefined)
    assert.deepEqual(
      [opened, closed],
      [
        ['one', 'two', 'three'],
        ['one', 'two'],
      ],
    )
  })

  it('do not exist for a deployment without one, and are all closed at the end', async () => {
    const { set, closed, deployment } = stage()
    set.update([deployment('a', 'one'), deployment('b')])
    assert.equal(set.of(deployment('b')), undefined)
    await set.close()
    assert.deepEqual(closed, ['one'])
  })

  it('have their addresses by lane', () => {
    const { set, deployment } = stage()
    set.update([deployment('a', 'one'), deployment('b'), deployment('c', 'two')])
    assert.deepEqual(
      [...set.addresses()].map(([lane, { url }]) => [lane, url]),
      [
        ['a', 'one/1'],
        ['a', 'one/2'],
        ['c', 'two/1'],
        ['c', 'two/2'],
      ],
    )
  })
})
