import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { Exchange } from '../../src/server/exchange.ts'
import { listen } from '../../src/server/server.ts'
import { answersIn, answersTo, echo, wireStage, type WireStage } from '../support/wire-stage.ts'
import { eventually, gate } from '../support/waiting.ts'

const get = (target: string, ...lines: readonly string[]): string =>
  ['GET ', target, ' HTTP/1.1\r\nHost: x\r\n', ...lines.map((line) => `${line}\r\n`), '\r\n'].join('')

const lengthed = 'POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\nhello world'
const chunked =
  'POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n' +
  '5\r\nhello\r\n1;name="a;b"\r\n \r\n005\r\nworld\r\n0;last\r\nTrailer: x\r\nOther: y\r\n\r\n'

/** Everything that was sent before has reached the service when it answers another caller. */
async function answerToAnother(stage: WireStage): Promise<void> {
  const other = await stage.call()
  other.send('nonsense\r\n\r\n')
  await other.closed()
}

/** Counts the readers of a body that were notified that it was cut off. */
function countedAborts(): { answer(exchange: Exchange): Promise<void>; aborted(): number } {
  let count = 0
  const answer = (exchange: Exchange): Promise<void> =>
    echo(exchange).catch((error: unknown) => {
      count++
      throw error
    })
  return { answer, aborted: () => count }
}

const bodies = (stage: WireStage): unknown[] =>
  answersIn(stage.client.received).map(({ body }) => JSON.parse(body) as unknown)

describe('a request that arrives in pieces', () => {
  for (const [what, request, seen] of [
    ['without a body', get('/c'), ['GET', '/c', '']],
    ['with a length', lengthed, ['POST', '/a', 'hello world']],
    ['in chunks', chunked, ['POST', '/b', 'hello world']],
  ] as const) {
    it(`is the same wherever it is cut: ${what}`, async (t) => {
      const stage = await wireStage(t)
      for (let cut = 1; cut < request.length; cut++) {
        await stage.arrives(request.slice(0, cut))
        await stage.arrives(request.slice(cut))
        await answersTo(stage.client, cut)
      }
      assert.deepEqual(
        bodies(stage),
        Array.from({ length: request.length - 1 }, () => seen),
      )
    })

    it(`is the same byte by byte, twice: ${what}`, async (t) => {
      const stage = await wireStage(t)
      for (const byte of request + request) await stage.arrives(byte)
      await answersTo(stage.client, 2)
      assert.deepEqual(bodies(stage), [seen, seen])
    })
  }
})

describe('requests that arrive before the answer to the last one', () => {
  const all = `${lengthed}\r\n${get('/1')}${chunked}${lengthed}${chunked}${get('/2')}`
  const seen = [
    ['POST', '/a', 'hello world'],
    ['GET', '/1', ''],
    ['POST', '/b', 'hello world'],
    ['POST', '/a', 'hello world'],
    ['POST', '/b', 'hello world'],
    ['GET', '/2', ''],
  ]

  it('are answered in their order, in one piece and wherever they are cut', async (t) => {
    const stage = await wireStage(t)
    let rounds = 1
    await stage.arrives(all)
    await answersTo(stage.client, seen.length)
    for (let cut = 1; cut < all.length; cut += 7) {
      await stage.arrives(all.slice(0, cut))
      await stage.arrives(all.slice(cut))
      await answersTo(stage.client, seen.length * ++rounds)
    }
    assert.deepEqual(bodies(stage), Array.from({ length: rounds }, () => seen).flat())
  })

  it('wait until it has been sent, one after the other', async (t) => {
    const gates = [gate(), gate(), gate()]
    const stage = await wireStage(t, async (exchange) => {
      await gates[Number(exchange.request.target.slice(1))]?.opened
      return echo(exchange)
    })
    stage.client.send(get('/0') + get('/1') + get('/2'))
    for (const [index, { open }] of gates.entries()) {
      await eventually('the next one begins', () => stage.asked.length === index + 1)
      await nextTurn()
      assert.equal(stage.asked.length, index + 1)
      assert.equal(stage.listener.requestCount(), index + 1, 'counted before it is answered')
      open()
      await answersTo(stage.client, index + 1)
    }
    assert.deepEqual(stage.asked, ['GET /0', 'GET /1', 'GET /2'])
  })

  it('do not keep other callers waiting, however many arrive in one piece', async (t) => {
    const stage = await wireStage(t, (exchange) => exchange.sendJson('{}'))
    await stage.arrives(get('/').repeat(100))
    await nextTurn()
    assert.ok(stage.asked.length < 10, `${stage.asked.length} requests were answered in one turn`)
    await answersTo(stage.client, 100)
    assert.equal(stage.asked.length, 100)
  })

  it('close the connection when more than a hundred wait, so that a disconnect is always noticed', async (t) => {
    const stage = await wireStage(t, () => new Promise(() => {}))
    await stage.arrives(get('/') + get('/more').repeat(100))
    await answerToAnother(stage)
    assert.equal(stage.far.destroyed, false)
    stage.client.send(get('/more'))
    await eventually('it is cut off', () => stage.far.destroyed)
    await eventually('the first one has ended', () => stage.ended === 1)
    assert.deepEqual(stage.asked, ['GET /'])
    assert.equal(stage.client.received, '')
  })

  it('are not served when the caller has declared the last one as final', async (t) => {
    const stage = await wireStage(t)
    stage.client.send(get('/1', 'Connection: close') + get('/2'))
    await stage.client.closed()
    assert.deepEqual(stage.asked, ['GET /1'])
    assert.deepEqual(bodies(stage), [['GET', '/1', '']])
    assert.match(answersIn(stage.client.received)[0]?.head ?? '', /\r\nConnection: close$/m)
  })

  it('are not served after one that another server may read differently, or that asks for an upgrade', async (t) => {
    for (const [last, asked] of [
      ['GET /1 HTTP/1.1\r\n\r\n', []],
      [get('/1', 'Upgrade: x', 'Connection: upgrade'), ['GET /1']],
    ] as const) {
      const stage = await wireStage(t)
      stage.client.send(last + get('/2'))
      await stage.client.closed()
      assert.deepEqual(stage.asked, asked)
      const answers = answersIn(stage.client.received)
      assert.equal(answers.length, 1)
      assert.match(answers[0]?.head ?? '', /\r\nConnection: close$/m)
    }
  })

  it('have up to two hundred headers each', async (t) => {
    const stage = await wireStage(t)
    const headers = (count: number) => Array.from({ length: count - 1 }, (_, index) => `X-${index}: x`)
    stage.client.send(get('/1', ...headers(200)) + get('/2', ...headers(201)))
    await stage.client.closed()
    assert.deepEqual(stage.asked, ['GET /1'])
    assert.deepEqual(
      answersIn(stage.client.received).map(({ head }) => head.split(' ')[1]),
      ['200', '431'],
    )
  })

  /** Handed over whole, and too much for the connection. */
  const large = (exchange: Exchange): void => {
    exchange.openAnswer('text/plain', {})
    exchange.write('x'.repeat(30_000_000))
    exchange.end('')
  }
  const inPieces = (exchange: Exchange): void => exchange.sendAnswer('text/plain', Buffer.alloc(30_000_000), {})

  for (const [what, answer] of Object.entries({ large, inPieces })) {
    it(`are not served when the caller has not read the last answer in time: ${what}`, async (t) => {
      const stage = await wireStage(t, answer, { stallMs: 100 })
      stage.client.socket.pause()
      stage.client.send(get('/1') + get('/2'))
      await eventually('it is cut off', () => stage.far.destroyed)
      await nextTurn()
      assert.deepEqual(stage.asked, ['GET /1'])
      assert.equal(stage.ended, 1)
    })

    it(`are not served when the caller disconnects during the last answer: ${what}`, async (t) => {
      const stage = await wireStage(t, answer)
      stage.client.socket.pause()
      stage.client.send(get('/1') + get('/2'))
      await eventually('it is on its way', () => stage.ended === 1)
      stage.client.leave()
      await eventually('it has closed', () => stage.far.destroyed)
      await nextTurn()
      assert.deepEqual(stage.asked, ['GET /1'])
    })
  }
})

describe('a body that is not read', () => {
  const unread = (exchange: Exchange): void => exchange.sendJson('{}', 401)

  it('is discarded, and the next request is served', async (t) => {
    const stage = await wireStage(t, (exchange) => (exchange.method === 'POST' ? unread(exchange) : echo(exchange)))
    for (const request of [lengthed, chunked]) {
      for (const cut of [request.indexOf('\r\n\r\n') + 4, request.length - 3, request.length]) {
        const before = stage.asked.length
        await stage.arrives(request.slice(0, cut))
        await answersTo(stage.client, before + 1)
        await stage.arrives(request.slice(cut) + get('/next'))
        const answers = await answersTo(stage.client, before + 2)
        assert.deepEqual([answers.at(-2)?.status, answers.at(-1)?.body], [401, '["GET","/next",""]'])
      }
    }
  })

  it('may be long: the answer reaches a caller that sends all of it first, and the connection then closes', async (t) => {
    const stage = await wireStage(t, unread)
    const LENGTH = 20_000_000
    stage.client.send(`POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${LENGTH}\r\n\r\n`)
    stage.client.socket.pause()
    for (let sent = 0; sent < LENGTH; sent += 1_000_000) {
      await new Promise((resolve) => stage.client.socket.write(Buffer.alloc(1_000_000), resolve))
    }
    stage.client.socket.resume()
    await stage.client.closed()
    assert.equal(answersIn(stage.client.received)[0]?.status, 401)
  })

  it('is answered once, even if the rest of it is broken or never arrives', async (t) => {
    const stage = await wireStage(t, unread, { requestMs: 1000, checkMs: 20 })
    stage.client.send('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello')
    const late = await stage.call()
    late.send('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab')
    await answersTo(stage.client, 1)
    stage.client.send('world\r\n0\r\n\r\n')
    await Promise.all([stage.client.closed(), late.closed()])
    for (const { received } of [stage.client, late]) assert.equal(received.match(/HTTP\/1\.1 /g)?.length, 1, received)
  })

  it('does not count as late while the service does not read it', async (t) => {
    const held = gate()
    const stage = await wireStage(
      t,
      async (exchange) => {
        await held.opened
        exchange.sendJson('{}')
      },
      { requestMs: 2000, checkMs: 20 },
    )
    stage.client.send(lengthed)
    await eventually('it has begun', () => stage.asked.length === 1)
    const other = await stage.call()
    // By the time that this one is late, the first one would be.
    await other.closed()
    held.open()
    assert.equal((await answersTo(stage.client, 1))[0]?.status, 200)
  })
})

describe('Expect: 100-continue', () => {
  const head = (...lines: readonly string[]): string =>
    ['POST / HTTP/1.1', 'Host: x', 'Expect: 100-Continue', ...lines, '', ''].join('\r\n')
  const GO_ON = 'HTTP/1.1 100 Continue\r\n\r\n'

  it('is answered before the body arrives, and the answer follows', async (t) => {
    const stage = await wireStage(t)
    stage.client.send(head('Content-Length: 5'))
    await stage.client.sees(GO_ON)
    assert.equal(stage.client.received, GO_ON)
    stage.client.send('hello')
    await stage.client.sees('["POST","/","hello"]')
    assert.ok(stage.client.received.startsWith(`${GO_ON}HTTP/1.1 200 OK\r\n`))
  })

  it('is not answered in HTTP/1.0, which does not have it', async (t) => {
    const stage = await wireStage(t)
    await stage.arrives(head('Content-Length: 5').replace('1.1', '1.0'))
    await stage.arrives('hello')
    assert.equal((await answersTo(stage.client, 1)).length, 1)
    assert.ok(!stage.client.received.includes('100 Continue'))
  })

  it('with another expectation is ignored', async (t) => {
    const stage = await wireStage(t)
    stage.client.send(get('/', 'Expect: a-miracle'))
    assert.deepEqual((await answersTo(stage.client, 1))[0]?.status, 200)
  })
})

describe('an answer', () => {
  it('has a date, the headers of the listener, and keeps the connection', async (t) => {
    const stage = await wireStage(t)
    stage.client.send(get('/'))
    const [{ head } = { head: '' }] = await answersTo(stage.client, 1)
    assert.match(head, /^HTTP\/1\.1 200 OK\r\nX-Request-Id: \S+\r\n/)
    const date = Date.parse(/\r\nDate: (.*GMT)\r\n/.exec(head)?.[1] ?? '')
    assert.ok(Math.abs(Date.now() - date) < 60_000)
    for (const line of ['X-Ours: yes', 'Connection: keep-alive', 'Keep-Alive: timeout=75']) {
      assert.ok(head.split('\r\n').includes(line), line)
    }
  })

  it('to HEAD has the length and no body, and the next one follows it', async (t) => {
    const stage = await wireStage(t)
    stage.client.send(`HEAD /1 HTTP/1.1\r\nHost: x\r\n\r\n${get('/2')}`)
    await stage.client.sees('["GET","/2",""]')
    assert.match(
      stage.client.received,
      /^HTTP\/1\.1 200 OK\r\n[^]*\r\nContent-Length: 16\r\n[^]*?\r\n\r\nHTTP\/1\.1 200 OK\r\n/,
    )
  })

  it('without a length to HEAD, or with 204 or 304, has no body and no chunks', async (t) => {
    const stage = await wireStage(t, (exchange) => {
      const status = Number(exchange.path.slice(1))
      if (exchange.method !== 'HEAD') return exchange.send(status, 'text/plain', 'never sent')
      exchange.openAnswer('text/plain', {})
      exchange.write('never sent')
      exchange.end('never sent')
    })
    stage.client.send(`HEAD / HTTP/1.1\r\nHost: x\r\n\r\n${get('/204')}${get('/304')}${get('/200')}`)
    await stage.client.sees('never sent')
    const [head, none, same, usual] = stage.client.received.split(/(?<=\r\n\r\n)(?=HTTP)/)
    for (const answer of [head, none, same]) assert.match(answer ?? '', /^HTTP\/1\.1 (200|204|304) [^]*\r\n\r\n$/)
    assert.doesNotMatch(stage.client.received, /Transfer-Encoding/)
    assert.match(usual ?? '', /\r\n\r\nnever sent$/)
  })

  it('without a length is sent in chunks, none of which is empty before the last one', async (t) => {
    const stage = await wireStage(t, stream)
    stage.client.send(get('/'))
    await stage.client.sees('\r\n0\r\n\r\n')
    assert.match(
      stage.client.received,
      /\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n$/,
    )
    assert.match(stage.client.received, /\r\nConnection: keep-alive\r\n/)
  })

  it('without a length to HTTP/1.0 ends with the connection, whatever the caller requested', async (t) => {
    for (const wish of ['', 'Connection: keep-alive\r\n']) {
      const stage = await wireStage(t, stream)
      stage.client.send(`GET / HTTP/1.0\r\n${wish}\r\n`)
      await stage.client.closed()
      assert.match(stage.client.received, /\r\nConnection: close\r\n\r\nonetwothree$/)
      assert.doesNotMatch(stage.client.received, /Transfer-Encoding/)
    }
  })

  it('to HTTP/1.0 closes the connection, or keeps it if the caller requests that', async (t) => {
    const stage = await wireStage(t)
    stage.client.send('GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n')
    assert.match((await answersTo(stage.client, 1))[0]?.head ?? '', /\r\nConnection: keep-alive\r\n/)
    stage.client.send('GET /2 HTTP/1.0\r\n\r\n')
    await stage.client.closed()
    assert.deepEqual(bodies(stage), [
      ['GET', '/1', ''],
      ['GET', '/2', ''],
    ])
    assert.match(answersIn(stage.client.received)[1]?.head ?? '', /\r\nConnection: close$/)
  })

  it('that is shorter or longer than declared closes the connection, so that no other can be read as a part of it', async (t) => {
    for (const length of ['2', '5']) {
      const stage = await wireStage(t, (exchange) =>
        exchange.sendStream(Readable.from(['abc']), { 'Content-Length': length }),
      )
      stage.client.send(get('/1') + get('/2'))
      await stage.client.closed()
      assert.deepEqual(stage.asked, ['GET /1'])
      assert.doesNotMatch(stage.client.received, /HTTP\/1\.1 [^]*HTTP\/1\.1 /)
    }
  })

  it('has no header with a line break: the caller gets a 500 instead', async (t) => {
    const stage = await wireStage(t, (exchange) =>
      exchange.send(200, 'text/plain', 'x', { 'X-One': 'a\r\nSet-Cookie: b' }),
    )
    stage.client.send(get('/'))
    const [answer] = await answersTo(stage.client, 1)
    assert.equal(answer?.status, 500)
    assert.doesNotMatch(stage.client.received, /Set-Cookie/)
  })

  function stream(exchange: Exchange): void {
    exchange.openAnswer('text/plain', {})
    exchange.write('one')
    exchange.write('')
    exchange.write(Buffer.from('two'))
    exchange.end('three')
  }
})

describe('bytes that are not a request', () => {
  const hello = '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03'
  const post = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
  for (const [what, bytes, status, code] of [
    ['the hello of TLS', hello, 400, 'invalid_value'],
    ['lines that end with a line feed', 'GET / HTTP/1.1\n\n', 400, 'invalid_value'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'invalid_value'],
    ['half an end of a line', 'GET / HTTP/1.1\rHost: x', 400, 'invalid_value'],
    [
      'two lengths',
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
      400,
      'invalid_value',
    ],
    ['a length and chunks', `${post.slice(0, -2)}Content-Length: 5\r\n\r\n0\r\n\r\n`, 400, 'invalid_value'],
    ['a head that is too long', get('/', `X-One: ${'x'.repeat(16_384)}`), 431, 'headers_too_large'],
    ['a head that is too long and has no end', `GET /${'x'.repeat(17_000)}`, 431, 'headers_too_large'],
    ['a head that never ends', 'GET / HTTP/1.1\r\nHost: x\r\n', 408, 'request_timeout'],
    ['half a request line', 'GE', 408, 'request_timeout'],
    ['nothing', '', 408, 'request_timeout'],
    ['a body that never ends', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab', 408, 'request_timeout'],
    ['chunks that never end', `${post}5\r\nhello\r\n`, 408, 'request_timeout'],
    ['a chunk that is longer than it says', `${post}5\r\nhello!\r\n0\r\n\r\n`, 400, 'invalid_value'],
    ['a chunk that is shorter than it says', `${post}5\r\nhell\r\n0\r\n\r\n`, 400, 'invalid_value'],
    ['a chunk without a size', `${post}\r\nhello\r\n`, 400, 'invalid_value'],
    ['a chunk with only an extension', `${post};a=b\r\nhello\r\n`, 400, 'invalid_value'],
    ['a chunk with a size that is none', `${post}-5\r\nhello\r\n`, 400, 'invalid_value'],
    ['a chunk with a size in another form', `${post}0x5\r\nhello\r\n`, 400, 'invalid_value'],
    ['a chunk with a space before its size', `${post} 5\r\nhello\r\n`, 400, 'invalid_value'],
    ['a chunk with a space after its size', `${post}5 \r\nhello\r\n`, 400, 'invalid_value'],
    ['a chunk with an endless size', `${post}${'f'.repeat(20)}\r\nhello\r\n`, 400, 'invalid_value'],
    ['a chunk whose line has no end', `${post}5;${'x'.repeat(17_000)}`, 413, 'request_too_large'],
    ['a chunk whose line ends with a line feed', `${post}5\nhello\r\n0\r\n\r\n`, 400, 'invalid_value'],
    ['an extension with a line feed', `${post}5;a\nb\r\nhello\r\n0\r\n\r\n`, 400, 'invalid_value'],
    ['a chunk that ends with a line feed', `${post}5\r\nhello\n0\r\n\r\n`, 400, 'invalid_value'],
    ['trailers without end', `${post}0\r\n${'Name: x\r\n'.repeat(8000)}`, 431, 'headers_too_large'],
  ] as const) {
    it(`get one answer in our format, and the connection closes: ${what}`, async (t) => {
      const { answer, aborted } = countedAborts()
      const stage = await wireStage(t, answer, { requestMs: 1000, checkMs: 20 })
      stage.client.socket.write(Buffer.from(bytes, 'latin1'))
      await stage.client.sees('"code"')
      // What comes now is neither served nor answered.
      stage.client.send(get('/after'))
      await stage.client.closed()
      const answers = answersIn(stage.client.received)
      assert.deepEqual(
        answers.map((answer) => answer.status),
        [status],
        stage.client.received,
      )
      const [{ head, body } = { head: '', body: '' }] = answers
      assert.equal((JSON.parse(body) as { error: { code: string } }).error.code, code)
      const retry = status === 408 ? 'Retry-After: 1' : 'X-Should-Retry: false'
      for (const line of ['X-Ours: yes', 'Content-Type: application/json', 'Connection: close', retry]) {
        assert.ok(head.split('\r\n').includes(line), `${line} is not in ${head}`)
      }
      assert.match(head, /\r\nX-Request-Id: \S+\r\n/)
      assert.deepEqual(stage.asked.slice(1), [])
      await eventually('nothing is left of it', () => stage.ended === stage.asked.length)
      assert.equal(aborted(), stage.asked.length)
    })
  }

  it('end the reading of a body at once, not only when the caller closes its side', async (t) => {
    const { answer, aborted } = countedAborts()
    const stage = await wireStage(t, answer)
    stage.client.socket.allowHalfOpen = true
    stage.client.send(`${post}5\r\nhello!`)
    await eventually('the reader is cut off', () => aborted() === 1)
    assert.equal(stage.far.destroyed, false)
  })

  it('are answered after a request before them', async (t) => {
    const stage = await wireStage(t)
    stage.client.send(`${get('/1')}nonsense\r\n\r\n`)
    await stage.client.closed()
    assert.deepEqual(
      answersIn(stage.client.received).map(({ status }) => status),
      [200, 400],
    )
  })

  it('end an answer that is being sent, without adding bytes that could be read as a part of it', async (t) => {
    const stage = await wireStage(t, (exchange) => {
      exchange.openAnswer('text/plain', {})
      exchange.write('begun')
      exchange.request.discard()
    })
    stage.client.send(`${post}5\r\nhello\r\nnonsense`)
    await stage.client.closed()
    assert.match(stage.client.received, /^HTTP\/1\.1 200 [^]*\r\n\r\n5\r\nbegun\r\n$/)
  })
})

describe('blank lines', () => {
  it('may precede a request, and are otherwise ignored', async (t) => {
    const stage = await wireStage(t)
    await stage.arrives(`\r\n\r\n${get('/1')}\r\n`)
    await stage.arrives('\r')
    await stage.arrives(`\n${get('/2')}`)
    await answersTo(stage.client, 2)
    assert.deepEqual(stage.asked, ['GET /1', 'GET /2'])
  })
})

describe('a caller that closes its side', () => {
  it('counts as gone while its answer is computed', async (t) => {
    let isGone = false
    const stage = await wireStage(
      t,
      (exchange) => new Promise((resolve) => exchange.onGone(() => resolve(void (isGone = true)))),
    )
    stage.client.send(get('/1') + get('/2'))
    await eventually('it has begun', () => stage.asked.length === 1)
    stage.client.socket.end()
    await stage.client.closed()
    assert.equal(isGone, true)
    assert.deepEqual(stage.asked, ['GET /1'])
  })

  it('in the middle of a body is reported to the reader of the body', async (t) => {
    const { answer, aborted } = countedAborts()
    const stage = await wireStage(t, answer)
    stage.client.send(lengthed.slice(0, -3))
    await eventually('it has begun', () => stage.asked.length === 1)
    stage.client.socket.end()
    await stage.client.closed()
    await eventually('nothing is left of it', () => stage.ended === 1)
    assert.equal(stage.client.received, '')
    assert.equal(aborted(), 1)
  })

  it('has its connection closed after the answer while the listener drains, and at once if it has none', async (t) => {
    const { opened, open } = gate()
    const stage = await wireStage(t, async (exchange) => {
      if (exchange.request.target === '/held') await opened
      exchange.sendJson('{}')
    })
    const idle = await stage.call()
    idle.send(get('/now'))
    await answersTo(idle, 1)
    stage.client.send(get('/held'))
    await eventually('both are asked', () => stage.asked.length === 2)
    stage.listener.drain()
    await idle.closed()
    assert.equal(stage.client.isClosed, false)
    open()
    await answersTo(stage.client, 1)
    await stage.client.closed()
  })

  it('gets the rest of an answer that is complete', async (t) => {
    const LENGTH = 10_000_000
    const stage = await wireStage(t, (exchange) => {
      exchange.openAnswer('text/plain', { 'Content-Length': String(LENGTH) })
      exchange.write('x'.repeat(LENGTH))
      exchange.end('')
    })
    stage.client.socket.pause()
    stage.client.send(get('/1'))
    await eventually('it is answered', () => stage.ended === 1)
    stage.client.socket.end()
    await answerToAnother(stage)
    stage.client.socket.resume()
    await stage.client.closed()
    assert.equal(answersIn(stage.client.received)[0]?.body.length, LENGTH)
  })
})

describe('a listener that closes', () => {
  /** How long timers were set for, and those that are still set. */
  function watchTimers(t: TestContext) {
    const { setTimeout, clearTimeout } = globalThis
    const all: unknown[] = []
    const left = new Map<unknown, unknown>()
    t.mock.method(globalThis, 'setTimeout', (work: () => void, ms: number) => {
      const timer = setTimeout(work, ms)
      all.push(ms)
      left.set(timer, ms)
      return timer
    })
    t.mock.method(globalThis, 'clearTimeout', (timer: NodeJS.Timeout) => {
      left.delete(timer)
      clearTimeout(timer)
    })
    return { all, left: () => [...left.values()] }
  }

  it('waits no longer than for the requests that run, and leaves no timer behind', async (t) => {
    const { opened, open } = gate()
    const stage = await wireStage(t, async (exchange) => {
      await opened
      exchange.sendJson('{}')
    })
    stage.client.send(get('/held'))
    await eventually('it is asked', () => stage.asked.length === 1)
    const { all, left } = watchTimers(t)
    const closed = stage.listener.close(54_321)
    assert.ok(all.includes(54_321))
    open()
    await closed
    assert.equal(left().includes(54_321), false)
  })

  it('gives the last bytes of its answers a second, however short its own time is', async (t) => {
    const stage = await wireStage(t)
    stage.client.send(get('/1'))
    await answersTo(stage.client, 1)
    const { all, left } = watchTimers(t)
    await stage.listener.close(0)
    assert.ok(all.includes(1000), String(all))
    assert.equal(left().includes(1000), false)
  })
})

describe('the time limit of a caller', () => {
  it('for a head does not start again with each byte', async (t) => {
    const stage = await wireStage(t, echo, { requestMs: 300, checkMs: 20 })
    await stage.arrives('GET /')
    // Slowly enough that the head does not become too large first.
    while (stage.client.received === '') await stage.arrives('x').then(() => sleep(5))
    await stage.client.closed()
    assert.equal(answersIn(stage.client.received)[0]?.status, 408)
  })

  it('is not measured by a listener that could not open its port', async (t) => {
    const { listener } = await wireStage(t)
    const { mock } = t.mock.method(globalThis, 'setInterval')
    const application = { answer: echo, rateOf: async () => undefined, headers: () => ({}), over() {} }
    await assert.rejects(listen(application, '127.0.0.1', listener.address.port), { code: 'EADDRINUSE' })
    assert.equal(mock.callCount(), 0)
  })
})
