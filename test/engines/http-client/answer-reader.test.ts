import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { AnswerReader, type AnswerTaker } from '../../../src/engines/http-client/answer-reader.ts'
import { BrokenMessage } from '../../../src/engines/http-client/message-head.ts'

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
  for (const cuts = sizes.values(); from < bytes.length;) {
    const size = cuts.next().value ?? bytes.length
    const length = bytes.copy(shared, 0, from, Math.min(from + size, bytes.length))
    reader.read(shared, length)
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

  it('are read in chunks, and one read delivers one piece', () => {
    const { body, pieces, end } = read(chunkedWhole)
    assert.deepEqual([body, pieces, end], [`hello, world${'.'.repeat(26)}`, 1, 'reusable'])
  })

  it('are read until the connection closes, if they have no length', () => {
    const text = 'HTTP/1.1 200 OK\r\n\r\nhello'
    assert.equal(read(text).end, 'none')
    const { body, end } = read(text, [], true)
    assert.deepEqual([body, end], ['hello', 'not reusable'])
  })

  it('mean the same however the network splits them', () => {
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

  it('let the connection be reused only if the server allows it and no byte is in doubt', () => {
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

  it('keep repeated headers', () => {
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

  const inChunks = (text: string): string => `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${text}`
  /** With a name and a value that make the whole text as long as this. */
  const padded = (start: string, end: string, length: number): string =>
    `${start}${'x'.repeat(length - start.length - end.length)}${end}`
  const limits: [what: string, most: number, of: (size: number) => string][] = [
    ['head', 65_536, (size) => `${padded('HTTP/1.1 200 OK\r\nA: ', '\r\nContent-Length: 5', size)}\r\n\r\nhello`],
    ['status line', 4096, (size) => `${padded('HTTP/1.1 200 ', '', size)}\r\nContent-Length: 5\r\n\r\nhello`],
    ['line of a chunk', 4096, (size) => inChunks(`${padded('5;', '\r\n', size)}hello\r\n0\r\n\r\n`)],
    ['line of the last chunk', 4096, (size) => inChunks(`5\r\nhello\r\n${padded('0;', '\r\n', size)}\r\n`)],
    ['set of trailers', 65_536, (size) => inChunks(`5\r\nhello\r\n0\r\n${padded('A: ', '\r\n\r\n', size)}`)],
  ]
  for (const [what, most, of] of limits) {
    it(`may have a ${what} of ${most} bytes, and of no more`, () => {
      // Whole, and in pieces that end in the middle of it.
      for (const sizes of [[], Array.from({ length: 100 }, () => 1021)]) {
        const fits = read(of(most), sizes)
        assert.deepEqual([fits.body, fits.end], ['hello', 'reusable'])
        assert.throws(() => read(of(most + 1), sizes), BrokenMessage)
      }
    })
  }

  it('may have a length of 15 digits, and of no more', () => {
    const answer = (length: string): string => `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\nhello`
    assert.equal(read(answer('0'.repeat(14) + 5)).end, 'reusable')
    assert.equal(read(answer('9'.repeat(15))).end, 'none')
    assert.throws(() => read(answer('0'.repeat(15) + 5)), BrokenMessage)
  })

  it('may have chunks of any size that is a whole number', () => {
    // A chunk that goes on, and is not over when the connection closes.
    for (const size of ['1000000000000', 'ffffffffffff', '00000000000000000000005']) {
      const seen = read(inChunks(`${size}\r\nhell`))
      assert.deepEqual([seen.body, seen.end], ['hell', 'none'], size)
    }
    for (const size of ['100000000000000', '10000000000010']) {
      assert.throws(() => read(inChunks(`${size}\r\nhello`)), /no size/, size)
    }
    for (const digit of '0123456789abcdefABCDEF') {
      const length = Number.parseInt(digit, 16)
      assert.equal(read(inChunks(`${digit}\r\n${'x'.repeat(length)}`)).body.length, length)
    }
    for (const other of '/:@G`g ') assert.throws(() => read(inChunks(`1${other}\r\n`)), BrokenMessage, other)
  })

  it('may have no control characters, except for tabs and those that end a line', () => {
    for (let code = 0; code < 256; code++) {
      const character = String.fromCharCode(code)
      if (character === '\r' || character === '\n') continue
      const isAllowed = code === 0x09 || (code >= 0x20 && code !== 0x7f)
      for (const text of [
        `HTTP/1.1 200 ${character}\r\nContent-Length: 5\r\n\r\nhello`,
        `HTTP/1.1 200 OK\r\nA: b${character}c\r\nContent-Length: 5\r\n\r\nhello`,
        inChunks(`5;${character}\r\nhello\r\n0\r\n\r\n`),
        inChunks(`5\r\nhello\r\n0\r\nA: ${character}\r\n\r\n`),
      ]) {
        if (isAllowed) assert.equal(read(text).body, 'hello', text)
        else assert.throws(() => read(text), BrokenMessage, text)
      }
    }
  })

  it('have no body with some statuses, whatever their heads declare', () => {
    for (const status of ['204', '304']) {
      for (const head of ['Content-Length: 5', 'Transfer-Encoding: chunked', 'A: b']) {
        const seen = read(`HTTP/1.1 ${status} \r\n${head}\r\n\r\n`)
        assert.deepEqual([seen.body, seen.end], ['', 'reusable'], head)
      }
    }
    for (const status of ['200', '203', '205', '303', '305', '400', '599']) {
      assert.equal(read(`HTTP/1.1 ${status} \r\nContent-Length: 5\r\n\r\nhello`).body, 'hello', status)
    }
    for (const status of ['099', '600']) {
      assert.throws(() => read(`HTTP/1.1 ${status} \r\nContent-Length: 5\r\n\r\nhello`), BrokenMessage, status)
    }
  })

  it('announce how long the server keeps the connection: less than 5 s is too short', () => {
    for (const [seconds, end] of [
      ['4', 'not reusable'],
      ['5', 'reusable'],
      ['75', 'reusable'],
    ] as const) {
      const answer = `HTTP/1.1 200 OK\r\nContent-Length: 0\r\nKeep-Alive: timeout=${seconds}\r\n\r\n`
      assert.equal(read(answer).end, end, seconds)
    }
  })

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

  it('deliver nothing after they are aborted, and the next one starts fresh', () => {
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
    for (const begun of ['HTTP/1.1 2', head, `${head}5\r\nhe`]) {
      const said: string[] = []
      const reader = new AnswerReader({
        answerHead: (status) => said.push(`head ${status}`),
        answerBody: (bytes) => said.push(bytes.toString()),
        answerEnd: (isReusable) => said.push(`end ${isReusable}`),
      })
      reader.expect()
      reader.read(Buffer.from(begun), begun.length)
      reader.stop()
      said.length = 0
      reader.close()
      assert.throws(() => reader.read(Buffer.from('llo\r\n'), 5), /was not requested/)
      reader.expect()
      reader.read(Buffer.from(lengthed), lengthed.length)
      assert.deepEqual(said, ['head 200', 'hello', 'end true'], begun)
    }
  })

  it('end where they are stopped: at their head, or at a piece', () => {
    for (const [at, expected] of [
      ['head', ['head']],
      ['body', ['head', 'body']],
    ] as const) {
      for (const text of [lengthed, chunkedWhole, `HTTP/1.1 103 Early Hints\r\n\r\n${lengthed}`]) {
        const said: string[] = []
        const take = (what: string): void => {
          said.push(what)
          if (what === at) reader.stop()
        }
        const reader = new AnswerReader({
          answerHead: () => take('head'),
          answerBody: () => take('body'),
          answerEnd: () => take('end'),
        })
        reader.expect()
        reader.read(Buffer.from(text), text.length)
        assert.deepEqual(said, expected)
      }
    }
  })
})
