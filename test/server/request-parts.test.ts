import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { PassThrough, Readable } from 'node:stream'
import { describe, it } from 'node:test'
import { ApiError, CallerLeft } from '../../src/shared/errors.ts'
import { HEADROOM, memoryToParse } from '../../src/shared/json/json-body.ts'
import { readJson } from '../../src/server/body.ts'
import { cookieHeaders, isOwnPage, sessionToken } from '../../src/server/console/session-cookie.ts'
import { codeSamples } from '../../src/server/docs/code-samples.ts'
import type { Exchange } from '../../src/server/exchange.ts'
import { IncomingRequest, refusalOfHead, newRequestId, readTarget } from '../../src/server/incoming-request.ts'
import { withUpload } from '../../src/server/uploads/upload.ts'
import type { SpooledFile } from '../../src/server/uploads/uploads.ts'

type Headers = Readonly<Record<string, string>>

/** A request as Node hands it over. */
function requestWith(headers: Headers, body: Readable = Readable.from([]), more: object = {}): IncomingRequest {
  const rawHeaders = Object.entries(headers).flat()
  const message = Object.assign(body, { headers, rawHeaders, httpVersion: '1.1', complete: false, ...more })
  return new IncomingRequest(message as unknown as IncomingMessage, '192.0.2.1')
}

function exchangeWith(headers: Headers, body?: Readable, more: object = {}) {
  const held: number[] = []
  const exchange = {
    owner: 'ws',
    method: 'POST',
    request: requestWith(headers, body),
    holdRequest: (bytes: number) => void held.push(bytes),
    ...more,
  }
  return { exchange: exchange as unknown as Exchange, held }
}

describe('the target of a request', () => {
  it('is a path and a query, in the origin form and in the absolute form', () => {
    for (const [target, path, query] of [
      ['/a/b', '/a/b', ''],
      ['/a?b=c?d', '/a', 'b=c?d'],
      ['/a?', '/a', ''],
      ['http://host:80/a?b', '/a', 'b'],
      ['HTTPS://host', '/', ''],
      ['https://host?b', '/', 'b'],
      ['', '/', ''],
      ['*', '*', ''],
      ['?x', '/', 'x'],
    ] as const) {
      assert.deepEqual(readTarget(target), { path, query }, target)
    }
  })
})

describe('the head of a request', () => {
  const refusal = (headers: Headers, more: object = {}): string | undefined =>
    refusalOfHead(requestWith(headers, undefined, more))?.code

  it('has one host, with a name or an address', () => {
    for (const host of ['weir.test', 'weir.test:8080', '[::1]:80', '[::1]', '', 'a_b~c', '1.2.3.4:']) {
      assert.equal(refusal({ host }), undefined, host)
    }
    for (const host of ['a b', 'a/b', 'user@host', 'a,b', '[::1', 'a:b', 'http://a', 'a:80:80']) {
      assert.equal(refusal({ host }), 'invalid_value', host)
    }
    assert.equal(refusal({}), 'invalid_value')
    assert.equal(refusal({}, { httpVersion: '1.0' }), undefined)
    assert.equal(refusal({ host: 'a' }, { rawHeaders: ['Host', 'a', 'HOST', 'a'] }), 'invalid_value')
    assert.equal(refusal({ host: 'a' }, { rawHeaders: ['Host', 'a', 'X-Y', 'host', 'Hos', 'x'] }), undefined)
  })

  it('is of HTTP/1.0 or HTTP/1.1, and of no other', () => {
    for (const httpVersion of ['0.9', '1.2', '2.0'])
      assert.equal(refusal({ host: 'a' }, { httpVersion }), 'invalid_value')
    for (const httpVersion of ['1.0', '1.1']) assert.equal(refusal({ host: 'a' }, { httpVersion }), undefined)
  })

  it('allows chunks in HTTP/1.1, and no other encoding', () => {
    const coded = (coding: string, httpVersion = '1.1'): string | undefined =>
      refusal({ host: 'a', 'transfer-encoding': coding }, { httpVersion })
    assert.deepEqual([coded('chunked'), coded('Chunked')], [undefined, undefined])
    for (const coding of ['gzip', 'gzip, chunked', 'chunked, chunked', '']) assert.equal(coded(coding), 'invalid_value')
    assert.equal(coded('chunked', '1.0'), 'invalid_value')
  })

  it('has at most 200 headers', () => {
    const lines = (count: number): string[] => Array.from({ length: count }, (_, at) => [`x${at}`, '']).flat()
    assert.equal(refusal({ host: 'a' }, { rawHeaders: lines(200) }), undefined)
    assert.equal(refusal({ host: 'a' }, { rawHeaders: lines(201) }), 'headers_too_large')
  })

  it('shows whether a body follows, and whether the caller used HTTPS', () => {
    assert.equal(requestWith({}).isComplete, true)
    assert.equal(requestWith({ 'content-length': '5' }).isComplete, false)
    assert.equal(requestWith({ 'transfer-encoding': 'chunked' }).isComplete, false)
    assert.equal(requestWith({ 'content-length': '5' }, undefined, { complete: true }).isComplete, true)
    assert.equal(requestWith({}).isEncrypted, false)
    assert.equal(requestWith({ 'x-forwarded-proto': 'https' }).isEncrypted, true)
    assert.equal(requestWith({ 'x-forwarded-proto': 'http' }).isEncrypted, false)
  })
})

describe('the body of a request', () => {
  function taken(request: IncomingRequest) {
    const seen: string[] = []
    request.take({
      data: (chunk) => seen.push(chunk.toString()),
      end: () => seen.push('end'),
      cut: () => seen.push('cut'),
    })
    return seen
  }
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

  it('is passed on as it arrives, with its end', async () => {
    const body = new PassThrough()
    const seen = taken(requestWith({}, body))
    body.write('a')
    await turn()
    body.end('b')
    await turn()
    assert.deepEqual(seen, ['a', 'b', 'end'])
  })

  it('goes to a new reader from then on, and ends for it at once if all has been read', async () => {
    const body = new PassThrough()
    const request = requestWith({}, body)
    const first = taken(request)
    body.write('a')
    await turn()
    request.pause()
    const second = taken(request)
    body.end('b')
    await turn()
    const third = taken(request)
    assert.deepEqual([first, second, third], [['a'], ['b', 'end'], ['end']])
  })

  it('is read and dropped when it is discarded, even by a reader that has it', async () => {
    for (const isTaken of [false, true]) {
      const body = new PassThrough()
      const request = requestWith({}, body)
      const seen = isTaken ? taken(request) : []
      request.discard()
      body.end('rest')
      await turn()
      assert.deepEqual([seen, body.readableEnded], [[], true])
    }
  })

  it('is aborted once, for its reader and for a later one', async () => {
    const body = new PassThrough()
    const request = requestWith({}, body)
    const seen = taken(request)
    request.cut()
    request.cut()
    body.end('rest')
    await turn()
    assert.deepEqual([seen, taken(request), body.readableEnded], [['cut'], ['cut'], true])
    const complete = new PassThrough()
    const whole = requestWith({}, complete)
    const all = taken(whole)
    complete.end('a')
    await turn()
    whole.cut()
    assert.deepEqual([all, taken(whole)], [['a', 'end'], ['end']])
  })

  it('reports when it has been read', async () => {
    const body = new PassThrough()
    let isRead = false
    requestWith({}, body).whenRead(() => (isRead = true))
    body.end('a')
    await turn()
    assert.ok(isRead)
  })
})

describe('a JSON body', () => {
  const json = { 'content-type': 'application/json' }
  const read = async (headers: Headers, pieces: readonly string[], most = 1_000_000) => {
    const { exchange, held } = exchangeWith({ ...json, ...headers }, Readable.from(pieces.map((it) => Buffer.from(it))))
    const bytes = await readJson(exchange, most)
    return { text: bytes.subarray(HEADROOM).toString(), held, spare: bytes.buffer.byteLength }
  }

  it('must be declared as JSON, and uncompressed', async () => {
    for (const type of [
      'application/json',
      'application/json; charset=utf-8',
      'APPLICATION/JSON',
      'application/json ;x',
    ]) {
      assert.equal((await read({ 'content-type': type }, ['{}'])).text, '{}', type)
    }
    const refused = { code: 'unsupported_media_type' }
    for (const type of ['', 'text/plain', 'application/jsonx', 'application/json+x', ' application/json']) {
      await assert.rejects(async () => read({ 'content-type': type }, ['{}']), refused, type)
    }
    assert.equal((await read({ 'content-encoding': 'identity' }, ['{}'])).text, '{}')
    await assert.rejects(async () => read({ 'content-encoding': 'gzip' }, ['{}']), refused)
  })

  it('has headroom, and its memory is counted as it arrives', async () => {
    const { text, held } = await read({}, ['abc', 'de'])
    assert.equal(text, 'abcde')
    assert.deepEqual(held, [memoryToParse(3, 0), memoryToParse(5, 0)])
  })

  it('may have the maximum size, and not a byte more, whatever it declares', async () => {
    const refused = { code: 'request_too_large' }
    assert.equal((await read({}, ['x'.repeat(10)], 10)).text.length, 10)
    await assert.rejects(read({}, ['x'.repeat(10), 'x'], 10), refused)
    assert.equal((await read({ 'content-length': '10' }, ['x'.repeat(10)], 10)).text.length, 10)
    await assert.rejects(read({ 'content-length': '11' }, [], 10), refused)
    await assert.rejects(read({ 'content-length': '5' }, ['x'.repeat(11)], 10), refused)
  })

  it('keeps no memory that it does not need', async () => {
    const piece = 'x'.repeat(50_000)
    const declared = await read({ 'content-length': '200000' }, [piece, piece, piece, piece])
    assert.equal(declared.text.length, 200_000)
    assert.equal(declared.spare, HEADROOM + 200_000)
    const small = await read({}, [piece, piece, 'x'])
    assert.equal(small.text.length, 100_001)
    assert.ok(small.spare <= 2 * (HEADROOM + 100_001), `${small.spare} bytes`)
  })

  it('of a caller that disconnects never resolves', async () => {
    const body = new PassThrough()
    const { exchange } = exchangeWith(json, body)
    const reading = readJson(exchange, 100)
    exchange.request.cut()
    await assert.rejects(reading, CallerLeft)
  })

  it('for which there is no memory is not read any further', async () => {
    const body = new PassThrough()
    const full = new ApiError('service_unavailable', 'full')
    const { exchange } = exchangeWith(json, body, {
      holdRequest() {
        throw full
      },
    })
    const reading = readJson(exchange, 100)
    body.write('a')
    await assert.rejects(reading, full)
    body.end('b')
    await new Promise((resolve) => setImmediate(resolve))
    assert.ok(body.readableEnded, 'the rest is read and forgotten')
  })
})

describe('a form', () => {
  const part = (name: string, content: string, more = ''): string =>
    `--b\r\nContent-Disposition: form-data; name="${name}"\r\n${more}\r\n${content}\r\n`

  async function send(
    text: string,
    { headers = {}, most = 1000 }: { headers?: Headers; most?: number } = {},
  ): Promise<{ fields: [string, readonly string[]][]; file: string | undefined; closed: number }> {
    const all = { 'content-type': 'multipart/form-data; boundary=b', ...headers }
    const { exchange } = exchangeWith(all, Readable.from([Buffer.from(text)]))
    const pieces: Buffer[] = []
    let closed = 0
    const file = {
      get length() {
        return pieces.reduce((sum, { length }) => sum + length, 0)
      },
      append: async (chunks: readonly Buffer[]) => void pieces.push(...chunks.map((it) => Buffer.from(it))),
      close: async () => void closed++,
    }
    const spool = {
      async open(owner: string) {
        assert.equal(owner, 'ws')
        return file as unknown as SpooledFile
      },
    }
    let fields: [string, readonly string[]][] = []
    let content: string | undefined
    await withUpload(exchange, spool, most, async (upload) => {
      fields = [...upload.fields]
      content = upload.file && Buffer.concat(pieces).toString()
    }).catch((error: unknown) => {
      throw Object.assign(error as Error, { closed })
    })
    return { fields, file: content, closed }
  }
  const end = '--b--\r\n'

  it('has fields by name, in their order, and a file', async () => {
    const text = part('a', '1') + part('file', 'sound') + part('a', '') + part('é', 'ü') + end
    assert.deepEqual(await send(text), {
      fields: [
        ['a', ['1', '']],
        ['é', ['ü']],
      ],
      file: 'sound',
      closed: 1,
    })
    assert.deepEqual(await send(part('a', '1') + end), { fields: [['a', ['1']]], file: undefined, closed: 0 })
  })

  it('must be declared as one, with a boundary, and uncompressed', async () => {
    const text = part('a', '1') + end
    for (const type of [
      'application/json',
      'multipart/form-data',
      'multipart/mixed; boundary=b',
      'x',
      `multipart/form-data; boundary=${'b'.repeat(71)}`,
    ]) {
      await assert.rejects(send(text, { headers: { 'content-type': type } }), { code: 'unsupported_media_type' }, type)
    }
    const long = 'b'.repeat(70)
    const longText = text.replaceAll('--b', `--${long}`)
    assert.equal(
      (await send(longText, { headers: { 'content-type': `multipart/form-data; boundary=${long}` } })).fields.length,
      1,
    )
    assert.equal((await send(text, { headers: { 'content-encoding': 'identity' } })).fields.length, 1)
    await assert.rejects(send(text, { headers: { 'content-encoding': 'gzip' } }), { code: 'unsupported_media_type' })
  })

  const closedOnce = { closed: 1 }
  const refusals: readonly (readonly [what: string, text: string, expected: object, most?: number])[] = [
    [
      'a file that is one byte too large',
      part('file', 'x'.repeat(11)) + end,
      { code: 'request_too_large', param: 'file', ...closedOnce },
      10,
    ],
    ['two files', part('file', 'a') + part('file', 'b') + end, { code: 'invalid_value', param: 'file', ...closedOnce }],
    ['65 parts', Array.from({ length: 65 }, (_, at) => part(`p${at}`, '')).join('') + end, { code: 'invalid_value' }],
    [
      'fields of more than 256 KiB',
      part('a', 'x'.repeat(200_000)) + part('b', 'x'.repeat(62_145)) + end,
      { code: 'request_too_large', param: null },
    ],
    ['a part without a name', `--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n${end}`, { code: 'invalid_value' }],
    [
      'a part of another kind',
      `--b\r\nContent-Disposition: attachment; name="a"\r\n\r\nx\r\n${end}`,
      { code: 'invalid_value' },
    ],
    ['a part without headers', `--b\r\n\r\nx\r\n${end}`, { code: 'invalid_value' }],
    ['long headers', part('a', 'x', `X-Long: ${'x'.repeat(8200)}\r\n`) + end, { code: 'invalid_value' }],
    ['no end', part('a', '1'), { code: 'invalid_value' }],
  ]
  for (const [what, text, expected, most] of refusals) {
    it(`is refused with ${what}`, () => assert.rejects(send(text, most === undefined ? {} : { most }), expected))
  }

  it('may have the maximum of each', async () => {
    assert.equal((await send(part('file', 'x'.repeat(10)) + end, { most: 10 })).file?.length, 10)
    const many = Array.from({ length: 64 }, (_, at) => part(`p${at}`, '')).join('')
    assert.equal((await send(many + end)).fields.length, 64)
    assert.equal((await send(part('a', 'x'.repeat(200_000)) + part('b', 'x'.repeat(62_144)) + end)).fields.length, 2)
    const around = 1024 * 1024
    await assert.rejects(send('', { headers: { 'content-length': String(1000 + around + 1) } }), {
      code: 'request_too_large',
    })
    assert.ok(await send(part('a', '1') + end, { headers: { 'content-length': String(1000 + around) } }))
  })

  it('reports the limit of its file in MiB, or in bytes if it is small', async () => {
    const large = { headers: { 'content-length': '99999999999' } }
    await assert.rejects(send('', { ...large, most: 25 * 1024 * 1024 }), /at most 25 MiB are allowed/)
    await assert.rejects(send('', { ...large, most: 1024 * 1024 }), /at most 1 MiB are allowed/)
    await assert.rejects(send('', { ...large, most: 1024 * 1024 - 1 }), /at most 1048575 bytes are allowed/)
  })
})

describe('the cookie of a console', () => {
  const from = (headers: Headers, method = 'GET'): Exchange => exchangeWith(headers, undefined, { method }).exchange

  it('is accepted from pages of the same site, and for changes only with the header of the console', () => {
    for (const site of [undefined, 'same-origin', 'none']) {
      const headers: Headers = site === undefined ? {} : { 'sec-fetch-site': site }
      assert.deepEqual([isOwnPage(from(headers)), isOwnPage(from(headers, 'HEAD'))], [true, true], site)
      assert.equal(isOwnPage(from(headers, 'POST')), false)
      assert.equal(isOwnPage(from({ ...headers, 'x-weir-console': '1' }, 'DELETE')), true)
    }
    for (const site of ['cross-site', 'same-site']) {
      assert.equal(isOwnPage(from({ 'sec-fetch-site': site, 'x-weir-console': '1' })), false)
    }
  })

  it('is found by its name among others', () => {
    const token = (cookie: string): string | undefined => sessionToken(from({ cookie }), 'weir_session')
    assert.equal(token('weir_session=abc'), 'abc')
    assert.equal(token('a=b;  weir_session=abc ;c=d'), 'abc')
    for (const none of ['', 'weir_session', 'weir_session=', 'xweir_session=a', 'weir_operator=a'])
      assert.equal(token(none), undefined, none)
    assert.equal(sessionToken(from({}), 'weir_session'), undefined)
    assert.equal(
      sessionToken(from({ cookie: 'weir_session=abc', 'sec-fetch-site': 'cross-site' }), 'weir_session'),
      undefined,
    )
  })

  it('is limited to this site, and secure if the caller used HTTPS', () => {
    assert.deepEqual(cookieHeaders(from({}), 'weir_session', 'abc'), {
      'Set-Cookie': 'weir_session=abc; Path=/; HttpOnly; SameSite=Strict',
      'Cache-Control': 'no-store',
    })
    assert.equal(
      cookieHeaders(from({ 'x-forwarded-proto': 'https' }), 'weir_operator', undefined)['Set-Cookie'],
      'weir_operator=; Path=/; HttpOnly; SameSite=Strict; Secure; Max-Age=0',
    )
  })
})

describe('the id of a request', () => {
  it('has 32 letters and digits, sorts by time, and is unique', (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.UTC(2026, 10, 17) })
    const ids = Array.from({ length: 600 }, () => newRequestId())
    for (const id of ids) assert.match(id, /^[0-9a-z]{9}[0-9a-f]{23}$/)
    assert.equal(new Set(ids).size, 600)
    assert.equal(new Set(ids.map((id) => id.slice(0, 9))).size, 1)
    t.mock.timers.tick(1)
    const later = newRequestId()
    assert.ok(ids.every((id) => id < later))
    assert.equal(Number.parseInt(later.slice(0, 9), 36), Date.UTC(2026, 10, 17) + 1)
  })
})

describe('the samples of code', () => {
  const url = 'http://weir.test/api/v1/x'
  const json = { kind: 'json', value: { a: [1, null], b: { c: true }, d: {} } } as const
  const form = {
    kind: 'form',
    file: ['file', "it's.wav"],
    fields: [
      ['model', 'm'],
      ['n', '1'],
    ],
  } as const
  const get = { method: 'GET', url, variable: undefined, answersJson: true }
  const post = { method: 'POST', url, variable: 'KEY', body: json, answersJson: true }
  const upload = { method: 'POST', url, variable: 'KEY', body: form, answersJson: false }

  it('can be pasted', () => {
    assert.equal(codeSamples.curl(get), `curl "${url}"`)
    assert.equal(
      codeSamples.curl({ ...get, method: 'DELETE', variable: 'KEY' }),
      `curl "${url}" \\\n  -X DELETE \\\n  -H "Authorization: Bearer $KEY"`,
    )
    assert.equal(
      codeSamples.curl({ ...post, body: { kind: 'json', value: { a: "it's" } } }),
      `curl "${url}" \\\n  -H "Authorization: Bearer $KEY" \\\n  -H "Content-Type: application/json" \\\n  -d '{\n  "a": "it'\\''s"\n}'`,
    )
    assert.equal(
      codeSamples.curl(upload),
      `curl "${url}" \\\n  -H "Authorization: Bearer $KEY" \\\n  -F 'file=@it'\\''s.wav' \\\n  -F 'model=m' \\\n  -F 'n=1'`,
    )
    assert.equal(
      codeSamples.Python(post),
      [
        'import os',
        'import requests',
        '',
        'response = requests.post(',
        `    "${url}",`,
        '    headers={"Authorization": "Bearer " + os.environ["KEY"]},',
        '    json={',
        '        "a": [',
        '            1,',
        '            None,',
        '        ],',
        '        "b": {',
        '            "c": True,',
        '        },',
        '        "d": {},',
        '    },',
        ')',
        'response.raise_for_status()',
        'print(response.json())',
      ].join('\n'),
    )
    assert.equal(
      codeSamples.Python({ ...upload, variable: undefined }),
      [
        'import requests',
        '',
        'response = requests.post(',
        `    "${url}",`,
        `    files={"file": open("it's.wav", "rb")},`,
        '    data={',
        '        "model": "m",',
        '        "n": "1",',
        '    },',
        ')',
        'response.raise_for_status()',
        'print(response.text)',
      ].join('\n'),
    )
    assert.equal(
      codeSamples.TypeScript(get),
      `const response = await fetch("${url}")\nif (!response.ok) throw new Error(await response.text())\nconsole.log(await response.json())`,
    )
    assert.equal(
      codeSamples.TypeScript(post),
      [
        `const response = await fetch("${url}", {`,
        "  method: 'POST',",
        "  headers: { Authorization: `Bearer ${process.env.KEY}`, 'Content-Type': 'application/json' },",
        '  body: JSON.stringify({',
        '    "a": [',
        '      1,',
        '      null',
        '    ],',
        '    "b": {',
        '      "c": true',
        '    },',
        '    "d": {}',
        '  }),',
        '})',
        'if (!response.ok) throw new Error(await response.text())',
        'console.log(await response.json())',
      ].join('\n'),
    )
    assert.equal(
      codeSamples.TypeScript(upload),
      [
        "import { openAsBlob } from 'node:fs'",
        '',
        'const form = new FormData()',
        `form.append("file", await openAsBlob("it's.wav"), "it's.wav")`,
        'form.append("model", "m")',
        'form.append("n", "1")',
        `const response = await fetch("${url}", {`,
        "  method: 'POST',",
        '  headers: { Authorization: `Bearer ${process.env.KEY}` },',
        '  body: form,',
        '})',
        'if (!response.ok) throw new Error(await response.text())',
        'console.log(await response.text())',
      ].join('\n'),
    )
  })
})
