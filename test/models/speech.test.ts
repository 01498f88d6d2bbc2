import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { wordErrorRate } from '../../bench/word-errors.ts'
import { startService, type Answer, type ModelService } from './service.ts'

const clips = join(import.meta.dirname, 'clips')
const moonshine = 'usefulsensors/moonshine-tiny'
const spoken =
  'and so my fellow americans ask not what your country can do for you ask what you can do for your country'

describe('speech to text', () => {
  let service: ModelService
  before(async () => {
    service = await startService('openai/whisper-base', 'openai/whisper-tiny', moonshine)
  })
  after(() => service.close())

  const ask = (clip: string, fields: Record<string, string> = {}, task = 'transcriptions'): Promise<Answer> => {
    const form = new FormData()
    form.append('file', new Blob([readFileSync(join(clips, clip))]), clip)
    for (const [name, value] of Object.entries({ model: 'openai/whisper-base', ...fields })) form.append(name, value)
    return service.send(`/audio/${task}`, form)
  }

  it('transcribes a human speaker with at most 15 % of the words wrong', async () => {
    for (const model of ['openai/whisper-base', 'openai/whisper-tiny', moonshine]) {
      const { json } = await ask('jfk.mp3', { model })
      const rate = wordErrorRate(spoken, json.text)
      assert.ok(rate <= 0.15, `${model}: ${rate} in "${json.text}"`)
      assert.deepEqual(json.usage, { type: 'duration', seconds: 11 })
    }
  })

  it('decodes ogg, opus, flac, m4a and webm', async () => {
    for (const clip of ['jfk.ogg', 'jfk.opus', 'jfk.flac', 'jfk.m4a', 'jfk.webm']) {
      const { status, json, text } = await ask(clip, { model: 'openai/whisper-tiny', language: 'en' })
      assert.equal(status, 200, `${clip}: ${text}`)
      assert.match(json.text, /fellow Americans/i, clip)
    }
  })

  it('answers in every format', async () => {
    const model = 'openai/whisper-tiny'
    const plain = await ask('jfk.mp3', { model, response_format: 'text' })
    assert.equal(plain.type, 'text/plain; charset=utf-8')
    assert.match(plain.text, /^And so/)
    const srt = await ask('jfk.mp3', { model, response_format: 'srt' })
    assert.match(srt.text, /^1\n00:00:00,000 --> 00:00:\d\d,\d{3}\nAnd so/)
    const vtt = await ask('jfk.mp3', { model, response_format: 'vtt' })
    assert.equal(vtt.type, 'text/vtt; charset=utf-8')
    assert.match(vtt.text, /^WEBVTT\n\n00:00:00\.000 --> /)
    const { json } = await ask('jfk.mp3', { model, response_format: 'verbose_json' })
    assert.equal(json.task, 'transcribe')
    assert.equal(json.language, 'english')
    assert.equal(json.duration, 11)
    assert.ok(json.segments[0].end > json.segments[0].start && json.segments[0].avg_logprob < 0)
  })

  it('detects the spoken language', async () => {
    const german = await ask('german.wav', { response_format: 'verbose_json' })
    assert.equal(german.json.language, 'german')
    assert.match(german.json.text, /Die Kinder spielen im Garten/)
    const spanish = await ask('spanish.wav', { response_format: 'verbose_json' })
    assert.equal(spanish.json.language, 'spanish')
    assert.match(spanish.json.text, /El agua está muy fría/)
  })

  it('translates German and Spanish to English', async () => {
    const german = await ask('german.wav', {}, 'translations')
    for (const word of ['good morning', 'children', 'play', 'garden', 'cat', 'sleep', 'house']) {
      assert.match(german.json.text, new RegExp(word, 'i'), german.json.text)
    }
    const spanish = await ask('spanish.wav', {}, 'translations')
    for (const word of ['water', 'very cold', 'tomorrow', 'beach']) {
      assert.match(spanish.json.text, new RegExp(word, 'i'), spanish.json.text)
    }
  })

  it('transcribes English with moonshine, in segments that end at pauses', async () => {
    const { json } = await ask('jfk.mp3', { model: moonshine, response_format: 'verbose_json' })
    assert.equal(json.language, 'english')
    assert.equal(json.segments[0].start, 0)
    assert.equal(json.segments.at(-1).end, 11)
    assert.match(json.text, /^And so/)
    const other = await ask('german.wav', { model: moonshine, language: 'de' })
    assert.equal(other.json.error.param, 'language')
    const translated = await ask('german.wav', { model: moonshine }, 'translations')
    assert.match(translated.json.error.message, /cannot translate/)
  })

  it('refuses unsupported requests', async () => {
    assert.equal((await ask('README.md')).json.error.code, 'unsupported_content')
    assert.equal((await ask('jfk.mp3', { language: 'xx' })).json.error.param, 'language')
    const timed = { response_format: 'verbose_json', 'timestamp_granularities[]': 'word' }
    assert.match((await ask('jfk.mp3', timed)).json.error.message, /segments, not words/)
  })
})
