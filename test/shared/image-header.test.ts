import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { decodeBase64, decodedLength, decodedSlice, isBase64 } from '../../src/shared/base64.ts'
import { imageProblem, readImageHeader } from '../../src/shared/image-header.ts'
import { gif, jpeg, png, webp } from '../support/image-samples.ts'

type ReadBytes = Parameters<typeof readImageHeader>[0]

const reader =
  (bytes: Buffer): ReadBytes =>
  (offset, length) =>
    bytes.subarray(offset, offset + length)

/** The bit follows the 14 bits of the height. */
function transparent(lossless: Buffer): Buffer {
  lossless[24]! |= 0x10
  return lossless
}

describe('the header of an image', () => {
  const size = { width: 640, height: 480 }
  const samples: readonly [name: string, bytes: Buffer, type: string][] = [
    ['png', png(size), 'image/png'],
    ['jpeg', jpeg(size), 'image/jpeg'],
    ['jpeg after half a megabyte of metadata', jpeg({ ...size, more: 500_000 }), 'image/jpeg'],
    ['gif', gif(size), 'image/gif'],
    ['gif whose picture is larger than its screen', gif({ ...size, screen: { width: 1, height: 1 } }), 'image/gif'],
    ['gif whose screen is larger', gif({ screen: size }), 'image/gif'],
    ['lossy webp', webp(size), 'image/webp'],
    ['lossless webp', webp(size, 'VP8L'), 'image/webp'],
    ['lossless webp with transparency', transparent(webp(size, 'VP8L')), 'image/webp'],
    ['extended webp', webp(size, 'VP8X'), 'image/webp'],
  ]
  for (const [name, bytes, type] of samples) {
    it(`[C7] gives the type and the size: ${name}`, () => {
      assert.deepEqual(readImageHeader(reader(bytes)), { type, ...size })
      const text = bytes.toString('base64')
      const inText: ReadBytes = (offset, length) => decodedSlice(text, offset, length)
      assert.deepEqual(readImageHeader(inText), { type, ...size }, 'the same from base64')
    })
  }

  it('is found in a few bytes of a large file', () => {
    const bytes = jpeg({ more: 1_000_000 })
    let read = 0
    readImageHeader((offset, length) => {
      read += length
      return bytes.subarray(offset, offset + length)
    })
    assert.ok(read < 500, String(read))
  })

  it('is undefined when the file is truncated or has no size', () => {
    for (const bytes of [
      png({ width: 0 }),
      gif({ height: 0 }),
      jpeg({ height: 0 }),
      Buffer.alloc(0),
      Buffer.alloc(99),
    ]) {
      assert.equal(readImageHeader(reader(bytes)), undefined)
    }
    for (const bytes of samples.map(([, it]) => it)) {
      assert.equal(readImageHeader(reader(bytes.subarray(0, 20))), undefined)
    }
    const endless = Buffer.alloc(100_000, 0xff)
    endless[1] = 0xd8
    assert.equal(readImageHeader(reader(endless)), undefined, 'nothing but fill bytes')
    const noFrame = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xda, 0, 2]), Buffer.alloc(30)])
    assert.equal(readImageHeader(reader(noFrame)), undefined, 'data before its size')
  })

  it('never throws, whatever the bytes', () => {
    const starts = samples.map(([, bytes]) => bytes.subarray(0, 16))
    fc.assert(
      fc.property(fc.constantFrom(Buffer.alloc(0), ...starts), fc.uint8Array({ maxLength: 200 }), (start, rest) => {
        readImageHeader(reader(Buffer.concat([start, rest])))
      }),
    )
  })

  it('decides together with the byte length whether an image is allowed', () => {
    const limits = { maxBytes: 1000, maxSidePx: 100 }
    const problem = (bytes: Buffer, length = bytes.length): string | undefined =>
      imageProblem(reader(bytes), length, limits)
    assert.equal(problem(png({ width: 100, height: 100 })), undefined)
    assert.match(problem(png({ width: 101 })) ?? '', /at most 100 pixels a side, not 101 x 1/)
    assert.match(problem(png({ height: 101 })) ?? '', /not 1 x 101/)
    assert.equal(problem(png(), 1000), undefined)
    assert.match(problem(png(), 1001) ?? '', /at most 1000 bytes/)
    assert.match(problem(Buffer.alloc(50)) ?? '', /a png, jpeg, webp or gif/)
  })
})

describe('a jpeg of many segments', () => {
  it('is read up to its 1000th segment', () => {
    const empty = Buffer.from([0xff, 0xe0, 0, 2])
    const sample = jpeg({ width: 3 })
    for (const [segments, isRead] of [
      [900, true],
      [1000, false],
    ] as const) {
      const bytes = Buffer.concat([
        sample.subarray(0, 2),
        ...Array.from({ length: segments }, () => empty),
        sample.subarray(2),
      ])
      assert.equal(readImageHeader(reader(bytes))?.width, isRead ? 3 : undefined)
    }
  })
})

describe('base64', () => {
  it('decodes piece by piece to the same bytes', () => {
    for (const length of [1, 2, 3, 49_151, 49_152, 49_153, 98_304, 200_000]) {
      const bytes = jpeg({ more: length }).subarray(0, length)
      const text = bytes.toString('base64')
      for (const given of [text, Buffer.from(text)]) {
        assert.equal(decodedLength(given), length)
        assert.ok(isBase64(given))
        assert.deepEqual(decodeBase64(given), bytes)
      }
    }
  })

  it('is refused wherever the mistake is', () => {
    const good = png({ more: 150_000 }).toString('base64')
    for (const sign of ['-', '_', ' ', '\n', '*', '=', '"', '\0', 'é', '€']) {
      for (const at of [0, 1, 65_535, 65_536, 100_001, good.length - 5]) {
        const bad = good.slice(0, at) + sign + good.slice(at + 1)
        assert.equal(isBase64(bad), false, `${JSON.stringify(sign)} at ${at}`)
        assert.equal(decodeBase64(bad), undefined, `${JSON.stringify(sign)} at ${at}`)
      }
    }
    for (const bad of ['', 'A', 'AA', 'AAA', '=', '====', 'A===', 'AAAAA']) assert.equal(isBase64(bad), false, bad)
  })

  it('decodes any slice of its bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 100 }), fc.nat(110), fc.nat(40), (array, offset, length) => {
        const bytes = Buffer.from(array)
        const slice = decodedSlice(bytes.toString('base64'), offset, length)
        assert.deepEqual(slice, Buffer.from(bytes.subarray(offset, offset + length)))
      }),
    )
  })
})
