import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { listen } from '../../src/http/server.ts'
import { chanceOf, type Chance } from '../support/fuzz/chance.ts'
import { bodyOf } from '../support/wire-stage.ts'

/**
 * The same random requests to our server and to node:http's: what node refuses, we refuse, and where both accept, they see
 * the same requests. Each input depends on the seed and its number alone; WEIR_SEED=… tries others.
 */
const seed = Number(process.env['WEIR_SEED'] ?? 1)
const INPUTS = 800

/** What we accept and node refuses, each with the reason why that is kept. */
const keptDifferences: readonly { readonly why: string; readonly in: RegExp }[] = [
  { why: 'The host of an address in the first line is not read.', in: / [A-Za-z]+:\/\/[^/ ]*"/ },
  { why: 'The extensions of a chunk are not read; they only have to end.', in: /^[0-9a-f]+;(?!a=b\r\n)/im },
  { why: 'Trailers are not read; they only have to end.', in: /^0+\r\n(?!\r\n|T: x\r\n\r\n)/m },
]

/** It ends everything that an input may have begun: a head, a body, chunks. The connection closes in any case. */
const TAIL = `GET /tail HTTP/1.1\r\nConnection: close\r\n\r\n${'\0'.repeat(70_000)}`

interface Outcome {
  /** The requests that came completely. */
  readonly requests: string[]
  isRefused: boolean
}

interface Side {
  readonly port: number
  /** Of the input that is being sent. */
  outcome: Outcome
}

async function nodeSide(t: TestContext): Promise<Side> {
  const side: Side = { port: 0, outcome: { requests: [], isRefused: false } }
  const server = createServer({ requireHostHeader: false, maxHeaderSize: 16_384 })
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const { outcome } = side
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString('latin1'))).on('error', () => {})
    request.on('end', () => {
      outcome.requests.push(`${request.method} ${request.url} ${body}`)
      response.end()
    })
  }
  server.on('request', serve).on('checkExpectation', serve)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // We read nothing after the last request; node:http says that it should not be there.
    if (error.code !== 'HPE_CLOSED_CONNECTION') side.outcome.isRefused = true
    socket.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  return Object.assign(side, { port: (server.address() as AddressInfo).port })
}

async function ourSide(t: TestContext): Promise<Side> {
  const side: Side = { port: 0, outcome: { requests: [], isRefused: false } }
  const listener = await listen(
    {
      async answer(exchange) {
        const { outcome } = side
        const body = await bodyOf(exchange)
        outcome.requests.push(`${exchange.method} ${exchange.request.target} ${body}`)
        exchange.sendJson('{}')
      },
      async look() {
        side.outcome.isRefused = true
        return undefined
      },
      headers: () => ({}),
      over() {},
    },
    '127.0.0.1',
    0,
  )
  t.after(() => listener.close(0))
  return Object.assign(side, { port: listener.address.port })
}

async function send(side: Side, input: string): Promise<Outcome> {
  side.outcome = { requests: [], isRefused: false }
  const socket = connect(side.port, '127.0.0.1')
  socket.on('error', () => {}).resume()
  socket.write(input + TAIL, 'latin1')
  await new Promise((resolve) => socket.once('close', resolve))
  return side.outcome
}

const METHODS = ['GET', 'POST', 'PUT', 'HEAD', 'DELETE', 'OPTIONS', 'M-SEARCH', 'get', 'FOO', 'POST ']
const TARGETS = ['/', '/a?b=c', '*', 'http://h/p', '//', '/a b', '/\t', '/\xe9', '/#f', '']
const VERSIONS = ['HTTP/1.1', 'HTTP/1.0', 'HTTP/1.2', 'HTTP/2.0', 'http/1.1', 'HTTP/1.1 ']
const LINES = [
  'Host: x',
  'Host: y',
  'A: b',
  'A : b',
  ' A: b',
  'A:',
  'A: b\tc',
  'A: \x01',
  'A\xe9: b',
  ': b',
  'A',
  'Connection: keep-alive',
  'Content-Length: 5',
  'content-length: 7',
  'Content-Length: +5',
  'Content-Length: 5, 5',
  'Content-Length:\t5 ',
  'Content-Length: \xa05',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: Chunked ',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: \xa0chunked',
  'Transfer-Encoding: identity',
  'Expect: 100-continue',
  'Upgrade: h2c',
]
const BODIES = [
  '',
  'hello',
  'GET /in HTTP/1.1\r\n\r\n',
  '5\r\nhello\r\n0\r\n\r\n',
  '5;a=b\r\nhello\r\n0\r\n\r\n',
  '5\r\nhello\r\n0\r\nT: x\r\n\r\n',
  '05\r\nhello\r\n000\r\n\r\n',
  '5 \r\nhello\r\n0\r\n\r\n',
  '6\r\nhello\r\n0\r\n\r\n',
  '4\r\nhello\r\n0\r\n\r\n',
  '5\nhello\n0\n\n',
  '0x5\r\nhello\r\n0\r\n\r\n',
  '-5\r\nhello\r\n0\r\n\r\n',
]
const ENDS = ['\r\n', '\r\n', '\r\n', '\r\n', '\r\n', '\r\n', '\r\n', '\r\n', '\n', '\r', '\r\r\n', '\r\n ']
const BYTES = [
  '\r',
  '\n',
  ' ',
  '\t',
  ':',
  ';',
  ',',
  '0',
  '5',
  'a',
  '\0',
  '\x0b',
  '\x7f',
  '\x80',
  '\xa0',
  '\xff',
  '"',
  '\r\n',
]

/** One or two requests, most of them nearly right. */
function inputOf(chance: Chance): string {
  let text = request(chance)
  if (chance.is(0.4)) text += request(chance)
  for (let changes = chance.pick([0, 0, 0, 1, 1, 2]); changes > 0; changes--) text = changed(text, chance)
  return text
}

function request(chance: Chance): string {
  const usually = (items: readonly string[], first: number): string =>
    chance.pick(chance.is(0.9) ? items.slice(0, first) : items)
  const lines = Array.from({ length: chance.below(4) }, () => chance.pick(LINES))
  const isChunked = lines.some((line) => /^transfer-encoding: chunked/i.test(line))
  if (!isChunked && chance.is(0.3)) lines.push(chance.pick(['Transfer-Encoding: chunked', 'Content-Length: 5']))
  const first = `${usually(METHODS, 7)} ${usually(TARGETS, 5)} ${usually(VERSIONS, 2)}`
  const ends = chance.is(0.9) ? ENDS.slice(0, 1) : ENDS
  return [first, ...lines, ''].map((line) => line + chance.pick(ends)).join('') + chance.pick(BODIES)
}

function changed(text: string, chance: Chance): string {
  const at = chance.below(text.length + 1)
  const rest = text.slice(at + chance.below(2))
  return text.slice(0, at) + (chance.is(0.7) ? chance.pick(BYTES) : '') + rest
}

describe('our server and that of node:http', () => {
  it(`refuse the same requests, or ours more of them, and see the same in all others (WEIR_SEED=${seed})`, async (t) => {
    const [node, ours] = [await nodeSide(t), await ourSide(t)]
    let accepted = 0
    for (let input = 0; input < INPUTS; input++) {
      const text = inputOf(chanceOf(seed, input))
      const [theirs, own] = [await send(node, text), await send(ours, text)]
      if (own.isRefused) {
        assert.deepEqual(own.requests, theirs.requests.slice(0, own.requests.length), JSON.stringify(text))
      } else {
        if (keptDifferences.some((it) => it.in.test(text))) continue
        assert.deepEqual(own, theirs, JSON.stringify(text))
        accepted++
      }
    }
    assert.ok(accepted > INPUTS / 20, `only ${accepted} of ${INPUTS} requests were accepted`)
    assert.ok(accepted < INPUTS * 0.9, `${accepted} of ${INPUTS} requests were accepted`)
  })
})
