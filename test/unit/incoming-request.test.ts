import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { IncomingRequest, type BodyTaker } from '../../src/http/wire/incoming-request.ts'
import { readRequestHead } from '../../src/http/wire/request-head.ts'

interface Taken extends BodyTaker {
  readonly events: string[]
}

function taker(onData: () => void = () => {}): Taken {
  const events: string[] = []
  return {
    events,
    data(chunk) {
      events.push(chunk.toString('latin1'))
      onData()
    },
    end: () => void events.push('<end>'),
    cut: () => void events.push('<cut>'),
  }
}

function request(line: string, flow: () => void = () => {}): IncomingRequest {
  return new IncomingRequest(readRequestHead(`POST / HTTP/1.1\r\n${line}`), '127.0.0.1', flow)
}

const five = 'Content-Length: 5'
const chunks = 'Transfer-Encoding: chunked'
const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')

describe('the body of a request', () => {
  it('ends where its length says, with what follows left alone', () => {
    const [it, taken] = [request(five), taker()]
    it.take(taken)
    assert.equal(it.read(bytes('..he'), 2), 4)
    assert.equal(it.isComplete, false)
    assert.equal(it.read(bytes('lloGET /'), 0), 3)
    assert.equal(it.isComplete, true)
    assert.deepEqual(taken.events, ['he', 'llo', '<end>'])
  })

  it('ends with its last chunk, and has the chunks of one read in one piece', () => {
    const [it, taken] = [request(chunks), taker()]
    it.take(taken)
    const read = '..5\r\nhello\r\n6\r\n world\r\n6\r\n, a'
    assert.equal(it.read(bytes(read), 2), read.length)
    assert.equal(it.read(bytes('nd!\r\n0\r\n\r\nGET /'), 0), 10)
    assert.deepEqual([it.isComplete, taken.events], [true, ['hello world, a', 'nd!', '<end>']])
  })

  it('may be empty: then it ends as soon as it is taken', () => {
    for (const line of ['Content-Length: 0', 'Host: x']) {
      const [it, taken] = [request(line, assert.fail), taker()]
      assert.equal(it.isComplete, true)
      it.take(taken)
      assert.deepEqual(taken.events, ['<end>'])
    }
    const [it, taken] = [request(chunks), taker()]
    it.take(taken)
    it.read(bytes('0\r\n\r\n'), 0)
    assert.deepEqual(taken.events, ['<end>'])
  })

  it('flows only while somebody takes it', () => {
    let flows = 0
    const it = request(five, () => flows++)
    assert.deepEqual([it.isFlowing, flows], [false, 0])
    it.take(taker())
    assert.deepEqual([it.isFlowing, flows], [true, 1])
    it.pause()
    assert.deepEqual([it.isFlowing, flows], [false, 1])
    it.resume()
    assert.deepEqual([it.isFlowing, flows], [true, 2])
    it.resume()
    assert.equal(flows, 2)
    it.pause()
    it.discard()
    assert.deepEqual([it.isFlowing, flows], [true, 3])
  })

  it('is over once: a resume after its end lets nothing flow', () => {
    let flows = 0
    const it = request(five, () => flows++)
    const taken = taker(() => it.pause())
    it.take(taken)
    it.read(bytes('hello'), 0)
    it.resume()
    assert.deepEqual([flows, taken.events], [1, ['hello', '<end>']])
  })

  it('that is discarded tells its taker nothing more, even from within', () => {
    for (const rest of ['', ' world']) {
      const it = request(`Content-Length: ${5 + rest.length}`)
      const taken = taker(() => it.discard())
      it.take(taken)
      it.read(bytes('hello'), 0)
      if (rest) it.read(bytes(rest), 0)
      it.cut()
      assert.deepEqual([it.isComplete, taken.events], [true, ['hello']])
    }
  })

  it('that is cut off tells its taker once, also one that comes later', () => {
    const [early, late] = [taker(), taker()]
    const it = request(five)
    it.take(early)
    it.read(bytes('he'), 0)
    it.cut()
    it.cut()
    it.take(late)
    assert.deepEqual([early.events, late.events, it.isComplete], [['he', '<cut>'], ['<cut>'], false])
  })

  it('cannot be cut off after its end', () => {
    const [it, taken, late] = [request(five), taker(), taker()]
    it.take(taken)
    it.read(bytes('hello'), 0)
    it.cut()
    it.take(late)
    assert.deepEqual([taken.events, late.events], [['hello', '<end>'], ['<end>']])
  })
})
