import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BrokenMessage } from '../../src/core/http1/header-lines.ts'
import { readRequestHead, type RequestHead } from '../../src/http/wire/request-head.ts'

/** A request with these lines after its first one. */
function headOf(...lines: readonly string[]): RequestHead {
  return readRequestHead(['POST / HTTP/1.1', ...lines].join('\r\n'))
}

function oldHeadOf(...lines: readonly string[]): RequestHead {
  return readRequestHead(['POST / HTTP/1.0', ...lines].join('\r\n'))
}

function refuses(text: string): void {
  assert.throws(() => readRequestHead(text), BrokenMessage, JSON.stringify(text))
}

const refusesLines = (...lines: readonly string[]): void => refuses(['POST / HTTP/1.1', ...lines].join('\r\n'))

describe('the first line of a request', () => {
  it('has a method, a target and a version', () => {
    assert.deepEqual(readRequestHead('GET /a?b=c HTTP/1.1'), {
      method: 'GET',
      target: '/a?b=c',
      headers: Object.create(null),
      body: { kind: 'length', length: 0 },
      isNew: true,
      keepsAlive: true,
    })
    assert.equal(readRequestHead('GET / HTTP/1.0').isNew, false)
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'M-SEARCH']) {
      assert.equal(readRequestHead(`${method} / HTTP/1.1`).method, method)
    }
  })

  it('has a target that is not changed', () => {
    for (const target of ['/', '*', '//a//b', '/a%20b/../c?d#e', 'http://host:80/a', '/~!@$&()[]{}|\\^`"<>']) {
      assert.equal(readRequestHead(`GET ${target} HTTP/1.1`).target, target)
    }
  })

  it('has a target that is a path, a star or an address', () => {
    for (const target of ['a', 'host:443', '?a', '#a', '.', 'http:/a', 'http:a', '://a', 'h2tp://a', '%2f']) {
      refuses(`GET ${target} HTTP/1.1`)
    }
  })

  it('has a method that is known, in capitals', () => {
    for (const method of ['', 'get', 'Get', 'GETS', 'G', 'PRI', 'FOO', 'GET\t', ' GET', 'GET:', 'constructor']) {
      refuses(`${method} / HTTP/1.1`)
    }
  })

  it('has a version that is spoken here', () => {
    for (const version of [
      'HTTP/0.9',
      'HTTP/1.2',
      'HTTP/2.0',
      'HTTP/11',
      'HTTP/1.10',
      'http/1.1',
      'HTTP/1.1 ',
      'ICE/1.0',
      '',
    ]) {
      refuses(`GET / ${version}`)
    }
    refuses('GET /')
    refuses('')
  })

  it('has one space between its parts, and nothing else that could be one', () => {
    for (const line of ['GET  / HTTP/1.1', 'GET /  HTTP/1.1', 'GET\t/ HTTP/1.1', 'GET / a HTTP/1.1', 'GET HTTP/1.1']) {
      refuses(line)
    }
    for (const odd of ['\0', '\t', '\n', '\r', '\x0b', '\x1f', '\x7f', '\x85', '\xa0', '\xe9']) {
      refuses(`GET /a${odd}b HTTP/1.1`)
    }
  })
})

describe('a header of a request', () => {
  it('has its name in small letters and its value without the space around it', () => {
    assert.deepEqual(
      { ...headOf('HoSt:a', 'X-One: \t b c \t', 'X-Empty:', 'X-Colon: d:e').headers },
      {
        host: 'a',
        'x-one': 'b c',
        'x-empty': '',
        'x-colon': 'd:e',
      },
    )
  })

  it('keeps bytes above 127 as they are, and takes none of them for space', () => {
    assert.equal(headOf('X-One: \xa0\xe9\x85\xa0').headers['x-one'], '\xa0\xe9\x85\xa0')
    // Another server on the way could see another length in these.
    refusesLines('Content-Length: \xa05')
    refusesLines('Content-Length: 5\xa0')
    refusesLines('Transfer-Encoding: \xa0chunked')
    refusesLines('Transfer-Encoding: chunked\xa0')
  })

  it('has a name of allowed characters, directly before the colon', () => {
    assert.equal(headOf("!#$%&'*+-.^_`|~09az: 1").headers["!#$%&'*+-.^_`|~09az"], '1')
    for (const line of [
      'Name : 1',
      ' Name: 1',
      '\tName: 1',
      ': 1',
      'Name',
      'Na me: 1',
      'Na(me: 1',
      'Na\xe9me: 1',
      '"a": 1',
    ]) {
      refusesLines(line)
      refusesLines('Host: x', line)
      refusesLines(line, 'Host: x')
    }
  })

  it('is one line', () => {
    refusesLines('X-One: a', ' b')
    refusesLines('X-One: a', '\tb: c')
    refusesLines('X-One: a', '', 'X-Two: b')
  })

  it('has no control characters, and no half ends of lines', () => {
    for (let code = 0; code < 0x20; code++) {
      if (code === 0x09) continue
      refusesLines(`X-One: a${String.fromCharCode(code)}b`)
      refusesLines(`X-${String.fromCharCode(code)}One: a`)
    }
    refusesLines('X-One: a\x7f')
    refusesLines('X-One: a\nContent-Length: 5')
    refusesLines('X-One: a\rContent-Length: 5')
    refusesLines('X-One: a\r')
    refusesLines('X-One: a\n')
    refuses('POST / HTTP/1.1\nHost: x')
    assert.equal(headOf('X-One: a\tb').headers['x-one'], 'a\tb')
  })

  it('may have a name that means something in JavaScript', () => {
    const { headers } = headOf('__proto__: a', 'constructor: b', '__proto__: c', 'toString: d')
    assert.deepEqual(Object.entries(headers), [
      ['__proto__', 'a, c'],
      ['constructor', 'b'],
      ['tostring', 'd'],
    ])
    assert.equal(headOf().headers['hasOwnProperty'], undefined)
    assert.equal(headOf().headers['__proto__'], undefined)
  })

  it('counts once where only one can be meant, and is joined to the first one elsewhere', () => {
    for (const name of ['Authorization', 'Content-Type', 'Host', 'Referer', 'User-Agent']) {
      assert.equal(headOf(`${name}: a`, `${name.toLowerCase()}: b`).headers[name.toLowerCase()], 'a')
    }
    assert.equal(headOf('Cookie: a=1', 'cookie: b=2').headers['cookie'], 'a=1; b=2')
    assert.equal(headOf('Accept: a', 'X-One: c', 'ACCEPT: b').headers['accept'], 'a, b')
    // An empty one counts, too: the next one must not take its place.
    assert.equal(headOf('Authorization:', 'Authorization: b').headers['authorization'], '')
  })
})

describe('the body of a request', () => {
  it('is as long as the head says', () => {
    assert.deepEqual(headOf().body, { kind: 'length', length: 0 })
    for (const [text, length] of [
      ['0', 0],
      ['5', 5],
      ['005', 5],
      ['999999999999999', 999_999_999_999_999],
    ] as const) {
      assert.deepEqual(headOf(`Content-Length: ${text}`).body, { kind: 'length', length })
    }
  })

  it('has a length in digits alone', () => {
    for (const text of [
      '',
      '-1',
      '+5',
      '5.0',
      '5e1',
      '0x5',
      '5 5',
      '5,5',
      '5, 5',
      'five',
      '5;',
      '1_0',
      '\xb2',
      '9'.repeat(16),
    ]) {
      refusesLines(`Content-Length: ${text}`)
    }
  })

  it('has one length, even if two say the same', () => {
    refusesLines('Content-Length: 5', 'Content-Length: 6')
    refusesLines('Content-Length: 5', 'content-length: 5')
    refusesLines('Content-Length: 5', 'X-One: a', 'CONTENT-LENGTH: 5')
    refusesLines('Content-Length:', 'Content-Length: 5')
  })

  it('comes in chunks, if the head says nothing else', () => {
    assert.deepEqual(headOf('Transfer-Encoding: chunked').body, { kind: 'chunked' })
    assert.deepEqual(headOf('transfer-encoding:\tCHUNKED ').body, { kind: 'chunked' })
    for (const coding of [
      '',
      'identity',
      'gzip',
      'gzip, chunked',
      'chunked, gzip',
      'chunked, chunked',
      'xchunked',
      'chunkedx',
      'chunked;a=b',
      '"chunked"',
      ',chunked',
    ]) {
      refusesLines(`Transfer-Encoding: ${coding}`)
    }
    refusesLines('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked')
    refusesLines('Transfer-Encoding: identity', 'Transfer-Encoding: chunked')
  })

  it('never has both a length and chunks, of which another server could take the other one', () => {
    refusesLines('Content-Length: 5', 'Transfer-Encoding: chunked')
    refusesLines('Transfer-Encoding: chunked', 'Content-Length: 5')
    refusesLines('Transfer-Encoding: chunked', 'Content-Length: 0')
    refusesLines('Transfer-Encoding: chunked', 'Content-Length:')
    refusesLines('Transfer-Encoding:', 'Content-Length: 5')
    refusesLines('Transfer-Encoding: identity', 'Content-Length: 5')
  })

  it('has no chunks in HTTP/1.0, which does not know them', () => {
    assert.throws(() => oldHeadOf('Transfer-Encoding: chunked'), BrokenMessage)
    assert.throws(() => oldHeadOf('Connection: keep-alive', 'Transfer-Encoding: chunked'), BrokenMessage)
    assert.deepEqual(oldHeadOf('Content-Length: 5').body, { kind: 'length', length: 5 })
  })
})

describe('a connection', () => {
  it('is used again in HTTP/1.1, unless the caller says that it closes it', () => {
    for (const [keepsAlive, ...lines] of [
      [true],
      [true, 'Connection: keep-alive'],
      [true, 'Connection: Upgrade'],
      [true, 'Connection: closed'],
      [false, 'Connection: close'],
      [false, 'connection: Close'],
      [false, 'Connection: keep-alive, close'],
      [false, 'Connection: TE,close'],
      [false, 'Connection: keep-alive', 'Connection: close'],
    ] as const) {
      assert.equal(headOf(...lines).keepsAlive, keepsAlive, lines.join())
    }
  })

  it('is used again in HTTP/1.0 only if the caller wants it', () => {
    for (const [keepsAlive, ...lines] of [
      [false],
      [false, 'Connection: TE'],
      [false, 'Connection: close'],
      [false, 'Connection: close, keep-alive'],
      [true, 'Connection: keep-alive'],
      [true, 'Connection: TE, Keep-Alive'],
    ] as const) {
      assert.equal(oldHeadOf(...lines).keepsAlive, keepsAlive, lines.join())
    }
  })
})
