import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { renderTranscript, toTranscript } from '../../src/inference/audio/transcript.ts'

const options = { task: 'transcribe', durationMs: 8_000_000, language: 'en', temperature: 0, words: false } as const

function cuesOf(segments: readonly object[], format: 'srt' | 'vtt'): string {
  const output = {
    text: 'x',
    language: 'en',
    segments: segments as Record<string, unknown>[],
    words: undefined,
    seconds: undefined,
  }
  return renderTranscript(toTranscript(output, options), format)
}

describe('subtitles', () => {
  it('have times in hours, minutes, seconds and milliseconds', () => {
    const segments = [
      { start: 0, end: 59.9996, text: 'one' },
      { start: 3599.5, end: 3725.25, text: 'two' },
    ]
    assert.equal(
      cuesOf(segments, 'srt'),
      '1\n00:00:00,000 --> 00:01:00,000\none\n\n2\n00:59:59,500 --> 01:02:05,250\ntwo\n\n',
    )
    assert.equal(
      cuesOf(segments, 'vtt'),
      'WEBVTT\n\n00:00:00.000 --> 00:01:00.000\none\n\n00:59:59.500 --> 01:02:05.250\ntwo\n\n',
    )
  })

  it('cannot be broken by the transcribed text', () => {
    const segments = [{ start: 0, end: 1, text: ' a\n\n2\n00:00 --> 9 & <b>\r\n' }]
    assert.equal(cuesOf(segments, 'srt'), '1\n00:00:00,000 --> 00:00:01,000\na\n2\n00:00 -> 9 & <b>\n\n')
    assert.equal(cuesOf(segments, 'vtt'), 'WEBVTT\n\n00:00:00.000 --> 00:00:01.000\na\n2\n00:00 -> 9 &amp; &lt;b>\n\n')
  })

  it('never end before they begin', () => {
    assert.match(cuesOf([{ start: 5, end: 3, text: 'x' }], 'srt'), /00:00:05,000 --> 00:00:05,000/)
    assert.match(cuesOf([{ start: -1, text: 'x' }], 'srt'), /00:00:00,000 --> 00:00:00,000/)
  })
})
