import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import OpenAI, { toFile } from 'openai'
import { diskRoom } from '../../src/shared/disk-room.ts'
import { openSpool } from '../../src/server/uploads/spool.ts'
import { mp4File } from '../support/audio-containers.ts'
import { flacFrameHeads, packetTracks } from '../support/audio-forgery.ts'
import { audioStage, clip, silentWav, spooled, transcriptions, translations } from '../support/audio-stage.ts'
import { refusalOf } from '../support/chat-stage.ts'
import { rawClient } from '../support/raw-client.ts'
import { roomyDisk } from '../support/roomy-disk.ts'
import { transcription, speechEngine } from '../support/speech-engine.ts'
import { eventually, gate } from '../support/waiting.ts'

const MIB = 2 ** 20
const sentence = 'A weir lets a river through at the rate the bed below can take.'

/** The start of a hand-written form, up to the content of its file. */
function rawUpload(key: string, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries({
    Host: 'weir.test',
    Authorization: `Bearer ${key}`,
    'Content-Type': 'multipart/form-data; boundary=frontier',
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST /api/v1${transcriptions} HTTP/1.1\r\n${lines.join('')}\r\n`
}

const FILE_PART = '--frontier\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'

describe('transcriptions', () => {
  it('[E8] accept a form with a file and return the text', async (t) => {
    const { send, engine, weir } = await audioStage(t)
    const response = await send({ language: 'en', temperature: '0.2', prompt: 'Rivers.' })
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-type'), 'application/json')
    assert.equal(response.headers.get('x-queue-wait-ms'), '0')
    assert.ok(response.headers.has('x-ratelimit-remaining'))
    assert.deepEqual(await response.json(), { text: sentence, usage: { type: 'duration', seconds: 1.7 } })
    const [call] = engine.calls
    assert.equal(call?.path, '/v1/audio/transcriptions')
    assert.deepEqual(call?.fields, {
      model: ['engine-whisper'],
      response_format: ['verbose_json'],
      language: ['en'],
      prompt: ['Rivers.'],
      temperature: ['0.2'],
    })
    assert.deepEqual(call?.file, { name: 'audio.wav', type: 'audio/wav', bytes: clip('plain.wav') })
    assert.equal(call?.headers['content-length'] !== undefined, true)
    await eventually('nothing is left of the upload', () => spooled(weir).length === 0)
  })

  it('[E8] accept fields after the file, a short id, and every container by its content', async (t) => {
    const { send, engine } = await audioStage(t)
    for (const [name, type] of [
      ['plain.wav', 'audio/wav'],
      ['variable.mp3', 'audio/mpeg'],
      ['late-index.m4a', 'audio/mp4'],
      ['fragmented.mp4', 'audio/mp4'],
      ['vorbis.ogg', 'audio/ogg'],
      ['plain.flac', 'audio/flac'],
      ['live.webm', 'audio/webm'],
    ] as const) {
      const response = await send({ model: 'whisper-1' }, { clip: name, fileFirst: true })
      assert.equal(response.status, 200, name)
      const call = engine.calls.at(-1)
      assert.equal(call?.file.type, type)
      assert.ok(call?.file.bytes.equals(clip(name)), name)
    }
  })

  it('[E8, E10] are returned in every format, exactly', async (t) => {
    const { send } = await audioStage(t)
    const formats: readonly [string, string, string][] = [
      ['json', 'application/json', `{"text":"${sentence}","usage":{"type":"duration","seconds":1.7}}`],
      ['text', 'text/plain; charset=utf-8', `${sentence}\n`],
      [
        'srt',
        'text/plain; charset=utf-8',
        '1\n00:00:00,000 --> 00:00:00,800\nA weir lets a river through\n\n' +
          '2\n00:00:00,800 --> 00:00:01,700\nat the rate the bed below can take.\n\n',
      ],
      [
        'vtt',
        'text/vtt; charset=utf-8',
        'WEBVTT\n\n00:00:00.000 --> 00:00:00.800\nA weir lets a river through\n\n' +
          '00:00:00.800 --> 00:00:01.700\nat the rate the bed below can take.\n\n',
      ],
      [
        'verbose_json',
        'application/json',
        JSON.stringify({
          task: 'transcribe',
          language: 'english',
          duration: 1.7,
          text: sentence,
          segments: [
            {
              id: 0,
              seek: 0,
              start: 0,
              end: 0.8,
              text: ' A weir lets a river through',
              tokens: [1, 2],
              temperature: 0,
              avg_logprob: -0.25,
              compression_ratio: 1,
              no_speech_prob: 0,
            },
            {
              id: 1,
              seek: 0,
              start: 0.8,
              end: 1.7,
              text: ' at the rate the bed below can take.',
              tokens: [],
              temperature: 0,
              avg_logprob: 0,
              compression_ratio: 1,
              no_speech_prob: 0.01,
            },
          ],
        }),
      ],
    ]
    for (const [format, type, body] of formats) {
      const response = await send({ response_format: format })
      assert.equal(response.headers.get('content-type'), type)
      assert.equal(await response.text(), body, format)
    }
  })

  it('[E10] have words if the caller requests them', async (t) => {
    const { send, engine } = await audioStage(t)
    const words = [{ word: ' A', start: 0, end: 0.1, probability: 0.9 }]
    engine.answer = () => ({ body: { ...transcription, words } })
    const fields = { response_format: 'verbose_json', 'timestamp_granularities[]': ['word', 'segment'] }
    const answer = (await (await send(fields)).json()) as { words: unknown; segments: unknown[] }
    assert.deepEqual(answer.words, [{ word: 'A', start: 0, end: 0.1 }])
    assert.equal(answer.segments.length, 2)
    assert.deepEqual(engine.calls[0]?.fields['timestamp_granularities[]'], ['word', 'segment'])
    const plain = (await (await send({ response_format: 'verbose_json' })).json()) as object
    assert.ok(!('words' in plain))
  })

  it('[E10] become subtitles even if the engine returns only text', async (t) => {
    const { send, engine } = await audioStage(t, { kind: 'vllm' })
    engine.answer = ({ fields }) =>
      fields['response_format']?.[0] === 'json'
        ? { body: { text: 'Only text & <more>.' } }
        : { status: 400, body: { error: { message: 'Currently do not support verbose_json for this model' } } }
    const subtitles = await (await send({ response_format: 'vtt', language: 'de' })).text()
    assert.equal(subtitles, 'WEBVTT\n\n00:00:00.000 --> 00:00:01.700\nOnly text &amp; &lt;more>.\n\n')
    const verbose = (await (await send({ response_format: 'verbose_json', language: 'de' })).json()) as {
      language: string
    }
    assert.equal(verbose.language, 'german')
    assert.equal(engine.calls.length, 4)
    assert.ok(engine.calls.every(({ file }) => file.bytes.equals(clip('plain.wav'))))
  })

  it('[E8] work with whisper.cpp', async (t) => {
    const { send, engine } = await audioStage(t, { kind: 'whispercpp' })
    engine.answer = () => ({
      body: {
        ...transcription,
        language: 'german',
        segments: [{ id: 0, start: 0, end: 1.7, text: ' Hallo', words: [{ word: ' Hallo', start: 0.1, end: 0.5 }] }],
      },
    })
    const fields = { response_format: 'verbose_json', 'timestamp_granularities[]': 'word' }
    const answer = (await (await send(fields)).json()) as { language: string; words: unknown }
    assert.deepEqual([answer.language, answer.words], ['german', [{ word: 'Hallo', start: 0.1, end: 0.5 }]])
    await send({}, { path: translations })
    assert.deepEqual(
      engine.calls.map(({ path, fields }) => [path, fields]),
      [
        ['/inference', { response_format: ['verbose_json'], language: ['auto'] }],
        ['/inference', { response_format: ['verbose_json'], language: ['auto'], translate: ['true'] }],
      ],
    )
  })

  it('[E8] join the tokens that whisper.cpp calls words, if the language has spaces', async (t) => {
    const { send, engine } = await audioStage(t, { kind: 'whispercpp' })
    const words = async (language: string, ...tokens: readonly string[]): Promise<string[]> => {
      const segment = { id: 0, start: 0, end: 1, text: tokens.join(''), words: tokens.map((word) => ({ word })) }
      engine.answer = () => ({ body: { text: tokens.join(''), language, segments: [segment] } })
      const response = await send({ response_format: 'verbose_json', 'timestamp_granularities[]': 'word' })
      return ((await response.json()) as { words: { word: string }[] }).words.map(({ word }) => word)
    }
    assert.deepEqual(await words('english', ' A', ' we', 'ir', ',', ' we', ' say', '.'), ['A', 'weir,', 'we', 'say.'])
    assert.deepEqual(await words('japanese', '堰', 'は'), ['堰', 'は'])
  })

  it('[E8] report a recording that whisper.cpp cannot read as the caller’s mistake, despite its status 200', async (t) => {
    const { send, engine, weir } = await audioStage(t, { kind: 'whispercpp' })
    engine.answer = () => ({ body: { error: 'failed to read audio data' } })
    const refusal = await refusalOf(await send())
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'unsupported_content', 'file'])
    assert.equal((await weir.ledger())[0]?.amount, 0n)
  })

  it('[E9] a translation is refused for LocalAI, which cannot translate and is not called', async (t) => {
    const { send, engine } = await audioStage(t, { kind: 'localai' })
    const refusal = await refusalOf(await send({}, { path: translations }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [503, 'model_not_configured', 'model'])
    assert.equal(engine.calls.length, 0)
  })
})

describe('the openai SDK', () => {
  it('[E8, E9, E10] transcribes and translates unchanged', async (t) => {
    const { weir } = await audioStage(t)
    const client = new OpenAI({ apiKey: weir.key, baseURL: weir.base, maxRetries: 0 })
    const model = 'openai/whisper-test'
    const file = (): Promise<File> => toFile(clip('variable.mp3'), 'speech.mp3')
    const { text } = await client.audio.transcriptions.create({ file: await file(), model, language: 'en' })
    assert.equal(text, sentence)
    const srt = await client.audio.transcriptions.create({ file: await file(), model, response_format: 'srt' })
    assert.match(srt, /^1\n00:00:00,000 --> /)
    const verbose = await client.audio.transcriptions.create({
      file: await file(),
      model,
      response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
    })
    assert.deepEqual([verbose.language, verbose.duration, verbose.segments?.length], ['english', 1.7, 2])
    assert.equal((await client.audio.translations.create({ file: await file(), model })).text, sentence)
    const empty = client.audio.transcriptions.create({ file: await toFile(Buffer.alloc(0), 'a.mp3'), model })
    await assert.rejects(empty, { status: 400, code: 'invalid_value', param: 'file' })
  })
})

describe('translations', () => {
  it('[E9] accept the same form and return English', async (t) => {
    const { send, engine } = await audioStage(t)
    engine.answer = () => ({ body: { ...transcription, task: 'translate', language: 'german' } })
    const response = await send({ language: 'de', response_format: 'verbose_json' }, { path: translations })
    const { task, language, text } = (await response.json()) as Record<string, unknown>
    assert.deepEqual([task, language, text], ['translate', 'english', sentence])
    assert.equal(engine.calls[0]?.path, '/v1/audio/translations')
    assert.equal(((await (await send({}, { path: translations })).json()) as { text: string }).text, sentence)
  })
})

describe('billing of audio', () => {
  it('[M4] is per minute of input, to the millisecond', async (t) => {
    const { send, weir } = await audioStage(t)
    await send({}, { clip: 'plain.wav' })
    await send({}, { clip: 'stereo.wav', path: translations })
    const rows = await weir.ledger()
    assert.deepEqual(
      rows.map(({ endpoint, audioMs, amount, inputTokens, outputTokens, estimated, outcome }) => [
        [endpoint, audioMs, amount],
        [inputTokens, outputTokens, estimated, outcome],
      ]),
      [
        // A$0.006 per minute is 6e9 pico-AUD, for 1700 ms.
        [
          [transcriptions, 1700, 170_000_000n],
          [0, 0, false, 'completed'],
        ],
        [
          [translations, 800, 80_000_000n],
          [0, 0, false, 'completed'],
        ],
      ],
    )
  })

  it('[M4] is not less for a recording in which the engine finds more than a decoder', async (t) => {
    const { send, engine, weir } = await audioStage(t)
    // The first of two chunks has 16 bytes. Some decoders play the second as well.
    const wav = clip('plain.wav')
    const first = Buffer.from(wav.subarray(0, 60))
    first.writeUInt32LE(16, 40)
    const chunks = Buffer.concat([first, wav.subarray(36)])
    // A short track before a long one.
    const { aac } = packetTracks()
    const tracks = mp4File([{ ...aac, packets: aac.packets.slice(0, 2) }, aac])
    // Wrong checksums, with which some decoders leave out a frame.
    const frames = Buffer.from(clip('plain.flac'))
    for (const at of flacFrameHeads(frames).slice(2)) frames[at - 1] = ~(frames[at - 1] ?? 0) & 0xff
    engine.answer = () => ({ body: { ...transcription, duration: 3 } })
    for (const forged of [chunks, tracks, frames]) {
      const refusal = await refusalOf(await send({}, { clip: forged }))
      assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'unsupported_content', 'file'])
      assert.match(refusal.message, /cannot be verified.*the engine found 3 s/)
    }
    const rows = await weir.ledger()
    assert.ok(rows.every(({ amount }) => amount === 0n))
  })

  it('[M4] needs a report of the engine if the recording cannot be decoded', async (t) => {
    const { send, engine, weir } = await audioStage(t)
    const unknown = Buffer.from(clip('opus.webm'))
    unknown.write('A_NONE', unknown.indexOf('A_OPUS'), 'latin1')
    assert.equal((await send({}, { clip: unknown })).status, 200)
    engine.answer = () => ({ body: { text: 'A weir.' } })
    const refusal = await refusalOf(await send({}, { clip: unknown }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'unsupported_content', 'file'])
    assert.match(refusal.message, /does not report/)
    // One that can be decoded needs none.
    assert.equal((await send({}, { clip: 'opus.webm' })).status, 200)
    const rows = await weir.ledger()
    assert.deepEqual(
      rows.map(({ outcome, amount }) => [outcome, amount > 0n]),
      [
        ['completed', true],
        ['engine_failed', false],
        ['completed', true],
      ],
    )
  })

  it('[M4] omits refused and failed requests', async (t) => {
    const { send, engine, weir } = await audioStage(t)
    engine.answer = () => ({ status: 500, body: {} })
    assert.equal((await refusalOf(await send())).code, 'upstream_error')
    engine.answer = () => ({ body: { nothing: true } })
    assert.equal((await refusalOf(await send())).code, 'upstream_error')
    assert.deepEqual(
      (await weir.ledger()).map(({ audioMs, amount, outcome }) => [audioMs, amount, outcome]),
      [
        [0, 0n, 'engine_failed'],
        [0, 0n, 'engine_failed'],
      ],
    )
    await eventually('nothing is left of the upload', () => spooled(weir).length === 0)
  })
})

describe('an invalid audio form', () => {
  const mistakes: readonly [
    string,
    Parameters<Awaited<ReturnType<typeof audioStage>>['send']>,
    string,
    string | null,
  ][] = [
    ['no model', [{ model: [] }], 'missing_required_parameter', 'model'],
    ['an empty model', [{ model: '' }], 'missing_required_parameter', 'model'],
    ['two models', [{ model: ['openai/whisper-test', 'other'] }], 'invalid_value', 'model'],
    ['an unknown model', [{ model: 'no/such' }], 'model_not_found', 'model'],
    ['no file', [{}, { clip: null }], 'missing_required_parameter', 'file'],
    ['an empty file', [{}, { clip: Buffer.alloc(0) }], 'invalid_value', 'file'],
    ['a file that is not audio', [{}, { clip: Buffer.from('%PDF-1.7 not a sound') }], 'unsupported_content', 'file'],
    ['a damaged file', [{}, { clip: clip('plain.wav').subarray(0, 40) }], 'invalid_value', 'file'],
    ['an unknown format', [{ response_format: 'xml' }], 'invalid_value', 'response_format'],
    ['a temperature above 1', [{ temperature: '1.5' }], 'invalid_value', 'temperature'],
    ['a temperature in words', [{ temperature: 'hot' }], 'invalid_type', 'temperature'],
    ['a language by name', [{ language: 'english' }], 'invalid_value', 'language'],
    ['a language that does not exist', [{ language: 'zz' }], 'invalid_value', 'language'],
    ['a stream', [{ stream: 'true' }], 'unsupported_value', 'stream'],
    [
      'words without verbose_json',
      [{ 'timestamp_granularities[]': 'word' }],
      'invalid_value',
      'timestamp_granularities',
    ],
    [
      'an unknown granularity',
      [{ response_format: 'verbose_json', 'timestamp_granularities[]': 'letter' }],
      'invalid_value',
      'timestamp_granularities[0]',
    ],
  ]
  for (const [what, args, code, param] of mistakes) {
    it(`[X1] is refused: ${what}`, async (t) => {
      const { send, engine, weir } = await audioStage(t)
      const refusal = await refusalOf(await send(...args))
      assert.deepEqual([refusal.code, refusal.param], [code, param])
      assert.ok(refusal.status === 400 || code === 'model_not_found')
      assert.equal(engine.calls.length, 0)
      await eventually('nothing is left of the upload', () => spooled(weir).length === 0)
    })
  }

  it('[L4] is refused when the model does not list a parameter, but never for json or text', async (t) => {
    const { send } = await audioStage(t, { model: { supported_parameters: [] } })
    for (const [name, value] of [
      ['language', 'en'],
      ['prompt', 'Rivers.'],
      ['temperature', '0.5'],
      ['response_format', 'srt'],
      ['response_format', 'verbose_json'],
    ] as const) {
      const refusal = await refusalOf(await send({ [name]: value }))
      assert.deepEqual([refusal.code, refusal.param], ['unsupported_parameter', name])
    }
    for (const fields of [
      {},
      { response_format: 'json' },
      { response_format: 'text', temperature: '0', language: '' },
    ]) {
      assert.equal((await send(fields)).status, 200)
    }
  })

  it('gets 415 when it is not a form, and 400 when it is broken', async (t) => {
    const { weir } = await audioStage(t)
    const post = async (type: string, body: string): Promise<{ status: number; code: string }> =>
      refusalOf(await weir.call(transcriptions, { method: 'POST', headers: { 'content-type': type }, body }))
    assert.equal((await post('application/json', '{}')).code, 'unsupported_media_type')
    assert.equal((await post('multipart/form-data', 'x')).status, 415)
    const form = 'multipart/form-data; boundary=frontier'
    for (const body of ['', 'x', '--frontier', '--frontier\r\n\r\nx\r\n--frontier--', `${FILE_PART}abc`]) {
      assert.deepEqual([body, (await post(form, body)).code], [body, 'invalid_value'])
    }
    const many = '--frontier\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'.repeat(65)
    assert.equal((await post(form, `${many}--frontier--`)).code, 'invalid_value')
    const long = `--frontier\r\nContent-Disposition: form-data; name="prompt"\r\n\r\n${'a'.repeat(300_000)}\r\n--frontier--`
    assert.equal((await post(form, long)).code, 'request_too_large')
  })

  it('[C6] for another endpoint’s model is refused, and the message names the endpoint', async (t) => {
    const { send, weir } = await audioStage(t, { model: { categories: ['embedding'] } })
    assert.equal((await refusalOf(await send())).code, 'wrong_endpoint')
    await eventually('nothing is left of the upload', () => spooled(weir).length === 0)
  })
})

describe('an upload over the limit', () => {
  it('[E11] gets a 413 that fetch can read; up to the limit it is accepted', async (t) => {
    const { send, engine, weir } = await audioStage(t, { limits: { token_budget: 1_000_000 } })
    const most = silentWav(25 * MIB)
    assert.equal((await send({}, { clip: most })).status, 200)
    assert.ok(engine.calls[0]?.file.bytes.equals(most))
    for (const bytes of [25 * MIB + 1, 30 * MIB]) {
      const refusal = await refusalOf(await send({}, { clip: silentWav(bytes) }))
      assert.deepEqual(
        [refusal.status, refusal.code, refusal.param],
        [413, 'request_too_large', 'file'],
        refusal.message,
      )
      assert.match(refusal.message, /25 MiB/)
    }
    assert.equal(engine.calls.length, 1)
    await eventually('nothing is left of the upload', () => spooled(weir).length === 0)
  })

  it('[E11] gets a 413 that curl can read, with a length and without, and over HTTP/1.0', async (t) => {
    const { weir } = await audioStage(t, { config: { audio: { max_upload_bytes: MIB } } })
    const folder = mkdtempSync(join(tmpdir(), 'weir-upload-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'long.wav')
    writeFileSync(file, silentWav(12 * MIB))
    const curl = async (...options: string[]): Promise<string> => {
      const url = weir.base + transcriptions
      const auth = `Authorization: Bearer ${weir.key}`
      const common = ['-sS', '-w', '\n%{http_code}', '-H', auth, '-F', 'model=whisper-1', '-F', `file=@${file}`]
      return (await promisify(execFile)('curl', [...common, ...options, url])).stdout
    }
    for (const options of [[], ['-H', 'Expect:'], ['-H', 'Transfer-Encoding: chunked'], ['--http1.0']]) {
      const output = await curl(...options)
      assert.match(output, /"code":"request_too_large"[^]*\n413$/, options.join(' '))
    }
    await eventually('nothing is left on disk', () => spooled(weir).length === 0)
  })

  for (const [how, headers] of [
    ['a connection that stays open', {}],
    // The server closes it, and a client that still sends would lose the answer.
    ['a connection that closes', { Connection: 'close' }],
  ] as const) {
    it(`[E11] gets a 413 even if the client writes everything before it reads, on ${how}`, async (t) => {
      const { weir } = await audioStage(t, { config: { audio: { max_upload_bytes: MIB } } })
      const client = await rawClient(weir.base)
      const length = 8 * MIB
      client.send(rawUpload(weir.key, { 'Content-Length': String(length), ...headers }))
      client.socket.pause()
      client.send(FILE_PART)
      await new Promise<void>((resolve, reject) => {
        const rest = Buffer.alloc(length - FILE_PART.length)
        client.socket.write(rest, (error) => (error ? reject(error) : resolve()))
      })
      client.socket.resume()
      await client.sees('request_too_large')
      client.leave()
    })
  }
})

describe('a caller that disconnects', () => {
  it('in the middle of an upload leaves nothing behind', async (t) => {
    const { weir, engine } = await audioStage(t)
    const client = await rawClient(weir.base)
    client.send(rawUpload(weir.key, { 'Content-Length': String(10 * MIB) }) + FILE_PART)
    client.socket.write(Buffer.alloc(MIB))
    await eventually('the upload is being spooled', () => spooled(weir).length > 0)
    client.leave()
    await eventually('nothing is left on disk', () => spooled(weir).length === 0)
    assert.equal(engine.calls.length, 0)
    assert.deepEqual(await weir.ledger(), [])
  })

  it('while the engine works stops it, and leaves nothing behind', async (t) => {
    const { weir, engine } = await audioStage(t)
    const until = gate()
    engine.answer = async () => {
      await until.opened
      return { body: transcription }
    }
    const form = new FormData()
    form.append('model', 'whisper-1')
    form.append('file', new Blob([new Uint8Array(clip('flac.ogg'))]))
    const abort = new AbortController()
    const answer = weir.call(transcriptions, { method: 'POST', body: form, signal: abort.signal })
    await eventually('the engine has the upload', () => engine.calls.length === 1)
    assert.equal(spooled(weir).length, 1)
    abort.abort()
    await assert.rejects(answer)
    await engine.calls[0]?.left
    await eventually('nothing is left on disk', () => spooled(weir).length === 0)
    until.open()
  })
})

describe('a slow speech engine', () => {
  it('receives every byte unchanged', async (t) => {
    const received: Buffer[] = []
    const slow = createServer((request, response) => {
      request.on('data', (chunk: Buffer) => {
        if (received.push(chunk) % 16 !== 0) return
        request.pause()
        setTimeout(() => request.resume(), 2)
      })
      request.on('end', () => response.setHeader('content-type', 'application/json').end('{"text":"slow"}'))
    })
    await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve))
    t.after(() => slow.close())
    const url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}/v1`
    const serverless = { engine: { kind: 'speaches', urls: [url] }, limits: { token_budget: 1_000_000 } }
    const { send } = await audioStage(t, { model: { serverless } })
    const file = Buffer.concat([silentWav(20 * MIB).subarray(0, 44), randomBytes(20 * MIB - 44)])
    assert.equal((await send({}, { clip: file })).status, 200)
    assert.ok(Buffer.concat(received).includes(file))
  })
})

describe('a failing speech engine', () => {
  it('is replaced by the next one, which receives the whole file again', async (t) => {
    const hasty = createServer((request, response) => {
      // Answers without reading the upload.
      response.writeHead(request.method === 'POST' ? 500 : 200, { connection: 'close' }).end('{}')
    })
    await new Promise<void>((resolve) => hasty.listen(0, '127.0.0.1', resolve))
    t.after(() => hasty.close())
    const good = await speechEngine()
    t.after(() => good.close())
    const urls = [`http://127.0.0.1:${(hasty.address() as AddressInfo).port}/v1`, good.url]
    const serverless = { engine: { kind: 'speaches', urls }, limits: { token_budget: 1_000_000 } }
    const { send, weir } = await audioStage(t, { model: { serverless } })
    const file = silentWav(8 * MIB)
    assert.equal((await send({}, { clip: file })).status, 200)
    assert.ok(good.calls[0]?.file.bytes.equals(file))
    await eventually('nothing is left of the upload', () => spooled(weir).length === 0)
  })

  it('refuses a recording with a message that reaches the caller', async (t) => {
    const { send, engine, weir } = await audioStage(t)
    engine.answer = () => ({ status: 400, body: { error: { message: 'The audio is silent.' } } })
    const refusal = await refusalOf(await send())
    assert.deepEqual([refusal.status, refusal.code, refusal.message], [400, 'invalid_value', 'The audio is silent.'])
    assert.equal(engine.calls.length, 1)
    await eventually('nothing is left of the upload', () => spooled(weir).length === 0)
  })
})

describe('the queue for audio', () => {
  it('[Q1] charges 15 tokens per second, and refuses a recording that could never be admitted', async (t) => {
    const { send, engine, weir } = await audioStage(t, { limits: { token_budget: 26 } })
    const until = gate()
    engine.answer = async () => {
      await until.opened
      return { body: transcription }
    }
    const answer = send({}, { clip: 'plain.wav' })
    await eventually('the engine has the upload', () => engine.calls.length === 1)
    const status = (await (await weir.call('/queue/status')).json()) as { data: { committed_tokens: number }[] }
    assert.equal(status.data[0]?.committed_tokens, 26)
    until.open()
    assert.equal((await answer).status, 200)
    const refusal = await refusalOf(await send({}, { clip: 'adpcm.wav' }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'token_budget_exceeded', 'file'])
  })
})

describe('the spool', () => {
  it('is emptied at the start, and refuses more than its limit', async (t) => {
    const folder = join(mkdtempSync(join(tmpdir(), 'weir-spool-')), 'spool')
    t.after(() => rmSync(join(folder, '..'), { recursive: true }))
    mkdirSync(folder)
    writeFileSync(join(folder, 'left-behind'), 'x')
    const spool = openSpool({ folder, maxBytes: 1000, disk: roomyDisk() })
    assert.deepEqual(readdirSync(folder), [])
    const first = await spool.open('one')
    await first.append([Buffer.alloc(500)])
    const second = await spool.open('two')
    await second.append([Buffer.alloc(400)])
    const third = await spool.open('three')
    await assert.rejects(third.append([Buffer.alloc(101)]), { code: 'service_unavailable', message: /no room/ })
    await third.append([Buffer.alloc(100)])
    await first.close()
    await first.close()
    await third.append([Buffer.alloc(400)])
    await assert.rejects(first.append([Buffer.alloc(1)]), /closed/)
    await second.append([Buffer.alloc(100)])
    await second.close()
    await third.close()
    assert.deepEqual(readdirSync(folder), [])
  })

  it('gives one workspace half, in all its uploads together, and again when they have ended', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-spool-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const spool = openSpool({ folder, maxBytes: 1000, disk: roomyDisk() })
    for (let round = 0; round < 3; round++) {
      const files = await Promise.all(Array.from({ length: 5 }, () => spool.open('one')))
      for (const file of files) await file.append([Buffer.alloc(100)])
      await assert.rejects(files[0]!.append([Buffer.alloc(1)]), {
        code: 'service_unavailable',
        retryAfter: 2,
        message: /uploads of this workspace/,
      })
      const other = await spool.open('two')
      await other.append([Buffer.alloc(500)])
      for (const file of [...files, other]) await file.close()
    }
  })

  it('refuses uploads that do not fit on the disk, and accepts them when there is space again', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-spool-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const space = { size: 1000, free: 650 }
    const disk = diskRoom({ space: async () => ({ ...space }), now: () => 0, processes: 1 })
    const spool = openSpool({ folder, maxBytes: 1000, disk })
    const file = await spool.open('one')
    // 400 besides the reserve, and one workspace has half of it.
    await assert.rejects(file.append([Buffer.alloc(201)]), { code: 'service_unavailable', message: /this workspace/ })
    await file.append([Buffer.alloc(200)])
    space.free = 250
    const other = await spool.open('two')
    const refused = { code: 'service_unavailable', retryAfter: 2, message: /no room for uploads/ }
    await assert.rejects(other.append([Buffer.alloc(1)]), refused)
    space.free = 350
    await other.append([Buffer.alloc(100)])
    space.free = 250
    await assert.rejects(other.append([Buffer.alloc(1)]), refused)
    await file.close()
    space.free = 450
    await other.append([Buffer.alloc(50)])
    await other.close()
  })

  it('frees what could not be written, and reports it', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-spool-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const roomy = roomyDisk()
    const disk = { ...roomy, write: () => Promise.reject(new Error('ENOSPC')) }
    const spool = openSpool({ folder, maxBytes: 1000, disk })
    for (let round = 0; round < 3; round++) {
      const file = await spool.open('one')
      await assert.rejects(file.append([Buffer.alloc(500)]), {
        code: 'service_unavailable',
        cause: new Error('ENOSPC'),
      })
      await file.close()
    }
  })

  it('refuses uploads while the disk cannot be measured', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-spool-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const disk = { ...roomyDisk(), measure: () => Promise.reject(new Error('ENOENT')) }
    const file = await openSpool({ folder, maxBytes: 1000, disk }).open('one')
    await assert.rejects(file.append([Buffer.alloc(1)]), { code: 'service_unavailable', cause: new Error('ENOENT') })
    await file.close()
  })
})
