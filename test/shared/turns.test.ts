import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError, CallerLeft } from '../../src/shared/errors.ts'
import { takeTurns, type TurnClient } from '../../src/shared/turns.ts'
import { gate } from '../support/waiting.ts'

const LIMITS = {
  atOnce: 1,
  maxWaiting: 10,
  maxWaitingOfOwner: 4,
  full: 'all are waiting',
  ownerFull: 'yours are waiting',
}

function clientOf(owner: string) {
  const listeners = new Set<() => void>()
  const client = {
    owner,
    isGone: false as boolean,
    onGone(listener: () => void) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  } satisfies TurnClient
  return {
    client,
    listeners,
    leave() {
      client.isGone = true
      for (const listener of listeners) listener()
    },
  }
}

/** Of work that is refused at once. If it waits instead, the test fails rather than waiting too. */
async function refusalOf(result: Promise<unknown>): Promise<string> {
  const later = new Promise<never>((_resolve, reject) => setImmediate(reject, new Error('it was not refused')))
  return Promise.race([result, later]).then(
    () => 'done',
    (error: unknown) =>
      error instanceof ApiError ? `${error.code} ${error.retryAfter}: ${error.message}` : String(error),
  )
}

const OWNER_FULL = 'service_unavailable 2: yours are waiting'
const FULL = 'service_unavailable 2: all are waiting'

/** Work that the test ends, and the order in which it began. */
function stage(limits = LIMITS) {
  const turns = takeTurns(limits)
  const begun: string[] = []
  const ends: (() => void)[] = []
  return {
    begun,
    /** Ends the work that runs, and lets the next one begin. */
    async endOne(): Promise<void> {
      ends.shift()?.()
      await new Promise((resolve) => setImmediate(resolve))
    },
    ask(name: string, owner = name, fails = false) {
      const caller = clientOf(owner)
      const result = turns.run(caller.client, async () => {
        begun.push(name)
        const end = gate()
        ends.push(end.open)
        await end.opened
        if (fails) throw new Error(`${name} failed`)
        return name
      })
      // Handled where the test looks at it.
      result.catch(() => {})
      return { ...caller, result }
    },
  }
}

describe('work in turns', () => {
  it('is done for several owners at once, if allowed, but one owner has half of it', async () => {
    const { begun, ask, endOne } = stage({ ...LIMITS, atOnce: 2 })
    ask('a1', 'a')
    ask('a2', 'a')
    ask('b1', 'b')
    ask('c1', 'c')
    ask('b2', 'b')
    assert.deepEqual(begun, ['a1', 'b1'])
    await endOne()
    assert.deepEqual(begun, ['a1', 'b1', 'c1'])
    await endOne()
    assert.deepEqual(begun, ['a1', 'b1', 'c1', 'a2'])
    await endOne()
    await endOne()
    assert.deepEqual(begun, ['a1', 'b1', 'c1', 'a2', 'b2'])
  })

  it('is done one at a time, in order, even after one has failed', async () => {
    const { begun, ask, endOne } = stage()
    const asked = ['a', 'b', 'c'].map((name) => ask(name, 'one', name === 'a'))
    assert.deepEqual(begun, ['a'])
    await endOne()
    assert.deepEqual(begun, ['a', 'b'])
    await assert.rejects(asked[0]!.result, /a failed/)
    await endOne()
    await endOne()
    assert.deepEqual(await Promise.all([asked[1]!.result, asked[2]!.result]), ['b', 'c'])
    ask('d')
    assert.deepEqual(begun, ['a', 'b', 'c', 'd'], 'nothing is left that the next would wait for')
  })

  it('lets owners take turns, however much one of them requests', async () => {
    const { begun, ask, endOne } = stage()
    for (const name of ['a1', 'a2', 'a3', 'a4']) ask(name, 'a')
    ask('b1', 'b')
    ask('c1', 'c')
    ask('b2', 'b')
    for (let count = 0; count < 6; count++) await endOne()
    assert.deepEqual(begun, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4'])
  })

  it('is dropped when its client disconnects before it begins', async () => {
    const { begun, ask, endOne } = stage()
    ask('a1', 'a')
    const [second, third] = [ask('a2', 'a'), ask('a3', 'a')]
    const only = ask('b1', 'b')
    second.leave()
    only.leave()
    for (const { result } of [second, only]) await assert.rejects(result, CallerLeft)
    await endOne()
    await endOne()
    assert.deepEqual(begun, ['a1', 'a3'])
    assert.equal(await third.result, 'a3')
    ask('c1')
    assert.equal(begun.at(-1), 'c1')
  })

  it('does not begin for a client that has disconnected, and ends for one that disconnects later', async () => {
    const { begun, ask, endOne } = stage()
    const first = ask('a')
    const second = ask('b')
    assert.equal(first.listeners.size, 0)
    assert.equal(second.listeners.size, 1)
    await endOne()
    assert.equal(second.listeners.size, 0, 'nothing watches a client whose work has begun')
    second.leave()
    await endOne()
    assert.equal(await second.result, 'b')
    const turns = takeTurns(LIMITS)
    const gone = clientOf('c')
    gone.leave()
    await assert.rejects(
      turns.run(gone.client, async () => begun.push('c')),
      CallerLeft,
    )
    assert.deepEqual(begun, ['a', 'b'])
    assert.equal(await turns.run(clientOf('d').client, async () => 'd'), 'd', 'it delays no other')
  })

  it('is refused beyond the limit of an owner and of all, and accepted again when there is room', async () => {
    const { ask, endOne } = stage()
    ask('a')
    const waiting = Array.from({ length: 4 }, () => ask('a'))
    assert.equal(await refusalOf(ask('a').result), OWNER_FULL)
    for (let count = 0; count < 4; count++) ask('b')
    assert.equal(await refusalOf(ask('b').result), OWNER_FULL)
    ask('c')
    assert.equal(await refusalOf(ask('c').result), 'Error: it was not refused')
    assert.equal(await refusalOf(ask('c').result), FULL)
    waiting[0]?.leave()
    const last = ask('c')
    assert.equal(await refusalOf(ask('d').result), FULL)
    for (let count = 0; count < 11; count++) await endOne()
    assert.equal(await last.result, 'c')
    ask('e')
    for (let count = 0; count < 4; count++) ask('e')
    assert.equal(await refusalOf(ask('e').result), OWNER_FULL)
  })
})
