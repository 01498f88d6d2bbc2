/**
 * Requests that servers are known to understand differently, after the families of RFC 9112 and of request smuggling. What
 * is hidden in them asks for /smuggled. Each says what must happen to it alone, and to what follows on the connection.
 */
export interface HostileRequest {
  readonly name: string
  readonly bytes: string
  /** The statuses that the caller gets. */
  readonly statuses: readonly number[]
  /** The requests that are served, with their bodies. */
  readonly served: readonly string[]
  /** Whether the next request on the connection is served, or the connection is closed. */
  readonly goesOn: boolean
}

/** A request hidden in what is a body, or is refused. */
const HIDDEN = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'

const lines = (...all: readonly string[]): string => [...all, '', ''].join('\r\n')
const get = (...headers: readonly string[]): string => lines('GET /a HTTP/1.1', 'Host: x', ...headers)
const post = (headers: readonly string[], body: string): string =>
  lines('POST /a HTTP/1.1', 'Host: x', ...headers) + body
const chunks = (body: string): string => post(['Transfer-Encoding: chunked'], body)
const lengthOf = (text: string): string => `Content-Length: ${text.length}`
const inChunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`

const refused = (name: string, bytes: string, status = 400): HostileRequest => ({
  name,
  bytes,
  statuses: [status],
  served: [],
  goesOn: false,
})

/** The connection closes without an answer. */
const closed = (name: string, bytes: string): HostileRequest => ({
  name,
  bytes,
  statuses: [],
  served: [],
  goesOn: false,
})

/** Only this one is served. */
const last = (name: string, bytes: string, request: string): HostileRequest => ({
  name,
  bytes,
  statuses: [200],
  served: [request],
  goesOn: false,
})

const served = (name: string, bytes: string, ...requests: readonly string[]): HostileRequest => ({
  name,
  bytes,
  statuses: requests.map(() => 200),
  served: requests,
  goesOn: true,
})

const requestLines: readonly HostileRequest[] = [
  ...Object.entries({
    'a method in small letters': 'get /a HTTP/1.1',
    'an unknown method': 'FETCH /a HTTP/1.1',
    'no method': '/a HTTP/1.1',
    'a space before the method': ' GET /a HTTP/1.1',
    'a tab after the method': 'GET\t/a HTTP/1.1',
    'a NUL in the method': 'GE\0T /a HTTP/1.1',
    'no target': 'GET HTTP/1.1',
    'a target without a slash': 'GET a HTTP/1.1',
    'a space in the target': 'GET /a /smuggled HTTP/1.1',
    'a tab in the target': 'GET /a\t/smuggled HTTP/1.1',
    'a NUL in the target': 'GET /a\0b HTTP/1.1',
    'a DEL in the target': 'GET /a\x7f HTTP/1.1',
    'a carriage return in the target': 'GET /a\r/smuggled HTTP/1.1',
    'no version': 'GET /a',
    'HTTP/0.9': 'GET /a HTTP/0.9',
    'HTTP/1.2': 'GET /a HTTP/1.2',
    'HTTP/3.0': 'GET /a HTTP/3.0',
    'a version in small letters': 'GET /a http/1.1',
    'half a version': 'GET /a HTTP/1',
    'a long version': 'GET /a HTTP/1.10',
    'another protocol': 'GET /a ICE/1.0',
    'a space after the version': 'GET /a HTTP/1.1 ',
    'words after the version': 'GET /a HTTP/1.1 /smuggled',
  }).map(([name, line]) => refused(name, lines(line, 'Host: x'))),
  refused('a line feed alone after the request line', 'GET /a HTTP/1.1\nHost: x\r\n\r\n'),
  refused('line feeds alone', 'GET /a HTTP/1.1\nHost: x\n\n'),
  refused('a carriage return alone after the request line', 'GET /a HTTP/1.1\rHost: x\r\n\r\n'),
  refused('a target that is too long', lines(`GET /${'a'.repeat(17_000)} HTTP/1.1`, 'Host: x'), 431),
  refused('the hello of TLS', '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03'.padEnd(300, '\x01')),
  refused('the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  closed('CONNECT', lines('CONNECT x:443 HTTP/1.1', 'Host: x:443')),
  served('blank lines before a request', `\r\n\r\n${get()}`, 'GET /a '),
  served('a target with a host', lines('GET http://other/a HTTP/1.1', 'Host: x'), 'GET http://other/a '),
  served('a target that is a star', lines('OPTIONS * HTTP/1.1', 'Host: x'), 'OPTIONS * '),
  served('two slashes in the target', lines('GET //smuggled/a HTTP/1.1', 'Host: x'), 'GET //smuggled/a '),
]

const headers: readonly HostileRequest[] = [
  ...Object.entries({
    'a space before a colon': 'A : b',
    'a tab before a colon': 'A\t: b',
    'a header without a colon': 'A',
    'a header without a name': ': b',
    'a space before a header': ' A: b',
    'a NUL in a value': 'A: b\0c',
    'a NUL in a name': 'A\0: b',
    'a control character in a value': 'A: \x01',
    'a DEL in a value': 'A: \x7f',
    'a carriage return in a value': 'A: b\rContent-Length: 5',
    'a line feed in a value': 'A: b\nContent-Length: 5',
    'a byte beyond ASCII in a name': 'A\xe9: b',
    'a bracket in a name': 'A[: b',
    'a space in a name': 'Content Length: 5',
    'a folded value': 'A: b\r\n c',
    'a length that is folded': 'Content-Length:\r\n 5',
    'chunks that are folded': 'Transfer-Encoding:\r\n chunked',
  }).map(([name, line]) => refused(name, get(line))),
  refused('a folded line before the first header', 'GET /a HTTP/1.1\r\n Host: x\r\n\r\n'),
  refused('headers that are too large', get(`A: ${'b'.repeat(17_000)}`), 431),
  refused('too many headers', get(...Array.from({ length: 200 }, (_, index) => `A${index}: b`)), 431),
  served('as many headers as are allowed', get(...Array.from({ length: 199 }, () => 'A: b')), 'GET /a '),
  served('a header that is called like a property', get('__proto__: x', 'constructor: y'), 'GET /a '),
  served('a byte beyond ASCII in a value', get('A: \xe9'), 'GET /a '),
  served('headers that are not for this hop', get('Connection: keep-alive, Host, Authorization'), 'GET /a '),
]

const hosts: readonly HostileRequest[] = [
  refused('no Host', lines('GET /a HTTP/1.1')),
  ...Object.entries({
    'two of one Host': ['x', 'x'],
    'two Hosts': ['x', 'y'],
    'two Hosts in one line': ['x, y'],
    'a Host with a path': ['x/smuggled'],
    'a Host with a user': ['user@x'],
    'a Host with a space': ['x y'],
    'a Host with a port that is none': ['x:eighty'],
    'a Host with a query': ['x?y'],
    'a Host with a backslash': ['x\\y'],
    'half an address': ['[::1'],
  }).map(([name, all]) => refused(name, lines('GET /a HTTP/1.1', ...all.map((host) => `Host: ${host}`)))),
  refused('a Host that is hidden from others', lines('GET /a HTTP/1.1', 'Host: x', 'HoSt: y')),
  served('a Host with a port', lines('GET /a HTTP/1.1', 'Host: x:8080'), 'GET /a '),
  served('an address as Host', lines('GET /a HTTP/1.1', 'Host: [::1]:8080'), 'GET /a '),
  served('an empty Host', lines('GET /a HTTP/1.1', 'Host:'), 'GET /a '),
  served('no Host in HTTP/1.0', lines('GET /a HTTP/1.0', 'Connection: keep-alive'), 'GET /a '),
]

const lengths: readonly HostileRequest[] = [
  ...Object.entries({
    'two lengths': ['5', '35'],
    'one length twice': ['5', '5'],
    'a list of lengths': ['5, 5'],
    'a length with a sign': ['+5'],
    'a negative length': ['-5'],
    'a length in hexadecimal': ['0x5'],
    'a length with a fraction': ['5.0'],
    'a length with an exponent': ['5e0'],
    'a length that is no number': ['five'],
    'a length with letters': ['5a'],
    'no number as length': [''],
    'two numbers as length': ['5 5'],
    'a length with an underscore': ['1_0'],
    'a length after a byte that looks like a space': ['\xa05'],
    'a length after a vertical tab': ['\x0b5'],
    'a length that is too large for a number': ['9'.repeat(20)],
    'a length that would overflow to five': ['18446744073709551621'],
  }).map(([name, all]) =>
    refused(
      name,
      post(
        all.map((it) => `Content-Length: ${it}`),
        `hello${HIDDEN}`,
      ),
    ),
  ),
  served('a length with spaces around it', post(['Content-Length: \t5 '], 'hello'), 'POST /a hello'),
  served('a length with zeros before it', post(['Content-Length: 0005'], 'hello'), 'POST /a hello'),
  served('a request in a body', post([lengthOf(HIDDEN)], HIDDEN), `POST /a ${HIDDEN}`),
  served('a request in the body of a GET', get(lengthOf(HIDDEN)) + HIDDEN, `GET /a ${HIDDEN}`),
  {
    name: 'a length that is misspelt, so that its body is no request',
    bytes: post(['Content_Length: 5'], 'hello'),
    statuses: [200, 400],
    served: ['POST /a '],
    goesOn: false,
  },
  {
    name: 'a body that is longer than it says',
    bytes: post(['Content-Length: 5'], 'hello, world\r\n\r\n'),
    statuses: [200, 400],
    served: ['POST /a hello'],
    goesOn: false,
  },
]

const codings: readonly HostileRequest[] = [
  refused('CL.TE: a length before chunks', post(['Content-Length: 6', 'Transfer-Encoding: chunked'], '0\r\n\r\nG')),
  refused(
    'CL.TE: a request behind the last chunk',
    post([`Content-Length: ${5 + HIDDEN.length}`, 'Transfer-Encoding: chunked'], `0\r\n\r\n${HIDDEN}`),
  ),
  refused('TE.CL: a request in a chunk', post(['Transfer-Encoding: chunked', 'Content-Length: 4'], inChunk(HIDDEN))),
  refused('a length of nothing beside chunks', post(['Content-Length: 0', 'Transfer-Encoding: chunked'], inChunk('a'))),
  ...Object.entries({
    'chunks twice in a line': ['chunked, chunked'],
    'chunks twice': ['chunked', 'chunked'],
    'chunks and then something': ['chunked, identity'],
    'something and then chunks': ['gzip, chunked'],
    'something before chunks': ['identity', 'chunked'],
    'something after chunks': ['chunked', 'identity'],
    'a coding that we do not know': ['gzip'],
    'no coding': ['identity'],
    'an empty coding': [''],
    'a coding that only begins with chunks': ['chunkedfoo'],
    'a coding that only ends with chunks': ['xchunked'],
    'chunks in quotes': ['"chunked"'],
    'chunks after a vertical tab': ['\x0bchunked'],
    'chunks before a vertical tab': ['chunked\x0b'],
    'chunks after a byte that looks like a space': ['\xa0chunked'],
    'chunks with a parameter': ['chunked;q=1'],
    'chunks before a comma': ['chunked,'],
    'chunks after a NUL': ['\0chunked'],
  }).map(([name, all]) =>
    refused(
      `TE.TE: ${name}`,
      post(
        all.map((it) => `Transfer-Encoding: ${it}`),
        `0\r\n\r\n${HIDDEN}`,
      ),
    ),
  ),
  refused('chunks with a space before the colon', post(['Transfer-Encoding : chunked'], `0\r\n\r\n${HIDDEN}`)),
  refused(
    'chunks in HTTP/1.0',
    lines('POST /a HTTP/1.0', 'Host: x', 'Connection: keep-alive', 'Transfer-Encoding: chunked') + inChunk('hello'),
  ),
  served('chunks in capital letters', post(['TRANSFER-ENCODING: Chunked'], inChunk('hello')), 'POST /a hello'),
  served('a request in a chunk', chunks(inChunk(HIDDEN)), `POST /a ${HIDDEN}`),
  {
    name: 'chunks that are misspelt, so that they are no request',
    bytes: post(['Transfer_Encoding: chunked'], inChunk('hello')),
    statuses: [200, 400],
    served: ['POST /a '],
    goesOn: false,
  },
]

const chunkCases: readonly HostileRequest[] = [
  ...Object.entries({
    'no size': '\r\nhello\r\n0\r\n\r\n',
    'only an extension': ';a=b\r\nhello\r\n0\r\n\r\n',
    'a negative size': '-5\r\nhello\r\n0\r\n\r\n',
    'a size with a sign': '+5\r\nhello\r\n0\r\n\r\n',
    'a size with 0x': '0x5\r\nhello\r\n0\r\n\r\n',
    'a size that is no number': 'five\r\nhello\r\n0\r\n\r\n',
    'a space before a size': ' 5\r\nhello\r\n0\r\n\r\n',
    'a space after a size': '5 \r\nhello\r\n0\r\n\r\n',
    'a tab after a size': '5\t\r\nhello\r\n0\r\n\r\n',
    'a size that is too large for a number': `${'f'.repeat(17)}\r\nhello\r\n0\r\n\r\n`,
    'a size that would overflow to five': '10000000000000005\r\nhello\r\n0\r\n\r\n',
    'a chunk that is longer than it says': '5\r\nhello!\r\n0\r\n\r\n',
    'a chunk that is shorter than it says': '5\r\nhell\r\n0\r\n\r\n',
    'a chunk without its end': '5\r\nhello0\r\n\r\n',
    'a line feed alone after a size': '5\nhello\r\n0\r\n\r\n',
    'a carriage return alone after a size': '5\rhello\r\n0\r\n\r\n',
    'two carriage returns after a size': '5\r\r\nhello\r\n0\r\n\r\n',
    'a line feed alone after a chunk': '5\r\nhello\n0\r\n\r\n',
    'a carriage return alone after a chunk': '5\r\nhello\r0\r\n\r\n',
    'a line feed alone after the last chunk': '5\r\nhello\r\n0\n\n',
    'a line feed in an extension': `5;a\nb\r\nhello\r\n0\r\n\r\n`,
    'a carriage return in an extension': '5;a\rb\r\nhello\r\n0\r\n\r\n',
    'a NUL in an extension': '5;a\0b\r\nhello\r\n0\r\n\r\n',
    'a space in an extension': '5;a b\r\nhello\r\n0\r\n\r\n',
    'no last line': '5\r\nhello\r\n0\r\n',
    'a trailer without a colon': '5\r\nhello\r\n0\r\nA\r\n\r\n',
    'a trailer with a space before its colon': '5\r\nhello\r\n0\r\nA : b\r\n\r\n',
    'a trailer that is folded': '5\r\nhello\r\n0\r\nA: b\r\n c\r\n\r\n',
    'a trailer with a line feed alone': '5\r\nhello\r\n0\r\nA: b\n\r\n',
    'a NUL in a trailer': '5\r\nhello\r\n0\r\nA: b\0\r\n\r\n',
  }).map(([name, body]) => refused(`chunks with ${name}`, chunks(body))),
  refused('chunks with an extension without end', chunks(`5;${'a'.repeat(17_000)}`), 413),
  refused('chunks with trailers without end', chunks(`0\r\n${'A: b\r\n'.repeat(5000)}`), 431),
  served('an extension', chunks('5;a=b;c="d"\r\nhello\r\n0;last\r\n\r\n'), 'POST /a hello'),
  served('sizes with zeros', chunks('0005\r\nhello\r\n000\r\n\r\n'), 'POST /a hello'),
  served('trailers', chunks('5\r\nhello\r\n0\r\nA: b\r\n\r\n'), 'POST /a hello'),
  refused('a length in a trailer', chunks('5\r\nhello\r\n0\r\nContent-Length: 500\r\n\r\n')),
  refused('a coding in a trailer', chunks('5\r\nhello\r\n0\r\nTransfer-Encoding: identity\r\n\r\n')),
  served('a Host in a trailer', chunks('5\r\nhello\r\n0\r\nHost: y\r\n\r\n'), 'POST /a hello'),
]

const connections: readonly HostileRequest[] = [
  served(
    'requests that are sent ahead',
    get() + post(['Content-Length: 2'], 'hi') + chunks(inChunk('ho')),
    'GET /a ',
    'POST /a hi',
    'POST /a ho',
  ),
  {
    name: 'nonsense after a request',
    bytes: `${get()}nonsense\r\n\r\n`,
    statuses: [200, 400],
    served: ['GET /a '],
    goesOn: false,
  },
  last('a request after the last one', get('Connection: close') + HIDDEN, 'GET /a '),
  last('a request after the last one of HTTP/1.0', lines('GET /a HTTP/1.0') + HIDDEN, 'GET /a '),
  served('an expectation that we do not know', get('Expect: the-unexpected'), 'GET /a '),
  served('an expectation twice', get('Expect: 100-continue, 100-continue', 'Expect: nothing'), 'GET /a '),
  served(
    'a body that did not wait to be asked for',
    post(['Expect: 100-continue', 'Content-Length: 5'], 'hello'),
    'POST /a hello',
  ),
  last(
    'an upgrade to HTTP/2',
    get('Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'),
    'GET /a ',
  ),
  last(
    'an upgrade to WebSocket',
    get('Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: AAAA'),
    'GET /a ',
  ),
  last(
    'an upgrade with a request as its body',
    post(['Connection: Upgrade', 'Upgrade: x', lengthOf(HIDDEN)], HIDDEN),
    `POST /a ${HIDDEN}`,
  ),
  {
    name: 'an early reply to a body with a request',
    bytes: lines('POST /early HTTP/1.1', 'Host: x', lengthOf(HIDDEN)) + HIDDEN,
    statuses: [401],
    served: ['POST /early'],
    goesOn: true,
  },
  {
    name: 'an early reply to a chunk with a request',
    bytes: lines('POST /early HTTP/1.1', 'Host: x', 'Transfer-Encoding: chunked') + inChunk(HIDDEN),
    statuses: [401],
    served: ['POST /early'],
    goesOn: true,
  },
  {
    name: 'an early reply to a body that waits to be asked for',
    bytes: lines('POST /early HTTP/1.1', 'Host: x', 'Expect: 100-continue', lengthOf(HIDDEN)) + HIDDEN,
    statuses: [401],
    served: ['POST /early'],
    goesOn: true,
  },
  {
    name: 'an early reply to chunks that are broken',
    bytes: lines('POST /early HTTP/1.1', 'Host: x', 'Transfer-Encoding: chunked') + `5\r\nhello!\r\n${HIDDEN}`,
    statuses: [401],
    served: ['POST /early'],
    goesOn: false,
  },
]

export const hostileRequests: readonly HostileRequest[] = [
  ...requestLines,
  ...headers,
  ...hosts,
  ...lengths,
  ...codings,
  ...chunkCases,
  ...connections,
]
