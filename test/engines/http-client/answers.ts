import { seededRandom } from '../../../src/shared/seeded-random.ts'

const OK = 'HTTP/1.1 200 OK\r\n'
const LENGTH = 'Content-Length: 5\r\n'
const CHUNKED = 'Transfer-Encoding: chunked\r\n'
const CHUNKS = '5\r\nhello\r\n0\r\n\r\n'

const heads = (lines: string, body = 'hello'): string => `${OK}${lines}\r\n${body}`
const chunks = (body: string): string => `${OK}${CHUNKED}\r\n${body}`

/** Answers written by hand, by what is special about them. */
export const writtenAnswers: readonly (readonly [what: string, answer: string])[] = [
  ['nothing', ''],
  ['a length', heads(LENGTH)],
  ['no body', heads('Content-Length: 0\r\n', '')],
  ['an end with the connection', heads('')],
  ['an end with the connection, without a body', heads('', '')],
  ['no headers and no reason', 'HTTP/1.1 200\r\n\r\nhello'],
  ['an empty reason', 'HTTP/1.1 200 \r\n\r\nhello'],
  ['a reason with bytes above 127', `HTTP/1.1 200 \xe4\xff\r\n${LENGTH}\r\nhello`],
  ['HTTP/1.0', `HTTP/1.0 200 OK\r\n${LENGTH}\r\nhello`],
  ['HTTP/1.0 that ends with the connection', 'HTTP/1.0 200 OK\r\n\r\nhello'],
  ['HTTP/1.0 in chunks', `HTTP/1.0 200 OK\r\n${CHUNKED}\r\n${CHUNKS}`],
  ['chunks', chunks(CHUNKS)],
  ['chunks of hexadecimal sizes', chunks(`a\r\n0123456789\r\nB\r\n0123456789a\r\n0\r\n\r\n`)],
  ['a size with zeros before it', chunks('0005\r\nhello\r\n000\r\n\r\n')],
  ['a chunk with an extension', chunks('5;name=value\r\nhello\r\n0;last\r\n\r\n')],
  ['a chunk with a quoted extension', chunks('5;name="a;b\\"c"\r\nhello\r\n0\r\n\r\n')],
  ['an extension that nothing ends', chunks('5;name="a\r\nhello\r\n0\r\n\r\n')],
  ['a chunk with a space before its extension', chunks('5 ;name\r\nhello\r\n0\r\n\r\n')],
  ['a chunk with a space after its size', chunks('5 \r\nhello\r\n0\r\n\r\n')],
  ['a chunk with a space before its size', chunks(' 5\r\nhello\r\n0\r\n\r\n')],
  ['an extension with a carriage return', chunks('5;a\rb\r\nhello\r\n0\r\n\r\n')],
  ['an extension with a zero', chunks('5;a\0b\r\nhello\r\n0\r\n\r\n')],
  ['trailers', chunks('5\r\nhello\r\n0\r\nA: b\r\nC: d\r\n\r\n')],
  ['a trailer that is no header', chunks('5\r\nhello\r\n0\r\nA b\r\n\r\n')],
  ['a trailer with a zero', chunks('5\r\nhello\r\n0\r\nA: \0\r\n\r\n')],
  ['a trailer with a length', chunks('5\r\nhello\r\n0\r\nContent-Length: 3\r\n\r\n')],
  ['a trailer with a wrong length', chunks('5\r\nhello\r\n0\r\nContent-Length: x\r\n\r\n')],
  ['a trailer in chunks', chunks('5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n')],
  ['a folded trailer', chunks('5\r\nhello\r\n0\r\nA: b\r\n c\r\n\r\n')],
  ['trailers without an end', chunks('5\r\nhello\r\n0\r\nA: b\r\n')],
  ['chunks without an end', chunks('5\r\nhello\r\n')],
  ['an end in the middle of a chunk', chunks('5\r\nhel')],
  ['an end in the middle of a size', chunks('5\r\nhello\r\n0')],
  ['no chunk at all', chunks('')],
  ['a chunk that is longer than announced', chunks('4\r\nhello\r\n0\r\n\r\n')],
  ['a chunk that is shorter than announced', chunks('6\r\nhello\r\n0\r\n\r\n')],
  ['a chunk without a line end behind it', chunks('5\r\nhello0\r\n\r\n')],
  ['a chunk of a negative size', chunks('-5\r\nhello\r\n0\r\n\r\n')],
  ['a size with a sign', chunks('+5\r\nhello\r\n0\r\n\r\n')],
  ['a size with 0x', chunks('0x5\r\nhello\r\n0\r\n\r\n')],
  ['an empty size', chunks('\r\nhello\r\n0\r\n\r\n')],
  ['a size beyond 64 bits', chunks('10000000000000005\r\nhello\r\n0\r\n\r\n')],
  ['a size beyond 48 bits', chunks('1000000000005\r\nhello\r\n0\r\n\r\n')],
  ['chunks with line feeds', chunks('5\nhello\n0\n\n')],
  ['a chunk that ends with a line feed', chunks('5\r\nhello\n0\r\n\r\n')],
  ['trailers that end with line feeds', chunks('5\r\nhello\r\n0\r\nA: b\n\n')],
  ['a last line that is a line feed', chunks('5\r\nhello\r\n0\r\n\n')],
  ['bytes behind a length', heads(LENGTH, 'hello and more')],
  ['bytes behind chunks', chunks(`${CHUNKS}more`)],
  ['a second answer behind a length', heads(LENGTH, `hello${heads(LENGTH, 'smuggle')}`)],
  ['a second answer behind chunks', chunks(CHUNKS + heads(LENGTH, 'smuggle'))],
  ['a line end behind a length', heads(LENGTH, 'hello\r\n')],
  ['bytes behind no body', heads('Content-Length: 0\r\n', 'hello')],
  ['an end before the length', heads(LENGTH, 'hel')],
  ['an end before the body, as after HEAD', heads(LENGTH, '')],
  ['an end in the head', `${OK}Content-Le`],
  ['an end before the blank line', `${OK}${LENGTH}`],
  ['an end in the status line', 'HTTP/1.1 20'],
  ['two equal lengths', heads(LENGTH + LENGTH)],
  ['two lengths', heads(`${LENGTH}Content-Length: 3\r\n`)],
  ['two lengths in a line', heads('Content-Length: 5, 5\r\n')],
  ['two lengths in a line that differ', heads('Content-Length: 5, 3\r\n')],
  ['equal lengths that are written differently', heads(`${LENGTH}Content-Length: 05\r\n`)],
  ['a length with zeros before it', heads('Content-Length: 0005\r\n')],
  ['a length with a sign', heads('Content-Length: +5\r\n')],
  ['a negative length', heads('Content-Length: -5\r\n')],
  ['a length with a fraction', heads('Content-Length: 5.0\r\n')],
  ['a hexadecimal length', heads('Content-Length: 0x5\r\n')],
  ['an empty length', heads('Content-Length: \r\n')],
  ['a length that is no number', heads('Content-Length: five\r\n')],
  ['a length with a word behind it', heads('Content-Length: 5 bytes\r\n')],
  ['a length beyond 64 bits', heads('Content-Length: 18446744073709551621\r\n')],
  ['a length beyond 53 bits', heads('Content-Length: 9007199254740993\r\n')],
  ['a length with spaces and tabs', heads('Content-Length: \t 5 \t\r\n')],
  ['a length in front of chunks', heads(LENGTH + CHUNKED, CHUNKS)],
  ['a length behind chunks', heads(CHUNKED + LENGTH, CHUNKS)],
  ['a broken length beside chunks', heads(`${CHUNKED}Content-Length: x\r\n`, CHUNKS)],
  ['chunks in capital letters', heads('TRANSFER-ENCODING: CHUNKED\r\n', CHUNKS)],
  ['an unknown transfer encoding', heads('Transfer-Encoding: identity\r\n')],
  ['an unknown transfer encoding and a length', heads(`Transfer-Encoding: identity\r\n${LENGTH}`)],
  ['an empty transfer encoding', heads('Transfer-Encoding:\r\n')],
  ['gzip and chunks', heads('Transfer-Encoding: gzip, chunked\r\n', CHUNKS)],
  ['gzip and chunks in two lines', heads(`Transfer-Encoding: gzip\r\n${CHUNKED}`, CHUNKS)],
  ['chunks and gzip', heads('Transfer-Encoding: chunked, gzip\r\n', CHUNKS)],
  ['chunks in chunks', heads('Transfer-Encoding: chunked, chunked\r\n', CHUNKS)],
  ['chunks in two lines', heads(CHUNKED + CHUNKED, CHUNKS)],
  ['chunks with a parameter', heads('Transfer-Encoding: chunked;q=1\r\n', CHUNKS)],
  ['a transfer encoding that begins like chunked', heads('Transfer-Encoding: chunkedx\r\n', CHUNKS)],
  ['a transfer encoding with a byte that is no space', heads('Transfer-Encoding: \xa0chunked\r\n', CHUNKS)],
  ['a transfer encoding with a vertical tab', heads('Transfer-Encoding: \x0bchunked\r\n', CHUNKS)],
  ['a space before the colon of a transfer encoding', heads('Transfer-Encoding : chunked\r\n', CHUNKS)],
  ['a name with a space before it', heads(' Transfer-Encoding: chunked\r\n', CHUNKS)],
  ['204', 'HTTP/1.1 204 No Content\r\n\r\n'],
  ['204 with a length', `HTTP/1.1 204 No Content\r\n${LENGTH}\r\n`],
  ['204 with a body', `HTTP/1.1 204 No Content\r\n${LENGTH}\r\nhello`],
  ['204 in chunks', `HTTP/1.1 204 No Content\r\n${CHUNKED}\r\n${CHUNKS}`],
  ['205 with a body', `HTTP/1.1 205 Reset Content\r\n${LENGTH}\r\nhello`],
  ['304', 'HTTP/1.1 304 Not Modified\r\n\r\n'],
  ['304 with a length', `HTTP/1.1 304 Not Modified\r\n${LENGTH}\r\n`],
  ['304 in chunks', `HTTP/1.1 304 Not Modified\r\n${CHUNKED}\r\n`],
  ['100 first', `HTTP/1.1 100 Continue\r\n\r\n${heads(LENGTH)}`],
  ['102 and 103 first', `HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n${heads(LENGTH)}`],
  ['103 with a length first', `HTTP/1.1 103 Early Hints\r\n${LENGTH}\r\n${heads(LENGTH)}`],
  ['103 in chunks first', `HTTP/1.1 103 Early Hints\r\n${CHUNKED}\r\n${heads(LENGTH)}`],
  ['199 first', `HTTP/1.1 199 Odd\r\n\r\n${heads(LENGTH)}`],
  ['100 and nothing else', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ['101', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nhello'],
  ['101 without a protocol', `HTTP/1.1 101 Switching Protocols\r\n\r\n${heads(LENGTH)}`],
  ['an offer to upgrade', heads(`Upgrade: h2c\r\nConnection: upgrade\r\n${LENGTH}`)],
  ['status 000', `HTTP/1.1 000 Zero\r\n${LENGTH}\r\nhello`],
  ['status 099', `HTTP/1.1 099 Low\r\n${LENGTH}\r\nhello`],
  ['status 599', `HTTP/1.1 599 High\r\n${LENGTH}\r\nhello`],
  ['status 600', `HTTP/1.1 600 Higher\r\n${LENGTH}\r\nhello`],
  ['status 999', `HTTP/1.1 999 Highest\r\n${LENGTH}\r\nhello`],
  ['a status of two digits', `HTTP/1.1 20 OK\r\n${LENGTH}\r\nhello`],
  ['a status of four digits', `HTTP/1.1 2000 OK\r\n${LENGTH}\r\nhello`],
  ['a status that is no number', `HTTP/1.1 OK\r\n${LENGTH}\r\nhello`],
  ['a status that runs into its reason', `HTTP/1.1 200OK\r\n${LENGTH}\r\nhello`],
  ['two spaces before the status', `HTTP/1.1  200 OK\r\n${LENGTH}\r\nhello`],
  ['a tab before the status', `HTTP/1.1\t200 OK\r\n${LENGTH}\r\nhello`],
  ['HTTP/0.9', '<html>hello</html>'],
  ['HTTP/0.9 in words', `HTTP/0.9 200 OK\r\n${LENGTH}\r\nhello`],
  ['HTTP/1.2', `HTTP/1.2 200 OK\r\n${LENGTH}\r\nhello`],
  ['HTTP/2.0', `HTTP/2.0 200 OK\r\n${LENGTH}\r\nhello`],
  ['HTTP/2', `HTTP/2 200\r\n${LENGTH}\r\nhello`],
  ['HTTP/11.1', `HTTP/11.1 200 OK\r\n${LENGTH}\r\nhello`],
  ['the frames of HTTP/2', '\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x80'],
  ['small letters', `http/1.1 200 OK\r\n${LENGTH}\r\nhello`],
  ['ICE', `ICE/1.0 200 OK\r\n${LENGTH}\r\nhello`],
  ['SSH', 'SSH-2.0-OpenSSH_9.2p1\r\n'],
  ['SMTP', '220 mail.example.com ESMTP\r\n'],
  ['TLS', '\x15\x03\x01\x00\x02\x02\x16'],
  ['a line end before the answer', `\r\n${heads(LENGTH)}`],
  ['a space before the answer', ` ${heads(LENGTH)}`],
  ['line feeds', 'HTTP/1.1 200 OK\nContent-Length: 5\n\nhello'],
  ['a line feed behind the status line', 'HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\nhello'],
  ['a line feed behind a header', `${OK}A: b\nContent-Length: 5\r\n\r\nhello`],
  ['a blank line that is a line feed', `${OK}${LENGTH}\nhello`],
  ['carriage returns', 'HTTP/1.1 200 OK\rContent-Length: 5\r\rhello'],
  ['a carriage return in a value', heads(`A: b\rc\r\n${LENGTH}`)],
  ['two carriage returns behind a header', heads(`A: b\r\r\n${LENGTH}`)],
  ['a folded header', heads(`A: b\r\n c\r\n${LENGTH}`)],
  ['a header folded with a tab', heads(`A: b\r\n\tc\r\n${LENGTH}`)],
  ['a folded length', heads('Content-Length:\r\n 5\r\n')],
  ['a folded transfer encoding', heads('Transfer-Encoding:\r\n chunked\r\n', CHUNKS)],
  ['a first header that is folded', heads(` b\r\n${LENGTH}`)],
  ['a header without a colon', heads(`A\r\n${LENGTH}`)],
  ['a header without a name', heads(`: b\r\n${LENGTH}`)],
  ['a header without a value', heads(`A:\r\n${LENGTH}`)],
  ['a space before a colon', heads(`A : b\r\n${LENGTH}`)],
  ['a space in a name', heads(`A B: c\r\n${LENGTH}`)],
  ['a name with brackets', heads(`A(): b\r\n${LENGTH}`)],
  ['a name with bytes above 127', heads(`\xe4: b\r\n${LENGTH}`)],
  ['a name with every character that may be in one', heads(`!#$%&'*+-.^_\`|~0aZ: b\r\n${LENGTH}`)],
  ['a value with bytes above 127', heads(`A: \x80\xa0\xff\r\n${LENGTH}`)],
  ['a value with a zero', heads(`A: b\0c\r\n${LENGTH}`)],
  ['a value with a control character', heads(`A: b\x01c\r\n${LENGTH}`)],
  ['a value with a delete character', heads(`A: b\x7fc\r\n${LENGTH}`)],
  ['a value with tabs', heads(`A: \tb\tc\t\r\n${LENGTH}`)],
  ['a value with a byte that is no space behind it', heads(`A: b\xa0\r\n${LENGTH}`)],
  ['a reason with a zero', `HTTP/1.1 200 O\0K\r\n${LENGTH}\r\nhello`],
  ['a reason with a control character', `HTTP/1.1 200 O\x01K\r\n${LENGTH}\r\nhello`],
  ['names of prototypes', heads(`__proto__: a\r\nconstructor: b\r\ntoString: c\r\n__proto__: d\r\n${LENGTH}`)],
  ['a header several times', heads(`A: b\r\na: c\r\nSet-Cookie: d\r\nA: e\r\nSet-Cookie: f\r\n${LENGTH}`)],
  ['an empty header several times', heads(`A:\r\nA: \r\n${LENGTH}`)],
  ['a thousand headers', heads(Array.from({ length: 1000 }, (_, n) => `a${n}: b\r\n`).join('') + LENGTH)],
  ['2,500 headers', heads(Array.from({ length: 2500 }, () => 'a:b\r\n').join('') + LENGTH)],
  ['a head of 20 KiB', heads(`A: ${'b'.repeat(20_000)}\r\n${LENGTH}`)],
  ['a head of 70 KiB', heads(`A: ${'b'.repeat(70_000)}\r\n${LENGTH}`)],
  ['a status line of 3 KiB', `HTTP/1.1 200 ${'x'.repeat(3000)}\r\n${LENGTH}\r\nhello`],
  ['a status line of 5 KiB', `HTTP/1.1 200 ${'x'.repeat(5000)}\r\n${LENGTH}\r\nhello`],
  ['an extension of 3 KiB', chunks(`5;${'x'.repeat(3000)}\r\nhello\r\n0\r\n\r\n`)],
  ['an extension of 5 KiB', chunks(`5;${'x'.repeat(5000)}\r\nhello\r\n0\r\n\r\n`)],
  ['an extension of 20 KiB', chunks(`5;${'x'.repeat(20_000)}\r\nhello\r\n0\r\n\r\n`)],
  ['trailers of 20 KiB', chunks(`5\r\nhello\r\n0\r\nA: ${'b'.repeat(20_000)}\r\n\r\n`)],
  ['trailers of 70 KiB', chunks(`5\r\nhello\r\n0\r\nA: ${'b'.repeat(70_000)}\r\n\r\n`)],
  ['a body of 200 KB', heads('Content-Length: 200000\r\n', 'x'.repeat(200_000))],
  ['200 KB in small chunks', chunks('a\r\n0123456789\r\n'.repeat(20_000) + '0\r\n\r\n')],
  ['a connection that is closed', heads(`Connection: close\r\n${LENGTH}`)],
  ['a connection that is closed in front of its length', heads('Connection: close\r\n')],
  ['a connection that is kept', heads(`Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n${LENGTH}`)],
  ['an odd Keep-Alive', heads(`Keep-Alive: timeout=x, max=-1\r\n${LENGTH}`)],
  ['a compressed body', heads(`Content-Encoding: gzip\r\n${LENGTH}`)],
  ['a redirect', `HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n${LENGTH}\r\nhello`],
  ['a length in a Proxy-Connection', heads(`Proxy-Connection: close\r\n${LENGTH}`)],
]

const shortAnswers = writtenAnswers.map(([, answer]) => answer).filter(({ length }) => length < 1000)

type Random = () => number

/** Answers that are legal or nearly so: parts put together by chance, most of them then damaged in one or two places. */
export function generatedAnswer(seed: number): string {
  const random = seededRandom(seed)
  const answer = random() < 0.3 ? pick(random, shortAnswers) : legalAnswer(random)
  const damages = Math.floor(random() * 3)
  return Array.from({ length: damages }).reduce<string>((text) => damaged(text, random), answer)
}

function legalAnswer(random: Random): string {
  const informational =
    random() < 0.15 ? `HTTP/1.1 ${pick(random, ['100 Continue', '103 Early Hints\r\nLink: x'])}\r\n\r\n` : ''
  const status = pick(random, [
    '200 OK',
    '200',
    '201 Created',
    '204 No Content',
    '304 Not Modified',
    '404 ',
    '500 Oh no',
  ])
  const lines = Array.from({ length: Math.floor(random() * 4) }, () => pick(random, someHeaders))
  const body = text(random)
  const framing = random()
  if (framing < 0.4) lines.push(`${letters(random, 'Content-Length')}: ${body.length}`)
  else if (framing < 0.85) lines.push(`${letters(random, 'Transfer-Encoding')}: chunked`)
  lines.sort(() => random() - 0.5)
  const version = random() < 0.9 ? '1.1' : '1.0'
  const head = [`HTTP/${version} ${status}`, ...lines, '', ''].join('\r\n')
  const isChunked = framing >= 0.4 && framing < 0.85
  const hasBody = !/^(204|304)/.test(status)
  return informational + head + (!hasBody ? '' : isChunked ? inChunks(body, random) : body)
}

const someHeaders = [
  'Date: Mon, 16 Nov 2026 00:00:00 GMT',
  'Server: uvicorn',
  'Content-Type: text/event-stream; charset=utf-8',
  'Connection: keep-alive',
  'Connection: close',
  'Keep-Alive: timeout=5, max=100',
  'Set-Cookie: a=b',
  'Cache-Control:no-cache',
  'X-Empty:',
  'X-Spaces: \t a  b \t',
  'X-Latin: \xe4\xf6\xfc',
]

const text = (random: Random): string =>
  Array.from({ length: Math.floor(random() ** 2 * 60) }, () =>
    pick(random, ['a', 'b', '\r\n', '0', '\xff', '{', ' ']),
  ).join('')

function inChunks(body: string, random: Random): string {
  let rest = body
  let written = ''
  while (rest.length > 0) {
    const length = 1 + Math.floor(random() * rest.length)
    const extension = random() < 0.1 ? pick(random, [';a', ';a=b', ';a="b;c"', ';a;b=c']) : ''
    const size = length.toString(16)
    written += `${random() < 0.2 ? `0${size.toUpperCase()}` : size}${extension}\r\n${rest.slice(0, length)}\r\n`
    rest = rest.slice(length)
  }
  const trailers = random() < 0.2 ? pick(random, ['A: b\r\n', 'A: b\r\nC: d\r\n', 'A:\r\n']) : ''
  return `${written}0\r\n${trailers}\r\n`
}

/** What may mean something to a parser. */
const pieces = [
  '\r',
  '\n',
  '\r\n',
  '\r\n\r\n',
  ' ',
  '\t',
  ':',
  ';',
  ',',
  '0',
  '5',
  'a',
  'f',
  '-',
  '+',
  '"',
  '\0',
  '\x7f',
  '\xa0',
].concat([
  'Content-Length: 3\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding: gzip\r\n',
  'HTTP/1.1 ',
  'A: b\r\n',
])

function damaged(answer: string, random: Random): string {
  // Most of the bytes that matter are in the head and at the line ends.
  const places = [...answer.matchAll(/\r|\n|:|;/g)].map(({ index }) => index)
  const at = random() < 0.5 ? Math.floor(random() * (answer.length + 1)) : (pick(random, places) ?? 0)
  const [before, behind] = [answer.slice(0, at), answer.slice(at)]
  switch (Math.floor(random() * 6)) {
    case 0:
      return before + behind.slice(1)
    case 1:
    case 2:
      return before + pick(random, pieces) + behind
    case 3:
      return before + pick(random, pieces) + behind.slice(1)
    case 4:
      return random() < 0.5 ? before : answer + pick(random, ['x', '\r\n', 'HTTP/1.1 200 OK\r\n\r\n'])
    default:
      return `${before}${behind.slice(0, 10)}${behind}`
  }
}

const letters = (random: Random, name: string): string =>
  pick(random, [name, name, name.toLowerCase(), name.toUpperCase()])

function pick<Value>(random: Random, values: readonly Value[]): Value {
  return values[Math.floor(random() * values.length)]!
}

/** Cuts an answer at random bytes. */
export function cut(answer: string, seed: number): string[] {
  const random = seededRandom(seed)
  const places = Array.from({ length: 1 + Math.floor(random() * 6) }, () => Math.floor(random() * answer.length))
  const sorted = [0, ...places.toSorted((one, other) => one - other), answer.length]
  return sorted
    .slice(1)
    .map((end, index) => answer.slice(sorted[index], end))
    .filter((piece) => piece !== '')
}
