import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { openSender, type Claimed, type DeliveryOutcome } from '../../src/delivery/sender.ts'
import { handClock, turn } from '../support/hand-clock.ts'

describe('a sender', () => {
  /** Sends one item, whose delivery the test decides. */
  function sending(t: TestContext, { attempts = 1, isFinal = false } = {}) {
    const hand = handClock(t.mock.timers)
    /** Those that are set. */
    const timers = new Set<object>()
    const clock = {
      ...hand,
      after(ms: number, ring: () => void) {
        const timer = {}
        timers.add(timer)
        const cancel = hand.after(ms, () => (timers.delete(timer), ring()))
        return () => (timers.delete(timer), cancel())
      },
    }
    const item: Claimed = { attempts, leaseUntil: 0 }
    const items = [item]
    const outcomes: DeliveryOutcome[] = []
    const news: unknown[] = []
    const delivery = Promise.withResolvers<void>()
    const claims: (readonly [now: number, leaseUntil: number])[] = []
    const outbox = {
      async claim(now: number, leaseUntil: number) {
        claims.push([now, leaseUntil])
        return items.shift()
      },
      finish: async (_item: Claimed, outcome: DeliveryOutcome) => void outcomes.push(outcome),
    }
    const sender = openSender({
      outbox,
      clock,
      deliver: () => delivery.promise,
      isFinal: () => isFinal,
      schedule: { pausesMs: [1000, 2000], leaseMs: 9000 },
      events: {
        sent: (it) => void news.push(['sent', it]),
        notSent: (...all) => void news.push(all),
        failed: ({ message }) => void news.push(message),
      },
    })
    return { clock, timers, sender, outbox, items, item, outcomes, news, delivery, claims }
  }

  it('waits five seconds at its end for an item that is being sent', async (t) => {
    const { clock, sender, delivery } = sending(t)
    await turn()
    let isClosed = false
    const closing = sender.close().then(() => (isClosed = true))
    clock.advance(4999)
    await turn()
    assert.equal(isClosed, false)
    clock.advance(1)
    await closing
    delivery.resolve()
  })

  it('ends as soon as the item is sent, and sends no more', async (t) => {
    const { clock, timers, sender, items, item, outcomes, news, delivery, claims } = sending(t)
    await turn()
    items.push(item)
    const closing = sender.close()
    delivery.resolve()
    await closing
    const sent = { state: 'sent', nextAttemptAt: clock.now(), sentAt: clock.now(), lastError: null }
    assert.deepEqual([outcomes, news, claims.length], [[sent], [['sent', item]], 1])
    assert.deepEqual([...timers], [], 'no timer is left')
  })

  it('looks again every five seconds, with a lease for each item', async (t) => {
    const { clock, timers, sender, delivery, claims } = sending(t)
    delivery.resolve()
    await turn()
    const first = claims.length
    clock.advance(4999)
    await turn()
    assert.equal(claims.length, first)
    clock.advance(1)
    await turn()
    assert.equal(claims.length, first + 1)
    for (const [now, leaseUntil] of claims) assert.equal(leaseUntil - now, 9000)
    assert.equal(timers.size, 1)
    await sender.close()
    assert.equal(timers.size, 0)
  })

  it('sends one item at a time, however often it is asked to', async (t) => {
    const { sender, items, item, delivery, claims } = sending(t)
    items.push(item)
    const asked = [sender.sendDue(), sender.sendDue()]
    await turn()
    assert.equal(claims.length, 1)
    delivery.resolve()
    await Promise.all(asked)
    assert.equal(claims.length, 3)
    await sender.close()
  })

  it('reports a database that cannot be read, and looks again', async (t) => {
    const { clock, sender, outbox, news, delivery, claims } = sending(t)
    delivery.resolve()
    await turn()
    const claim = t.mock.method(outbox, 'claim', () => Promise.reject(new Error('away')))
    clock.advance(5000)
    await turn()
    assert.deepEqual(news.slice(1), ['away'])
    claim.mock.restore()
    const before = claims.length
    clock.advance(5000)
    await turn()
    assert.equal(claims.length, before + 1)
    await sender.close()
  })

  it('ends without a failure of its own if the database fails meanwhile', async (t) => {
    const { sender, outbox, news, delivery } = sending(t)
    t.mock.method(outbox, 'finish', () => Promise.reject(new Error('away')))
    await turn()
    const closing = sender.close()
    delivery.resolve()
    await closing
    await turn()
    assert.deepEqual(news.slice(1), ['away'])
  })

  for (const [attempts, isFinal, state, pause] of [
    [1, false, 'queued', 1000],
    [2, false, 'queued', 2000],
    [3, false, 'failed', 0],
    [1, true, 'failed', 1000],
  ] as const) {
    it(`leaves an item ${state} after attempt ${attempts}${isFinal ? ' that is refused for good' : ''}`, async (t) => {
      const { clock, sender, item, outcomes, news, delivery } = sending(t, { attempts, isFinal })
      delivery.reject(new Error(`a\r\n${'b'.repeat(400)}`))
      await turn()
      const lastError = `a ${'b'.repeat(298)}`
      assert.deepEqual(outcomes, [{ state, nextAttemptAt: clock.now() + pause, sentAt: null, lastError }])
      assert.deepEqual(news, [[item, lastError, state]])
      await sender.close()
    })
  }
})
