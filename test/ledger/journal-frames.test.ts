import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { frameOf, scanFrames } from '../../src/ledger/journal/records.ts'

const SEGMENT = 7

/** Frames one after the other, as the journal writes them. */
function segmentOf(texts: readonly string[], segment = SEGMENT, offset = 0): Buffer {
  const frames: Buffer[] = []
  let end = offset
  for (const text of texts) {
    const frame = frameOf(text, segment, end)
    frames.push(frame)
    end += frame.length
  }
  return Buffer.concat(frames)
}

const textsIn = (bytes: Buffer, segment = SEGMENT, offset = 0): string[] =>
  scanFrames(bytes, segment, offset).frames.map(({ text }) => text)

/** Where each frame ends. */
function endsOf(texts: readonly string[]): number[] {
  let end = 0
  return texts.map((text) => (end += frameOf(text, SEGMENT, end).length))
}

const someText = fc.string({ unit: 'grapheme', maxLength: 40 })
const someTexts = fc.array(someText, { minLength: 1, maxLength: 8 })

describe('frames of the journal', () => {
  it('are read as they were written, wherever the bytes begin', () => {
    fc.assert(
      fc.property(someTexts, fc.nat(2 ** 32), fc.nat(2 ** 32), (texts, segment, offset) => {
        const bytes = segmentOf(texts, segment, offset)
        const { frames, end, damage } = scanFrames(bytes, segment, offset)
        assert.deepEqual(
          frames.map(({ text }) => text),
          texts,
        )
        assert.equal(end, offset + bytes.length)
        assert.equal(frames.at(-1)?.end, end)
        assert.deepEqual(damage, [])
      }),
    )
  })

  it('have the same bytes in every version: an update reads the existing journal', () => {
    const bytes = 'f55752310c000000e65cdaac5b2268222c312c6e756c6c5d'
    assert.equal(frameOf('["h",1,null]', 7, 4096).toString('hex'), bytes)
  })

  it('can be read from the end of any of them', () => {
    const texts = ['first', 'second', 'third']
    const bytes = segmentOf(texts)
    for (const [index, end] of endsOf(texts).entries()) {
      assert.deepEqual(textsIn(bytes.subarray(end), SEGMENT, end), texts.slice(index + 1))
    }
  })

  it('are all found before a cut, and no part of the frame that was cut', () => {
    fc.assert(
      fc.property(someTexts, fc.nat(), (texts, seed) => {
        const bytes = segmentOf(texts)
        const cut = seed % (bytes.length + 1)
        const whole = endsOf(texts).filter((end) => end <= cut)
        const scanned = scanFrames(bytes.subarray(0, cut), SEGMENT)
        assert.deepEqual(
          scanned.frames.map(({ text }) => text),
          texts.slice(0, whole.length),
        )
        assert.equal(scanned.end, whole.at(-1) ?? 0)
        assert.deepEqual(scanned.damage, [], 'what a crash cut off is no damage')
      }),
    )
  })

  it('are found before a torn frame, whichever of its bytes were written', () => {
    fc.assert(
      fc.property(someTexts, fc.infiniteStream(fc.boolean()), fc.boolean(), (texts, arrived, isZero) => {
        const bytes = segmentOf([...texts, 'the last one, which is torn'])
        const start = segmentOf(texts).length
        let isTorn = false
        for (let at = start; at < bytes.length; at++) {
          if (arrived.next().value !== false) continue
          const left = isZero ? 0 : bytes[at]! ^ 0x5a
          isTorn ||= left !== bytes[at]
          bytes[at] = left
        }
        const scanned = scanFrames(bytes, SEGMENT)
        assert.equal(scanned.frames.length, isTorn ? texts.length : texts.length + 1)
        assert.deepEqual(scanned.damage, [])
      }),
    )
  })

  it('are invalid anywhere else: a copy at another position or in another segment does not count', () => {
    fc.assert(
      fc.property(someTexts, fc.nat(50), (texts, gap) => {
        const bytes = segmentOf(texts)
        const copied = Buffer.concat([bytes, Buffer.alloc(gap), bytes])
        assert.deepEqual(textsIn(copied), texts, 'a duplicated tail')
        assert.deepEqual(textsIn(bytes, SEGMENT + 1), [], 'another segment')
        assert.deepEqual(textsIn(bytes, SEGMENT, 1), [], 'another offset')
      }),
    )
  })

  it('are lost with any bit of them, and no other is: the damage is reported if another frame follows', () => {
    const texts = ['one', 'two, a little longer', 'three']
    const whole = segmentOf(texts)
    const ends = endsOf(texts)
    for (let bit = 0; bit < whole.length * 8; bit++) {
      const bytes = Buffer.from(whole)
      bytes[bit >> 3]! ^= 1 << (bit & 7)
      const hit = ends.findIndex((end) => bit >> 3 < end)
      const { frames, damage, end } = scanFrames(bytes, SEGMENT)
      assert.deepEqual(
        frames.map(({ text }) => text),
        texts.filter((_, index) => index !== hit),
        `bit ${bit}`,
      )
      const isLast = hit === texts.length - 1
      assert.deepEqual(damage, isLast ? [] : [{ from: ends[hit - 1] ?? 0, to: ends[hit] }])
      assert.equal(end, isLast ? ends[hit - 1] : whole.length)
    }
  })

  it('are found after any damage, and every damaged part is reported', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(someText, fc.boolean()), { maxLength: 12 }), (parts) => {
        const texts = parts.map(([text]) => text)
        const bytes = segmentOf(texts)
        const ends = endsOf(texts)
        parts.forEach(([, isLost], index) => {
          if (isLost) bytes.fill(0xf5, ends[index - 1] ?? 0, ends[index])
        })
        const { frames, damage, end } = scanFrames(bytes, SEGMENT)
        assert.deepEqual(
          frames.map(({ text }) => text),
          parts.filter(([, isLost]) => !isLost).map(([text]) => text),
        )
        const holes = damage.reduce((sum, { from, to }) => sum + to - from, 0)
        const read = frames.reduce((sum, { text }) => sum + frameOf(text, 0, 0).length, 0)
        assert.equal(holes + read, end, 'each byte before the end is in a frame or in a hole')
      }),
    )
  })

  it('are not found in noise', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (noise) => {
        assert.deepEqual(textsIn(Buffer.from(noise)), [])
      }),
    )
  })

  it('may be empty, and empty bytes contain none', () => {
    assert.deepEqual(textsIn(segmentOf(['', '', 'x'])), ['', '', 'x'])
    assert.deepEqual(scanFrames(Buffer.alloc(0), SEGMENT), { frames: [], end: 0, damage: [] })
    assert.deepEqual(scanFrames(Buffer.alloc(4096), SEGMENT), { frames: [], end: 0, damage: [] })
  })

  it('are not searched repeatedly: a length that reaches beyond the end costs nothing', () => {
    // Marks with a length of almost everything that follows: each would be a checksum over all of it.
    const bytes = Buffer.alloc(1 << 20, Buffer.from([0xf5, 0x57, 0x52, 0x31, 0xff, 0xff, 0xff, 0x7f]))
    assert.deepEqual(textsIn(bytes), [])
  })
})
