import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { openSender, type Claimed, type DeliveryOutcome } from '../../src/delivery/sender.ts'
import { handClock, turn } from '../support/hand-clock.ts'

describe('a sender', () => {
  /** Sends one item, whose delivery the test decides. */
  function sending(t: TestContext, { attempts = 1, isFinal = false } = {}) {
    const clock = handClock(t.mock.timers)
    const item: Claimed = { attempts, leaseUntil: 0 }
    const items = [item]
    const outcomes: DeliveryOutcome[] = []
    const delivery = Promise.withResolvers<void>()
    const claims: (readonly [now: number, leaseUntil: number])[] = []
    const sender = openSender({
      outbox: {
        async claim(now, leaseUntil) {
          claims.push([now, leaseUntil])
          return items.shift()
        },
        finish: async (_item, outcome) => void outcomes.push(outcome),
      },
      clock,
      deliver: () => delivery.promise,
      isFinal: () => isFinal,
      schedule: { pausesMs: [1000, 2000], leaseMs: 9000 },
      events: { sent() {}, notSent() {}, failed: (error) => assert.fail(error) },
    })
    return { clock, sender, items, item, outcomes, delivery, claims }
  }

  it('waits five seconds at its end for an item that is being sent', async (t) => {
    const { clock, sender } = sending(t)
    await turn()
    let isClosed = false
    const closing = sender.close().then(() => (isClosed = true))
    clock.advance(4999)
    await turn()
    assert.equal(isClosed, false)
    clock.advance(1)
    await closing
  })

  it('ends as soon as the item is sent, and sends no more', async (t) => {
    const { sender, items, item, outcomes, delivery, claims } = sending(t)
    await turn()
    items.push(item)
    const closing = sender.close()
    delivery.resolve()
    await closing
    assert.deepEqual([outcomes.length, outcomes[0]?.state, claims.length], [1, 'sent', 1])
  })

  it('looks again every five seconds, with a lease for each item', async (t) => {
    const { clock, sender, delivery, claims } = sending(t)
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
    await sender.close()
  })

  for (const [attempts, isFinal, state, pause] of [
    [1, false, 'queued', 1000],
    [2, false, 'queued', 2000],
    [3, false, 'failed', 0],
    [1, true, 'failed', 1000],
  ] as const) {
    it(`leaves an item ${state} after attempt ${attempts}${isFinal ? ' that is refused for good' : ''}`, async (t) => {
      const { clock, sender, outcomes, delivery } = sending(t, { attempts, isFinal })
      delivery.reject(new Error(`a\r\n${'b'.repeat(400)}`))
      await turn()
      const lastError = `a ${'b'.repeat(298)}`
      assert.deepEqual(outcomes, [{ state, nextAttemptAt: clock.now() + pause, sentAt: null, lastError }])
      await sender.close()
    })
  }
})
