import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { byteBudget } from '../../src/shared/byte-budget.ts'
import type { Exchange } from '../../src/server/exchange.ts'
import { looseExchange, type ScriptedResponse } from '../support/exchange-listener.ts'

describe('a caller that disconnects', () => {
  it('is reported to every listener, once', () => {
    const exchange = looseExchange('POST')
    const notified: string[] = []
    exchange.onGone(() => notified.push('first'))
    exchange.onGone(() => notified.push('second'))
    exchange.leave()
    exchange.leave()
    assert.deepEqual(notified, ['first', 'second'])
  })

  it('is reported at once to a listener that is added too late', () => {
    const exchange = looseExchange('POST')
    exchange.leave()
    let notified = 0
    exchange.onGone(() => (notified += 1))
    assert.equal(notified, 1)
  })

  it('is not reported to a listener that was removed, even by another one', () => {
    const exchange = looseExchange('POST')
    const notified: string[] = []
    exchange.onGone(() => removeLast())
    const removeFirst = exchange.onGone(() => notified.push('removed before'))
    const removeLast = exchange.onGone(() => notified.push('removed by the first'))
    removeFirst()
    exchange.leave()
    assert.deepEqual(notified, [])
  })
})

it('a caller has its time to read an answer, and once it has the answer, its connection stays', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const cuts = ['answer is read', 'answer is not read'].map((what) => {
    let cuts = 0
    const exchange = looseExchange('GET', { writableLength: 10 }, { stallMs: 1000, cut: () => void cuts++ })
    exchange.sendJson('{}')
    t.mock.timers.tick(999)
    if (what === 'answer is read') exchange.sent()
    t.mock.timers.tick(1)
    return [what, cuts]
  })
  assert.deepEqual(cuts, [
    ['answer is read', 0],
    ['answer is not read', 1],
  ])
})

describe('an exchange that is over, or whose caller has left', () => {
  for (const [what, end] of [
    ['answered', (exchange: Exchange) => exchange.sendJson('{}')],
    ['left', (exchange: Exchange) => exchange.leave()],
  ] as const) {
    it(`sends nothing more: ${what}`, async () => {
      const sent: string[] = []
      const exchange = looseExchange('GET', {
        writeHead: () => void sent.push('head'),
        write: () => sent.push('piece') > 0,
        end: () => void sent.push('end'),
      })
      end(exchange)
      sent.length = 0
      const stream = Readable.from(['a'])
      await exchange.sendStream(stream, {})
      exchange.send(200, 'text/plain', 'x')
      exchange.sendAnswer('text/plain', 'x', {})
      exchange.openStream({})
      assert.equal(exchange.write('x'), true)
      exchange.end('x')
      assert.deepEqual([sent, stream.destroyed], [[], true])
    })
  }
})

it('a caller that is being reported as disconnected gets nothing more', async () => {
  const sent: string[] = []
  const exchange = looseExchange('GET', {
    writeHead: () => void sent.push('head'),
    write: () => sent.push('piece') > 0,
    end: () => void sent.push('end'),
  })
  exchange.onGone(() => {
    exchange.send(200, 'text/plain', 'x')
    exchange.sendAnswer('text/plain', 'x', {})
    exchange.openStream({})
    exchange.write('x')
    exchange.end('x')
    void exchange.sendStream(Readable.from(['a']), {})
  })
  exchange.leave()
  await nextTurn()
  assert.deepEqual(sent, [])
})

describe('an answer that is complete, but was not read', () => {
  it('frees its memory when the connection closes', () => {
    const memory = byteBudget(Infinity)
    const exchange = looseExchange('POST', { writableLength: 1000, write: () => false }, { memory })
    exchange.openAnswer('text/plain', {})
    exchange.write('a')
    exchange.end('')
    exchange.release()
    assert.equal(memory.held(), 1000)
    exchange.leave()
    assert.equal(memory.held(), 0)
  })
})

describe('a download that was requested with HEAD', () => {
  it('is closed without being read', async () => {
    const written: unknown[] = []
    const exchange = looseExchange('HEAD', { write: (it) => written.push(it) > 0 })
    const stream = Readable.from(['a', 'b'])
    await exchange.sendStream(stream, {})
    assert.deepEqual([stream.destroyed, stream.readableDidRead, written, exchange.isOver], [true, false, [], true])
  })
})

it('a download that waits for its reader again and again has one listener for its end at a time', async (t) => {
  const response: ScriptedResponse = { write: () => false }
  const exchange = looseExchange('GET', response)
  const listening: number[] = []
  let listeners = 0
  const onGone = exchange.onGone.bind(exchange)
  t.mock.method(exchange, 'onGone', (listener: () => void) => {
    listening.push((listeners += 1))
    const remove = onGone(listener)
    return () => {
      listeners -= 1
      remove()
    }
  })
  const sent = exchange.sendStream(Readable.from(['a', 'b', 'c']), {})
  for (const piece of [1, 2, 3]) {
    await turnsUntil(() => listening.length === piece)
    response.drained?.()
  }
  await sent
  assert.deepEqual([listening, listeners], [[1, 1, 1], 0])
})

/** For tests in which no timer runs by itself. */
async function turnsUntil(isSo: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1000 && !isSo(); turn++) await nextTurn()
}

describe('a reader that reads a piece of its answer every 59 seconds', () => {
  const LENGTH = 300_000
  const piece = Buffer.alloc(LENGTH / 3, 'x')
  const ways: Readonly<Record<string, (exchange: Exchange) => Promise<void> | void>> = {
    'a whole answer': (exchange) => exchange.sendAnswer('text/plain', Buffer.alloc(LENGTH, 'x'), {}),
    'a whole answer in parts': (exchange) => exchange.sendAnswer('text/plain', [piece, piece, piece], {}),
    'a text': (exchange) => exchange.send(200, 'text/plain', 'x'.repeat(LENGTH)),
    'a download': (exchange) => exchange.sendStream(Readable.from([piece, piece, piece]), {}),
  }
  for (const [name, send] of Object.entries(ways)) {
    it(`gets all of ${name}, and is disconnected when it stops`, async (t) => {
      t.mock.timers.enable({ apis: ['setTimeout'] })
      const memory = byteBudget(Infinity)
      let destroyed = 0
      let written = 0
      const response: ScriptedResponse = {
        writableLength: 1000,
        write({ length }) {
          written += length
          return false
        },
      }
      const exchange = looseExchange('GET', response, { memory, cut: () => (destroyed += 1) })
      const sent = send(exchange)
      let pieces = 0
      for (let seen = 0; ; seen = written) {
        if (pieces > 0) {
          t.mock.timers.tick(59_000)
          response.drained?.()
        }
        await turnsUntil(() => written > seen || exchange.isOver)
        if (exchange.isOver) break
        assert.ok(written > seen, `nothing came after ${seen} bytes`)
        pieces++
      }
      await sent
      assert.deepEqual([written, destroyed, memory.held()], [LENGTH, 0, 1000])
      assert.ok(pieces > 2, `${pieces} pieces`)
      // The last bytes have not left yet.
      t.mock.timers.tick(59_000)
      assert.equal(destroyed, 0)
      t.mock.timers.tick(1000)
      assert.equal(destroyed, 1)
    })
  }
})
