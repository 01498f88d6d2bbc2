import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Model } from '../../src/catalog/model.ts'
import { readRequest } from '../../src/inference/audio/form.ts'
import { renderTranscript, toTranscript } from '../../src/inference/audio/transcript.ts'
import { wireName } from '../../src/inference/responses/tools.ts'
import { refusalFrom } from '../../src/engines/refusal.ts'

/**
 * Texts of callers and engines that took seconds, because the time of a regular expression grew with the square of their
 * length. test/expressions.test.ts checks the expressions; these are the ways to them.
 */

/** One and a half megabytes take about 10 ms where the time grows with the length, and hours where it grows with its square. */
const LIMIT_MS = 1000

function cpuMs(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

function requireFast(work: () => unknown): void {
  const took = cpuMs(work)
  assert.ok(took < LIMIT_MS, `${took} ms of CPU time`)
}

describe('a hostile text takes no longer than its length', () => {
  it('in the namespace of a call', () => {
    requireFast(() => wireName('f', `${'_'.repeat(1_500_000)}a`))
  })

  it('in the temperature of a transcription', () => {
    const fields = new Map([
      ['model', ['m']],
      ['temperature', [`${'1'.repeat(1_500_000)}a`]],
    ])
    requireFast(() => assert.throws(() => readRequest({ fields, file: undefined }, {} as Model, {}), { param: 'file' }))
  })

  it('in the words of a recording', () => {
    const segments = [{ start: 0, end: 1, text: `a${' '.repeat(1_500_000)}b` }]
    const output = { text: '', language: 'en', segments, words: undefined, seconds: undefined }
    const options = { task: 'transcribe', durationMs: 1000, language: 'en', temperature: 0, words: false } as const
    requireFast(() => renderTranscript(toTranscript(output, options), 'srt'))
  })

  const pieces = [
    "{'",
    '{"message":"',
    "'msg':'",
    '\n',
    'model=',
    'a.',
    "ValueError('",
    '[json.exception',
    'at ',
    "'loc': (",
  ]
  for (const piece of pieces) {
    it(`in a refusal of an engine that quotes a schema: ${JSON.stringify(piece)}`, () => {
      const quoted = piece.repeat(Math.ceil(4000 / piece.length))
      for (const text of [quoted, `{${quoted}`, `${quoted} https://x`, `a ${quoted}!`]) {
        const body = JSON.stringify({ error: { message: text } })
        // Where the time grew faster, a hundred refusals took six seconds.
        requireFast(() => {
          for (let count = 0; count < 100; count++) refusalFrom(400, body)
        })
      }
    })
  }
})
