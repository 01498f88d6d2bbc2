import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import type { Exchange } from '../../src/server/exchange.ts'
import { withUpload } from '../../src/server/uploads/upload.ts'
import type { Spool, SpooledFile } from '../../src/server/uploads/uploads.ts'
import { ApiError } from '../../src/shared/errors.ts'
import { audioStage, clip, spooled, transcriptions, type AudioStage } from '../support/audio-stage.ts'
import { refusalOf } from '../support/chat-stage.ts'
import { runLength } from '../support/long-run.ts'
import { eventually } from '../support/waiting.ts'

const MODEL = part('form-data; name="model"', 'openai/whisper-test')
const FILE = part('form-data; name="file"; filename="a.ogg"', clip('opus.ogg').toString('latin1'))

/** Headers of the part after its disposition, each with its line end. */
function part(disposition: string, content: string, headers = ''): string {
  return `--frontier\r\nContent-Disposition: ${disposition}\r\n${headers}\r\n${content}\r\n`
}

function post({ weir }: AudioStage, body: string, type = 'multipart/form-data; boundary=frontier'): Promise<Response> {
  return weir.call(transcriptions, {
    method: 'POST',
    headers: { 'content-type': type },
    body: Buffer.from(body, 'latin1'),
  })
}

describe('a hostile form', () => {
  const end = '--frontier--\r\n'
  const manyHeaders = Array.from({ length: 3000 }, (_, index) => `X-${index}: y\r\n`).join('')

  const refused: readonly (readonly [what: string, body: string, status: number, message: RegExp])[] = [
    ['without a body', '', 400, /ends before its last boundary/],
    ['without its last boundary', MODEL + FILE, 400, /ends before its last boundary/],
    ['that ends within the file', (MODEL + FILE).slice(0, -500), 400, /ends before its last boundary/],
    [
      'that ends within the headers of a part',
      `${MODEL}--frontier\r\nContent-Disp`,
      400,
      /ends before its last boundary/,
    ],
    ['that ends after one dash', `${MODEL}${FILE}--frontier-`, 400, /ends before its last boundary/],
    [
      'with another boundary',
      (MODEL + FILE + end).replaceAll('frontier', 'border'),
      400,
      /ends before its last boundary/,
    ],
    ['whose boundaries are longer', (MODEL + FILE + end).replaceAll('--frontier', '--frontier2'), 400, /has no name/],
    ['with text after a boundary', MODEL.replace('\r\n', 'x\r\n') + FILE + end, 400, /has no name/],
    ['with bare line feeds', (MODEL + FILE + end).replaceAll('\r\n', '\n'), 400, /ends before its last boundary/],
    ['with a part that has no headers', `--frontier\r\n\r\nx\r\n${MODEL}${FILE}${end}`, 400, /has no name/],
    ['with a part that has only headers', `--frontier\r\nX: y\r\n${MODEL}${FILE}${end}`, 400, /has no name/],
    ['with a part without a name', part('form-data', 'x') + MODEL + FILE + end, 400, /has no name/],
    ['with a name in another notation', part("form-data; name*=UTF-8''model", 'x') + FILE + end, 400, /has no name/],
    ['with an attachment', part('attachment; name="file"', 'x') + MODEL + end, 400, /has no name/],
    ['with a line break in a name', part('form-data; name="mo\ndel"', 'x') + FILE + end, 400, /has no name/],
    ['with long headers', part('form-data; name="a"', 'x', `X: ${'y'.repeat(9000)}\r\n`) + end, 400, /at most 8192/],
    [
      'with headers of megabytes',
      part('form-data; name="a"', 'x', `X: ${'y'.repeat(4e6)}\r\n`) + end,
      400,
      /at most 8192/,
    ],
    ['with headers that do not end', `--frontier\r\nX: ${'y'.repeat(4e6)}`, 400, /ends before its last boundary/],
    ['with thousands of headers', part('form-data; name="a"', 'x', manyHeaders) + end, 400, /at most 8192/],
    [
      'with a disposition that is mostly white space',
      part(`form-data${' '.repeat(300)}; name="a"`, 'x') + end,
      400,
      /a part has no name/,
    ],
    ['with 65 parts', part('form-data; name="a"', '').repeat(65) + end, 400, /at most 64/],
    ['with thousands of parts', part('form-data; name="a"', '').repeat(20_000) + end, 400, /at most 64/],
    ['with thousands of boundaries', `--frontier\r\n`.repeat(20_000) + end, 400, /at most 64|has no name/],
    ['with two files', MODEL + FILE + FILE + end, 400, /more than one 'file'/],
    ['with two models', MODEL + MODEL + FILE + end, 400, /'model' appears more than once/],
    ['with a field that is not UTF-8', part('form-data; name="prompt"', '\xc3\x28') + end, 400, /not valid UTF-8/],
    [
      'with a field in another charset',
      part('form-data; name="prompt"', '\xe9', 'Content-Type: text/plain; charset=iso-8859-1\r\n') + end,
      400,
      /not valid UTF-8/,
    ],
    ['with a large field', part('form-data; name="prompt"', 'x'.repeat(300_000)) + end, 413, /at most 262144 bytes/],
    [
      'with a file as text',
      MODEL + part('form-data; name="file"', 'hello') + end,
      400,
      /not in a supported audio format/,
    ],
    [
      'within a form',
      MODEL +
        part(
          'form-data; name="file"',
          FILE.replaceAll('frontier', 'inner'),
          'Content-Type: multipart/mixed; boundary=inner\r\n',
        ) +
        end,
      400,
      /not in a supported audio format/,
    ],
    [
      'in base64',
      MODEL +
        part(
          'form-data; name="file"; filename="a.ogg"',
          clip('opus.ogg').toString('base64'),
          'Content-Transfer-Encoding: base64\r\n',
        ) +
        end,
      400,
      /not in a supported audio format/,
    ],
  ]

  it('is refused with a clear message', async (t) => {
    const stage = await audioStage(t)
    for (const [what, body, status, message] of refused) {
      const refusal = await refusalOf(await post(stage, body))
      assert.equal(refusal.status, status, `${what}: ${refusal.message}`)
      assert.match(refusal.message, message, what)
    }
    assert.equal(stage.engine.calls.length, 0)
    await eventually('nothing is left of the uploads', () => spooled(stage.weir).length === 0)
  })

  it('is read in all the ways that clients write one', async (t) => {
    const stage = await audioStage(t)
    const sound = clip('plain.wav').toString('latin1')
    const file = (disposition: string, headers = ''): string => MODEL + part(disposition, sound, headers) + end
    const bodies = [
      file('form-data; name="file"; filename="a; name=b.ogg"'),
      file('form-data; filename="a\\"; name=\\"b"; name="file"'),
      file('form-data; name=file'),
      file('form-data; filename*=UTF-8\'\'%e2%82%ac; NAME="file"'),
      file('form-data; name="file"; filename="\xe2\x82\xac\x00\x01.ogg"'),
      file('form-data; name="file"', 'Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: binary\r\n'),
      file('form-data; name="file"').replaceAll('Content-Disposition', 'content-disposition'),
      file('form-data;\r\n name="file"'),
      `a preamble\r\n${file('form-data; name="file"')}an epilogue`,
      file('form-data; name="file"').slice(0, -2),
      part('form-data; name="\xff\xfe"', 'a field that is not known') + file('form-data; name="file"'),
      part('form-data; name="file2"', '\0\r\n--fronti\r\n-') + file('form-data; name="file"'),
    ]
    for (const body of bodies) {
      const response = await post(stage, body)
      assert.equal(response.status, 200, `${body.slice(0, 300)}: ${await response.text()}`)
      assert.equal(stage.engine.calls.at(-1)?.file.bytes.toString('latin1'), sound)
    }
  })

  it('needs a boundary in its Content-Type', async (t) => {
    const stage = await audioStage(t)
    const body = MODEL + FILE + end
    const quoted = 'Multipart/Form-Data; charset=utf-8; boundary="frontier"'
    assert.equal((await post(stage, body, quoted)).status, 200)
    for (const type of [
      'multipart/form-data',
      'multipart/form-data; boundary=',
      'multipart/form-data; boundary=""',
      `multipart/form-data; boundary=${'b'.repeat(71)}`,
      'multipart/mixed; boundary=frontier',
      'application/json',
      '; boundary=frontier',
    ]) {
      assert.equal((await refusalOf(await post(stage, body, type))).status, 415, type)
    }
  })

  it('without end is refused, even if it has no length and no part', async (t) => {
    const stage = await audioStage(t, { config: { audio: { max_upload_bytes: 2000 } } })
    // It ends some time, so that a service without the limit fails the test instead of holding it up.
    const pieces = Array.from({ length: 128 }, () => new Uint8Array(65_536)).values()
    const body = ReadableStream.from(pieces)
    const response = await fetch(`${stage.weir.base}${transcriptions}`, {
      method: 'POST',
      headers: {
        'content-type': 'multipart/form-data; boundary=frontier',
        authorization: `Bearer ${stage.weir.key}`,
      },
      body,
      duplex: 'half',
    })
    assert.equal((await refusalOf(response)).status, 413)
  })
})

/** Reads a form that arrives in these pieces; a chunk is overwritten as soon as it has been passed on. */
async function read(pieces: readonly Buffer[]): Promise<readonly (readonly [string, string])[]> {
  const written: Buffer[] = []
  const file = {
    get length() {
      return written.reduce((sum, { length }) => sum + length, 0)
    },
    async append(chunks: readonly Buffer[]) {
      // The disk takes a while, during which nothing may change.
      await new Promise((resolve) => setImmediate(resolve))
      written.push(...chunks.map((chunk) => Buffer.from(chunk)))
    },
    async close() {},
  }
  const spool: Spool = { open: async () => file as unknown as SpooledFile }
  const found: (readonly [string, string])[] = []
  await withUpload(exchangeOf(pieces), spool, 1_000_000, async ({ fields, file: sent }) => {
    for (const [name, values] of fields) for (const value of values) found.push([name, value])
    if (sent) found.push(['file', Buffer.concat(written).toString('utf8')])
  })
  return found
}

function exchangeOf(pieces: readonly Buffer[]): Exchange {
  const rest = [...pieces]
  let taker: { data(chunk: Buffer): void; end(): void } | undefined
  /** One at a time: the reader pauses for each. */
  const flow = (): void => {
    const chunk = Buffer.from(rest.shift() ?? [])
    if (chunk.length === 0) return taker?.end()
    taker?.data(chunk)
    chunk.fill(0)
  }
  const request = {
    headers: { 'content-type': 'multipart/form-data; boundary=frontier' },
    take(it: typeof taker) {
      taker = it
      flow()
    },
    pause() {},
    resume: flow,
    discard: () => (taker = undefined),
  }
  return { request, owner: '' } as unknown as Exchange
}

function cut(body: Buffer, sizes: readonly number[]): readonly Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < body.length; at += pieces.at(-1)?.length ?? 0) {
    pieces.push(body.subarray(at, at + (sizes[pieces.length % sizes.length] ?? 1)))
  }
  return pieces
}

describe('a form in pieces', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 })

  it('is read the same wherever it is cut, even with parts of its boundary inside', async () => {
    const content = fc
      .array(fc.constantFrom('\r', '\n', '-', '\r\n--front', '\r\n--', '--frontier', 'x', 'é', '\0', 'ier'), {
        maxLength: 30,
      })
      .map((bits) => bits.join(''))
      .filter((text) => !`\r\n${text}`.includes('\r\n--frontier'))
    const parts = fc.uniqueArray(fc.tuple(fc.constantFrom('a', 'b', 'file'), content), {
      maxLength: 3,
      selector: ([name]) => name,
    })
    const same = fc.asyncProperty(parts, sizes, async (expected, pieces) => {
      const texts = expected.map(([name, text]) => part(`form-data; name="${name}"`, text))
      const body = Buffer.from(`${texts.join('')}--frontier--\r\n`, 'utf8')
      const found = await read(cut(body, pieces))
      assert.deepEqual(new Map(found), new Map(expected))
    })
    await fc.assert(same, { numRuns: runLength(200, 1000) })
  })

  it('keeps the values of one name in order', async () => {
    const values = ['a'.repeat(100_000), 'b', '', 'c'.repeat(70_000), 'd']
    const body = values.map((value) => part('form-data; name="x"', value)).join('')
    const found = await read(cut(Buffer.from(`${body}--frontier--`), [65_536]))
    assert.deepEqual(
      found.map(([, value]) => value),
      values,
    )
  })

  it('is refused without a crash when it is garbage', async () => {
    const bit = fc.constantFrom(
      '--frontier',
      '\r\n',
      '--',
      'Content-Disposition: form-data; name="file"',
      ':',
      '"',
      'x',
    )
    const garbage = fc.asyncProperty(fc.array(bit, { maxLength: 40 }), sizes, async (bits, pieces) => {
      await read(cut(Buffer.from(bits.join('')), pieces)).catch((error: unknown) => {
        assert.ok(error instanceof ApiError, String(error))
      })
    })
    await fc.assert(garbage, { numRuns: runLength(400, 2000) })
  })
})
