import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { windowsAtPauses } from '../host/onnx/speech-pauses.ts'

const options = { sampleRate: 100, minSeconds: 4, maxSeconds: 15 }

/** A second of samples each, at this loudness. */
function recording(...loudness: readonly number[]): Float32Array {
  return Float32Array.from(loudness.flatMap((level) => Array.from({ length: 100 }, (_, i) => level * (i % 2 ? 1 : -1))))
}

const lengths = (samples: Float32Array): number[] => [...windowsAtPauses(samples, options)].map(({ length }) => length)

describe('the windows of a recording', () => {
  it('are one if the recording is short', () => assert.deepEqual(lengths(recording(1, 0, 1)), [300]))

  it('end in the middle of a pause', () => {
    const speech = [...Array.from({ length: 9 }, () => 1), 0, ...Array.from({ length: 9 }, () => 1)]
    const [first, second] = lengths(recording(...speech))
    assert.ok(first !== undefined && first > 900 && first < 1000, `${first}`)
    assert.equal(second, 1900 - first)
  })

  it('are never longer than the limit, nor shorter before the last', () => {
    for (const level of [0, 1]) {
      const found = lengths(recording(...Array.from({ length: 61 }, () => level)))
      assert.equal(
        found.reduce((sum, length) => sum + length, 0),
        6100,
      )
      for (const length of found.slice(0, -1)) assert.ok(length >= 400 && length <= 1500, `${length}`)
      assert.ok((found.at(-1) ?? 0) <= 1500)
    }
  })

  it('are none if the recording is empty', () => assert.deepEqual(lengths(new Float32Array()), []))
})
