import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { AnswerReader, type AnswerTaker } from '../../src/http-client/answer-reader.ts'
import { BrokenMessage } from '../../src/http-client/header-lines.ts'

interface Seen {
  status: number
  headers: object
  body: string
  pieces: number
  end: 'reusable' | 'not reusable' | 'closed' | 'none'
}

/** Reads what a server sends, in reads of these sizes; the last one has the rest. Then the server closes, if it says so. */
function read(text: string, sizes: readonly number[] = [], isClosed = false): Seen {
  const seen: Seen = { status: 0, headers: {}, body: '', pieces: 0, end: 'none' }
  const taker: AnswerTaker = {
    answerHead(status, headers) {
      seen.status = status
      seen.headers = headers
    },
    answerBody(bytes) {
      seen.body += bytes.toString('latin1')
      seen.pieces++
    },
    answerEnd: (isReusable) => (seen.end = isReusable ? 'reusable' : 'not reusable'),
  }
  const reader = new AnswerReader(taker)
  reader.expect()
  // As in a connection, reads share a buffer that has the bytes of earlier ones behind theirs.
  const shared = Buffer.from('5\r\nxxxxx\r\n\r\n'.repeat(1000), 'latin1')
  const bytes = Buffer.from(text, 'latin1')
  let from = 0
  for (const size of [...sizes, bytes.length]) {
    const length = bytes.copy(shared, 0, from, Math.min(from + size, bytes.length))
    if (length > 0) reader.read(shared, length)
    from += length
  }
  if (isClosed) {
    reader.close()
    if (seen.end === 'none') seen.end = 'closed'
  }
  return seen
}

const lengthed = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\nhello'
const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7;name="a;b"\r\n, world\r\n1A\r\n'
const chunkedWhole = `${chunked}${'.'.repeat(26)}\r\n0\r\nTrailer: x\r\n\r\n`

describe('the answers of a server', () => {
  it('are read by their length', () => {
    assert.deepEqual(read(lengthed), {
      status: 200,
      headers: { __proto__: null, 'content-type': 'application/json', 'content-length': '5' },
      body: 'hello',
      pieces: 1,
      end: 'reusable',
    })
    assert.equal(read('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n').end, 'reusable')
    assert.equal(read('HTTP/1.1 204 No Content\r\n\r\n').end, 'reusable')
    assert.equal(read('HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n').end, 'reusable')
  })

  it('are read in chunks, and what one read brings is one piece', () => {
    const { body, pieces, end } = read(chunkedWhole)
    assert.deepEqual([body, pieces, end], [`hello, world${'.'.repeat(26)}`, 1, 'reusable'])
  })

  it('are read until the connection closes, if they say nothing about their length', () => {
    const text = 'HTTP/1.1 200 OK\r\n\r\nhello'
    assert.equal(read(text).end, 'none')
    const { body, end } = read(text, [], true)
    assert.deepEqual([body, end], ['hello', 'not reusable'])
  })

  it('mean the same however the network cuts them', () => {
    const late = `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n`
    for (const text of [lengthed, chunkedWhole, late + lengthed, late + chunkedWhole]) {
      const { pieces: _pieces, ...whole } = read(text)
      assert.equal(whole.end, 'reusable')
      fc.assert(
        fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 200 }), (sizes) => {
          const { pieces: _some, ...seen } = read(text, sizes)
          assert.deepEqual(seen, whole)
        }),
        { numRuns: 300, examples: [[Array.from(text, () => 1)]] },
      )
    }
  })

  it('let the connection be used again only if the server does not mind and no byte is in doubt', () => {
    const answer = (headers: string, version = '1.1'): string => `HTTP/${version} 200 OK\r\n${headers}\r\n\r\nhello`
    const cases: [string, Seen['end']][] = [
      [answer('Content-Length: 5\r\nConnection: close'), 'not reusable'],
      [answer('Content-Length: 5\r\nConnection: Keep-Alive'), 'reusable'],
      [answer('Content-Length: 5', '1.0'), 'not reusable'],
      [answer('Content-Length: 5\r\nConnection: keep-alive', '1.0'), 'reusable'],
      [answer('Content-Length: 5\r\nKeep-Alive: timeout=5'), 'reusable'],
      [answer('Content-Length: 5\r\nKeep-Alive: timeout=2, max=100'), 'not reusable'],
      [`${lengthed}HTTP/1.1 200 OK`, 'not reusable'],
      [`${chunkedWhole}.`, 'not reusable'],
    ]
    for (const [text, end] of cases) assert.equal(read(text).end, end, text)
  })

  it('keep headers that come several times', () => {
    const { headers } = read('HTTP/1.1 200 OK\r\nVia: a\r\nContent-Length: 0\r\nVIA:b \r\nVia:\tc\r\n\r\n')
    assert.deepEqual(headers, { __proto__: null, via: ['a', 'b', 'c'], 'content-length': '0' })
  })

  it('keep headers in an object without a prototype, so that no name is special', () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '__defineGetter__']
    const lines = names.map((name) => `${name}: a\r\n${name}: b\r\n`).join('')
    const { headers } = read(`HTTP/1.1 200 OK\r\n${lines}Content-Length: 0\r\n\r\n`)
    assert.equal(Object.getPrototypeOf(headers), null)
    const expected = [...names.map((name) => [name.toLowerCase(), ['a', 'b']]), ['content-length', '0']]
    assert.deepEqual(Object.entries(headers), expected)
    const { headers: none } = read('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    for (const name of names) assert.equal((none as Record<string, unknown>)[name], undefined)
  })

  const broken: [string, string][] = [
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
    ['another version', 'HTTP/2 200\r\n\r\n'],
    ['no status', 'HTTP/1.1 OK\r\n\r\n'],
    ['a status of four digits', 'HTTP/1.1 2000\r\n\r\n'],
    ['a change of protocol', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
    ['a folded header', 'HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n'],
    ['a header without a name', 'HTTP/1.1 200 OK\r\n: b\r\n\r\n'],
    ['a header with a space before its colon', 'HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello'],
    ['a header without a colon', 'HTTP/1.1 200 OK\r\nContent-Length\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello'],
    ['two equal lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello'],
    ['a length and chunks', chunkedWhole.replace('\r\n', '\r\nContent-Length: 38\r\n')],
    ['a trailer that is no header', chunkedWhole.replace('Trailer: x', 'Trailer x')],
    ['a zero in a trailer', chunkedWhole.replace('Trailer: x', 'Trailer: \0')],
    ['a zero in an extension', chunkedWhole.replace('name=', '\0')],
    ['a length that is none, where there is no body', 'HTTP/1.1 204 No Content\r\nContent-Length: x\r\n\r\n'],
    ['a negative length', 'HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello'],
    ['a length that is none', 'HTTP/1.1 200 OK\r\nContent-Length: 5 bytes\r\n\r\nhello'],
    ['an unknown transfer encoding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n'],
    ['a chunk without a size', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhello\r\n'],
    ['a chunk with an extension instead of a size', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n;a\r\n'],
    ['a chunk with a wrong size', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n'],
    ['a chunk whose size is no number', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\nhello\r\n'],
    ['a chunk whose size has a sign', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n'],
    ['a size in two parts', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r5\r\n'],
    ['a line that ends with a line feed alone', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\n'],
    ['an endless head', `HTTP/1.1 200 OK\r\nA: ${'b'.repeat(70_000)}`],
    ['a head that ends after 64 KiB', `HTTP/1.1 200 OK\r\nA: ${'b'.repeat(65_536)}\r\n\r\n`],
    ['an endless size', `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'f'.repeat(20)}`],
    ['an endless extension', `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;${'x'.repeat(5000)}`],
    ['endless trailers', `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${'a: b\r\n'.repeat(20_000)}`],
  ]
  for (const [what, text] of broken) {
    it(`are refused with ${what}`, () => {
      const sizes = text.length > 10_000 ? Array.from({ length: text.length / 5000 }, () => 5000) : []
      assert.throws(() => read(text, sizes), BrokenMessage)
    })
  }

  it('are refused when the connection closes before their end', () => {
    for (const length of [0, 10, chunkedWhole.length - 40, chunkedWhole.length - 1]) {
      assert.throws(() => read(chunkedWhole.slice(0, length), [], true), /the server closed the connection/)
    }
    assert.equal(read(chunkedWhole, [], true).end, 'reusable')
  })

  it('are refused when there is no request', () => {
    const reader = new AnswerReader({ answerHead() {}, answerBody() {}, answerEnd() {} })
    assert.throws(() => reader.read(Buffer.from(lengthed), lengthed.length), /was not requested/)
  })
})
