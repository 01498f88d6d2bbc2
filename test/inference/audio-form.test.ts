import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseCatalog } from '../../src/catalog/file.ts'
import { byteCollector } from '../../src/shared/byte-collector.ts'
import type { EngineRequest, Job } from '../../src/engines/job.ts'
import { modelIn, type AudioForm } from '../../src/inference/audio/form.ts'
import { audioJob } from '../../src/inference/audio/job.ts'
import type { MeasuredAudio } from '../../src/server/uploads/uploads.ts'

const entry = {
  id: 'test/speech',
  categories: ['audio'],
  context_length: 100,
  supported_parameters: ['language', 'prompt', 'temperature', 'response_format', 'timestamp_granularities'],
  serverless: { engine: { kind: 'openai', urls: ['http://127.0.0.1:1'] }, limits: { token_budget: 15_000 } },
}
const modelOf = (changes: object = {}) =>
  parseCatalog(JSON.stringify({ models: [{ ...entry, ...changes }] }), 'catalog.yaml', () => undefined)[0]!

const bytes = Buffer.from('RIFF recording')
const file = {
  length: bytes.length,
  read: async (into: Buffer, position: number) => bytes.copy(into, 0, position),
}
const measured: MeasuredAudio = { durationMs: 2000, extension: 'wav', contentType: 'audio/wav', isClaimed: false }

function formOf(fields: Readonly<Record<string, string | readonly string[]>>, withFile = true): AudioForm {
  const all = Object.entries(fields).map(([name, values]): [string, readonly string[]] => [name, [values].flat()])
  return { fields: new Map([['model', ['test/speech']], ...all]), file: withFile ? file : undefined }
}

interface Options {
  readonly task?: 'transcribe' | 'translate'
  /** null: it is no recording. */
  readonly audio?: MeasuredAudio | null
  readonly changes?: object
}

function jobOf(form: AudioForm, { task = 'transcribe', audio = measured, changes = {} }: Options = {}): Promise<Job> {
  const model = modelOf(changes)
  return audioJob('/audio/x', task, form, model, model.serverless!, async () => audio ?? undefined)
}

/** The fields that the engine gets, as the form says them. */
async function sentFields(call: EngineRequest | undefined): Promise<string[]> {
  const { body } = call ?? assert.fail()
  assert.ok(body && !Buffer.isBuffer(body))
  const pieces: Buffer[] = []
  for await (const piece of body.open()) pieces.push(Buffer.from(piece))
  const whole = Buffer.concat(pieces)
  assert.equal(whole.length, body.length)
  const boundary = /boundary=(.*)$/.exec(call?.contentType ?? '')?.[1] ?? assert.fail()
  const parts = whole.toString().split(`--${boundary}`)
  assert.deepEqual([parts[0], parts.at(-1)], ['', '--\r\n'])
  return parts.slice(1, -1).map((part) => part.trim().replaceAll('\r\n', '|'))
}

describe('the form of a recording', () => {
  it('names its model once', () => {
    assert.equal(modelIn(formOf({})), 'test/speech')
    for (const model of ['', []]) {
      assert.throws(() => modelIn(formOf({ model })), { code: 'missing_required_parameter', param: 'model' })
    }
    assert.throws(() => modelIn(formOf({ model: ['a', 'b'] })), {
      code: 'invalid_value',
      param: 'model',
      message: "The field 'model' appears more than once.",
    })
  })

  const wrong: readonly (readonly [what: string, form: AudioForm, code: string, param: string, options?: Options])[] = [
    ['no file', formOf({}, false), 'missing_required_parameter', 'file'],
    ['an empty file', { ...formOf({}), file: { ...file, length: 0 } }, 'invalid_value', 'file'],
    ['a file that is no recording', formOf({}), 'unsupported_content', 'file', { audio: null }],
    [
      'a recording without a length',
      formOf({}),
      'invalid_value',
      'file',
      { audio: { ...measured, durationMs: undefined } },
    ],
    ['a language that there is not', formOf({ language: 'xx' }), 'invalid_value', 'language'],
    ['a language twice', formOf({ language: ['en', 'de'] }), 'invalid_value', 'language'],
    ['a temperature in words', formOf({ temperature: 'hot' }), 'invalid_type', 'temperature'],
    ['a temperature above 1', formOf({ temperature: '1.01' }), 'invalid_value', 'temperature'],
    ['a temperature that is hexadecimal', formOf({ temperature: '0x1' }), 'invalid_type', 'temperature'],
    ['a format that there is not', formOf({ response_format: 'xml' }), 'invalid_value', 'response_format'],
    ['a stream', formOf({ stream: ' TRUE ' }), 'unsupported_value', 'stream'],
    ['a stream by its number', formOf({ stream: '1' }), 'unsupported_value', 'stream'],
    ['a stream that is neither', formOf({ stream: 'yes' }), 'invalid_type', 'stream'],
    [
      'times of words in a text',
      formOf({ 'timestamp_granularities[]': 'word' }),
      'invalid_value',
      'timestamp_granularities',
    ],
    [
      'times of sentences',
      formOf({ timestamp_granularities: 'sentence', response_format: 'verbose_json' }),
      'invalid_value',
      'timestamp_granularities[0]',
    ],
    [
      'what a model does not support',
      formOf({ prompt: 'a' }),
      'unsupported_parameter',
      'prompt',
      { changes: { supported_parameters: [] } },
    ],
    [
      'a format that a model does not support',
      formOf({ response_format: 'srt' }),
      'unsupported_parameter',
      'response_format',
      { changes: { supported_parameters: [] } },
    ],
    [
      'a temperature that a model does not support',
      formOf({ temperature: '0.1' }),
      'unsupported_parameter',
      'temperature',
      { changes: { supported_parameters: [] } },
    ],
    [
      'words that a model does not support',
      formOf({ timestamp_granularities: ['segment', 'word'], response_format: 'verbose_json' }),
      'unsupported_parameter',
      'timestamp_granularities',
      { changes: { supported_parameters: ['response_format'] } },
    ],
    [
      'more than the whole budget',
      formOf({}),
      'token_budget_exceeded',
      'file',
      { audio: { ...measured, durationMs: 1_000_001 } },
    ],
    [
      'a translation by a server that only transcribes',
      formOf({}),
      'model_not_configured',
      'model',
      { task: 'translate', changes: { serverless: { engine: { kind: 'localai', urls: ['http://127.0.0.1:1'] } } } },
    ],
  ]
  for (const [what, form, code, param, options] of wrong) {
    it(`is refused with ${what}`, () => assert.rejects(jobOf(form, options), { code, param }))
  }

  it('may have values that change nothing, whatever the model supports', async () => {
    const plain = { language: '', prompt: '', temperature: '0', stream: 'False', response_format: 'text' }
    for (const fields of [plain, { ...plain, temperature: '0e5', stream: '0', response_format: 'json' }]) {
      const { calls } = await jobOf(formOf(fields), { changes: { supported_parameters: [] } })
      assert.equal(calls.length, 1)
    }
    const segments = { 'timestamp_granularities[]': 'segment', response_format: 'verbose_json' }
    assert.ok(await jobOf(formOf(segments), { changes: { supported_parameters: ['response_format'] } }))
  })

  it('reaches the engine with its fields and the file', async () => {
    const { calls } = await jobOf(
      formOf({
        language: 'EN',
        prompt: 'Weir',
        temperature: ' .5 ',
        response_format: 'verbose_json',
        'timestamp_granularities[]': ['word', 'word'],
        timestamp_granularities: 'segment',
      }),
    )
    assert.deepEqual(await sentFields(calls[0]), [
      'Content-Disposition: form-data; name="model"||test/speech',
      'Content-Disposition: form-data; name="response_format"||verbose_json',
      'Content-Disposition: form-data; name="language"||en',
      'Content-Disposition: form-data; name="prompt"||Weir',
      'Content-Disposition: form-data; name="temperature"||0.5',
      'Content-Disposition: form-data; name="timestamp_granularities[]"||word',
      'Content-Disposition: form-data; name="timestamp_granularities[]"||segment',
      'Content-Disposition: form-data; name="file"; filename="audio.wav"|Content-Type: audio/wav||RIFF recording',
    ])
  })

  it('costs 15 tokens a second, and its prompt up to the context', async () => {
    const costOf = async (durationMs: number, prompt = ''): Promise<number> =>
      (await jobOf(formOf({ prompt }), { audio: { ...measured, durationMs } })).cost
    assert.deepEqual([await costOf(1000), await costOf(1001), await costOf(1_000_000)], [15, 16, 15_000])
    assert.equal(await costOf(1000, 'word '.repeat(500)), 115)
    const { maxTokens, maxInputTokens, heldInputTokens, likelyInputTokens, media } = await jobOf(formOf({}))
    assert.deepEqual(
      [maxTokens, maxInputTokens, heldInputTokens, likelyInputTokens, media],
      [0, 0, 0, 0, { audioMs: 2000 }],
    )
  })
})

describe('the answer to a recording', () => {
  async function answerOf(engine: object, fields: Record<string, string | string[]> = {}, options: Options = {}) {
    const { answer } = await jobOf(formOf(fields), options)
    assert.ok(answer.kind === 'whole')
    const body = byteCollector(100_000)
    body.push(Buffer.from(JSON.stringify(engine)))
    const parsed = await answer.read([body], { id: 'id', created: 1, model: 'test/speech' }, [])
    return (
      parsed && { type: parsed.contentType, text: String(parsed.render(parsed.usage!)), bytes: parsed.outputBytes() }
    )
  }
  const spokenText = {
    text: ' Hello é ',
    language: 'en',
    duration: 2,
    segments: [{ start: 0, end: 1.5, text: ' Hello é', tokens: [1, 1.5, 'x'], seek: 0.6 }],
  }

  it('has the requested type and format', async () => {
    assert.deepEqual(await answerOf(spokenText), {
      type: 'application/json',
      text: '{"text":"Hello é","usage":{"type":"duration","seconds":2}}',
      bytes: 8,
    })
    assert.deepEqual(await answerOf(spokenText, { response_format: 'text' }), {
      type: 'text/plain; charset=utf-8',
      text: 'Hello é\n',
      bytes: 8,
    })
    const srt = await answerOf(spokenText, { response_format: 'srt' })
    assert.deepEqual(
      [srt?.type, srt?.text],
      ['text/plain; charset=utf-8', '1\n00:00:00,000 --> 00:00:01,500\nHello é\n\n'],
    )
    const vtt = await answerOf(spokenText, { response_format: 'vtt' })
    assert.deepEqual(
      [vtt?.type, vtt?.text],
      ['text/vtt; charset=utf-8', 'WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nHello é\n\n'],
    )
  })

  it('has everything in its long format, with values for what an engine omits', async () => {
    const verbose = { response_format: 'verbose_json', temperature: '0.5' }
    const { text = '' } =
      (await answerOf({ ...spokenText, words: [{ word: ' Hello ', start: 0, end: 1 }] }, verbose)) ?? {}
    assert.deepEqual(JSON.parse(text), {
      task: 'transcribe',
      language: 'english',
      duration: 2,
      text: 'Hello é',
      segments: [
        {
          id: 0,
          seek: 1,
          start: 0,
          end: 1.5,
          text: ' Hello é',
          tokens: [1],
          temperature: 0.5,
          avg_logprob: 0,
          compression_ratio: 1,
          no_speech_prob: 0,
        },
      ],
    })
    const words = { ...verbose, 'timestamp_granularities[]': 'word' }
    const timed = JSON.parse(
      (await answerOf({ ...spokenText, words: [{ word: ' Hello ', start: 0.5, end: 1 }] }, words))?.text ?? '',
    ) as { words: object }
    assert.deepEqual(timed.words, [{ word: 'Hello', start: 0.5, end: 1 }])
    const short = {
      text: 'Hi',
      segments: [
        {
          start: 0.25,
          end: 1,
          text: 'Hi',
          temperature: 0.1,
          avg_logprob: -0.5,
          compression_ratio: 1.5,
          no_speech_prob: 0.2,
        },
      ],
    }
    const given = JSON.parse((await answerOf(short, { ...verbose, language: 'de' }))?.text ?? '') as {
      language: string
      segments: object[]
    }
    assert.equal(given.language, 'german')
    assert.deepEqual(given.segments[0], {
      id: 0,
      seek: 0,
      start: 0.25,
      end: 1,
      text: 'Hi',
      tokens: [],
      temperature: 0.1,
      avg_logprob: -0.5,
      compression_ratio: 1.5,
      no_speech_prob: 0.2,
    })
  })

  it('is one segment if the engine returns only the text, and none without a text', async () => {
    const segmentsOf = async (engine: object, task: 'transcribe' | 'translate' = 'transcribe'): Promise<unknown> => {
      const answer = await answerOf(engine, { response_format: 'verbose_json' }, { task })
      const { segments, language } = JSON.parse(answer?.text ?? '') as {
        segments: { start: number; end: number; text: string }[]
        language: string
      }
      return [language, ...segments.map(({ start, end, text }) => [start, end, text])]
    }
    assert.deepEqual(await segmentsOf({ text: 'Hi' }), ['unknown', [0, 2, 'Hi']])
    assert.deepEqual(await segmentsOf({ text: ' ' }), ['unknown'])
    assert.deepEqual(await segmentsOf({ text: 'Hi', language: 'de' }, 'translate'), ['english', [0, 2, 'Hi']])
  })

  it('is refused if the engine found more than is billed, or nothing confirms a length that is only claimed', async () => {
    const claimed = { audio: { ...measured, isClaimed: true } }
    const refused = { code: 'unsupported_content', param: 'file' }
    // A hundredth and a second more are allowed.
    assert.ok(await answerOf({ ...spokenText, duration: 3.02 }))
    await assert.rejects(answerOf({ ...spokenText, duration: 3.03 }), refused)
    const { duration: _none, ...silent } = spokenText
    assert.ok(await answerOf(silent))
    await assert.rejects(answerOf(silent, {}, claimed), refused)
    assert.ok(await answerOf(spokenText, {}, claimed))
    assert.equal(await answerOf({ error: 'x' }), undefined)
  })
})
