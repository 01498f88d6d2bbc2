import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import type { AudioFormat } from '../../src/inference/audio/measure/audio-format.ts'
import { untrimmed } from '../../src/inference/audio/measure/untrimmed.ts'
import { box, oggPages, sizedElement, words } from '../support/audio-containers.ts'

const PIECE_BYTES = 16_384

/** What a decoder gets of a file, in pieces. */
function piecesOf(extension: AudioFormat['extension'], file: Buffer, start = 0): Promise<Buffer[]> {
  const format: AudioFormat = { extension, contentType: '', decoder: 'wav', start }
  const read = async (position: number, bytes: number) => Buffer.from(file.subarray(position, position + bytes))
  return Array.fromAsync(untrimmed(format, file.length, read))
}

async function decoded(extension: AudioFormat['extension'], file: Buffer): Promise<Buffer> {
  return Buffer.concat(await piecesOf(extension, file))
}

function counting(bytes: number): Buffer {
  return Buffer.from(Uint8Array.from({ length: bytes }, (_, index) => index % 251))
}

describe('a file that is read in pieces', () => {
  it('keeps every byte after its tags, in order', async () => {
    const sizes = async (bytes: number, start: number): Promise<number[]> => {
      const file = counting(bytes)
      const pieces = await piecesOf('wav', file, start)
      assert.deepEqual(Buffer.concat(pieces), file.subarray(start))
      return pieces.map(({ length }) => length)
    }
    assert.deepEqual(await sizes(0, 0), [])
    assert.deepEqual(await sizes(1, 0), [1])
    assert.deepEqual(await sizes(PIECE_BYTES, 0), [PIECE_BYTES])
    assert.deepEqual(await sizes(PIECE_BYTES + 1, 0), [PIECE_BYTES, 1])
    assert.deepEqual(await sizes(PIECE_BYTES + 11, 10), [PIECE_BYTES, 1])
    assert.deepEqual(await sizes(10, 10), [])
  })
})

/** Of Opus, in samples: what a header says, and what a decoder is given. */
const preSkips = [
  [0, 1],
  [1, 1],
  [2, 2],
  [312, 312],
  [3839, 3839],
  [3840, 3840],
  [3841, 3840],
  [65_535, 3840],
] as const

describe('the index of an MP4 file', () => {
  const start = box('ftyp', Buffer.from('M4A '))
  const sound = box('mdat', counting(40_000))
  const entries = (index: Buffer, name: string, bytes: 4 | 8): number[] => {
    const at = index.indexOf(name) + 4
    return Array.from({ length: index.readUInt32BE(at + 4) }, (_, entry) =>
      bytes === 4 ? index.readUInt32BE(at + 8 + entry * 4) : Number(index.readBigUInt64BE(at + 8 + entry * 8)),
    )
  }

  it('is moved to the front with its positions; everything else stays in place', async () => {
    const index = box(
      'moov',
      box('stco', words(0, 3, 8, 1000, 0xffff_fff0)),
      box('co64', words(0, 2, 0, 8, 1, 2000)),
      box('stco', words(0, 1, 77)),
    )
    const end = box('free', counting(100))
    const pieces = await piecesOf('m4a', Buffer.concat([start, sound, index, end]))
    const [first = Buffer.alloc(0), ...others] = pieces
    assert.equal(first.toString('latin1', 4, 8), 'moov')
    assert.equal(first.length, index.length)
    assert.deepEqual(entries(first, 'stco', 4), [8 + index.length, 1000 + index.length, index.length - 16])
    assert.deepEqual(entries(first, 'co64', 8), [8 + index.length, 2 ** 32 + 2000 + index.length])
    assert.deepEqual(entries(first.subarray(first.lastIndexOf('stco')), 'stco', 4), [77 + index.length])
    const rest = Buffer.concat(others)
    const place = start.length + sound.length
    assert.deepEqual(rest.subarray(0, place), Buffer.concat([start, sound]))
    assert.equal(rest.toString('latin1', place + 4, place + 8), 'free')
    assert.equal(rest.readUInt32BE(place), index.length)
    assert.deepEqual(rest.subarray(place + index.length), end)
  })

  it('stays in place if no sound precedes it', async () => {
    const index = box('moov', box('stco', words(0, 2, 8, 1000)))
    for (const file of [
      Buffer.concat([start, index, sound]),
      Buffer.concat([start, index]),
      index,
      Buffer.concat([index, sound, sound]),
      box('moov'),
    ]) {
      assert.deepEqual(await decoded('m4a', file), file)
    }
    for (const file of [
      Buffer.concat([sound, index]),
      Buffer.concat([sound, index, sound]),
      Buffer.concat([start, sound, sound, index]),
    ]) {
      const [first] = await piecesOf('m4a', file)
      assert.equal(first?.toString('latin1', 4, 8), 'moov')
    }
  })

  it('has no edits and no tags', async () => {
    const marks = ['edts', 'ilst', 'edts', 'ilst'].map((name) => box(name, counting(9)))
    const file = box('moov', ...marks, box('elst', words(1)))
    const frees = ['free', 'free', 'free', 'free'].map((name) => box(name, counting(9)))
    assert.deepEqual(await decoded('m4a', file), box('moov', ...frees, box('elst', words(1))))
  })

  it('lets Opus omit no more than an encoder adds', async () => {
    const opus = (samples: number): Buffer =>
      box('moov', box('dOps', Buffer.from([0, 1, samples >> 8, samples & 0xff])))
    for (const [said, given] of preSkips) assert.deepEqual(await decoded('m4a', opus(said)), opus(given))
  })

  it('may be truncated anywhere', async () => {
    for (const table of ['stco', 'co64', 'dOps']) {
      const whole = box(table, words(0, 0xffff_ffff, 5, 6, 7, 8))
      for (let bytes = 8; bytes <= whole.length; bytes++) {
        const index = box('moov', whole.subarray(0, bytes))
        const [first] = await piecesOf('m4a', Buffer.concat([sound, index]))
        assert.equal(first?.length, index.length)
        // Only whole entries are moved.
        const moved = table === 'dOps' ? 0 : Math.max(0, Math.floor((bytes - 16) / (table === 'stco' ? 4 : 8)))
        const changed = [5, 6, 7, 8].filter((value, entry) => {
          const at = 8 + 16 + entry * 4
          return at + 4 <= index.length && first.readUInt32BE(at) !== value
        })
        assert.equal(changed.length, moved, `${table}, ${bytes} bytes`)
      }
    }
  })

  it('is found behind boxes of any size', async () => {
    const index = box('moov', box('stco', words(0, 1, 8)))
    const large = Buffer.concat([words(1), Buffer.from('free'), words(0, 16 + 30), counting(30)])
    for (const file of [Buffer.concat([large, index]), Buffer.concat([box('free'), box('free'), index])]) {
      assert.deepEqual(await decoded('m4a', file), file)
    }
    // A size of 0 means the rest of the file.
    const last = Buffer.from(index)
    last.writeUInt32BE(0)
    assert.deepEqual(await decoded('m4a', Buffer.concat([start, last])), Buffer.concat([start, last]))
  })

  it('is not found behind a box whose size is wrong, in a file that is too short, or in one without it', async () => {
    const index = box('moov', box('stco', words(0, 1, 8)))
    const sized = (size: number): Buffer => Buffer.concat([words(size), Buffer.from('free')])
    const far = Buffer.concat([words(1), Buffer.from('free'), words(0, 7), counting(30)])
    for (const file of [
      Buffer.alloc(0),
      index.subarray(0, 7),
      sound,
      ...[2, 7].map((size) => Buffer.concat([sized(size), index])),
      Buffer.concat([far, index]),
      Buffer.concat([sized(0), index]),
      Buffer.concat([sized(1_000_000), index]),
      // Not long enough for a large size.
      Buffer.concat([words(1), Buffer.from('moov'), words(0)]),
    ]) {
      await assert.rejects(decoded('m4a', file), /no index/, file.toString('latin1', 0, 40))
    }
  })

  it('is searched in 10,000 boxes', async () => {
    const behind = (boxes: number): Buffer =>
      Buffer.concat([...Array.from({ length: boxes }, () => box('free')), box('moov')])
    assert.deepEqual(await decoded('m4a', behind(9999)), behind(9999))
    await assert.rejects(decoded('m4a', behind(10_000)), /no index/)
  })

  it('has at most 16 MiB', async () => {
    const sized = (bytes: number): Buffer => box('moov', Buffer.alloc(bytes - 8))
    assert.equal((await decoded('m4a', sized(2 ** 24))).length, 2 ** 24)
    await assert.rejects(decoded('m4a', sized(2 ** 24 + 1)), /no index/)
  })
})

/** An Ogg page whose checksum does not matter here. */
function page(content: Buffer, { flags = 0, granule = 5n, sequence = 9 } = {}): Buffer {
  const segments = [...Array.from({ length: Math.floor(content.length / 255) }, () => 255), content.length % 255]
  const head = Buffer.alloc(27)
  head.write('OggS')
  head[5] = flags
  head.writeBigUInt64LE(granule, 6)
  head.writeUInt32LE(1, 14)
  head.writeUInt32LE(sequence, 18)
  head[26] = segments.length
  return Buffer.concat([head, Buffer.from(segments), content])
}

describe('the pages of an Ogg file', () => {
  const MOST = 2n ** 25n
  const START = 2
  const plain = (bytes: number): Buffer => Buffer.alloc(bytes, 1)

  it('follow each other and say more than they have, from each start on', async () => {
    const contents = [10, 300, 70, 20, 5]
    const flags = [START, 0, 4, START | 1, 4]
    const file = Buffer.concat(contents.map((bytes, index) => page(plain(bytes), { flags: flags[index] ?? 0 })))
    const expected = [0, 1, 2, 0, 1].map((count, index) =>
      page(plain(contents[index] ?? 0), {
        flags: flags[index] ?? 0,
        granule: BigInt(count) * MOST,
        sequence: count,
      }),
    )
    assert.deepEqual(await decoded('ogg', file), Buffer.concat(expected))
  })

  it('are the same wherever the file is split into pieces', async () => {
    const lengths = fc.array(fc.integer({ min: 0, max: 60_000 }), { minLength: 1, maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(lengths, async (all) => {
        const file = Buffer.concat(all.map((bytes, index) => page(plain(bytes), { flags: index === 0 ? START : 0 })))
        const pages = oggPages(await decoded('ogg', file))
        assert.equal(pages.length, all.length)
        const given = await decoded('ogg', file)
        for (const [index, { start }] of pages.entries()) {
          assert.equal(given.readUInt32LE(start + 18), index)
          assert.equal(given.readBigUInt64LE(start + 6), BigInt(index) * MOST)
        }
      }),
      { numRuns: 30, examples: [[[PIECE_BYTES - 28 - 64, 10]], [[PIECE_BYTES - 28 - 65, 10]], [[60_000, 60_000]]] },
    )
  })

  it('let Opus omit no more than an encoder adds', async () => {
    const head = (samples: number): Buffer => {
      const content = Buffer.from('OpusHead\x01\x01\0\0rest')
      content.writeUInt16LE(samples, 10)
      return page(content, { flags: START, granule: 0n, sequence: 0 })
    }
    for (const [said, given] of preSkips) assert.deepEqual(await decoded('ogg', head(said)), head(given))
    // A header that ends before the number.
    for (const bytes of [8, 9, 10, 11]) {
      const short = page(Buffer.from('OpusHead\x01\x01\0').subarray(0, bytes), {
        flags: START,
        granule: 0n,
        sequence: 0,
      })
      assert.deepEqual(await decoded('ogg', short), short)
    }
    const other = page(Buffer.from('opushead\x01\x01\0\0'), { flags: START, granule: 0n, sequence: 0 })
    assert.deepEqual(await decoded('ogg', other), other)
  })

  it('may have other bytes between them, and a missing end', async () => {
    const first = page(plain(40), { flags: START, granule: 0n, sequence: 0 })
    const junk = Buffer.from('Ogg? Ogg!')
    const file = Buffer.concat([junk, first, junk, page(plain(500)).subarray(0, -1)])
    assert.deepEqual(await decoded('ogg', file), file)
  })

  it('are required', async () => {
    const most = 27 + 255 + 255 * 255
    // Nothing is given to a decoder until a page is complete, and no page is longer than this.
    const kept = Buffer.alloc(Math.floor((most + PIECE_BYTES) / PIECE_BYTES) * PIECE_BYTES)
    assert.equal((await decoded('ogg', kept)).length, kept.length)
    await assert.rejects(decoded('ogg', Buffer.concat([kept, Buffer.alloc(PIECE_BYTES)])), /no pages/)
    const longest = Buffer.concat([Buffer.alloc(PIECE_BYTES - 1), page(plain(255 * 255 - 1), { flags: START })])
    assert.equal((await decoded('ogg', longest)).length, longest.length)
  })
})

describe('the first frame of an MP3 file', () => {
  const parts: readonly [flag: number, bytes: number][] = [
    [1, 4],
    [2, 4],
    [4, 100],
    [8, 4],
  ]
  function frame(tag: string, at: number, flags: number, padding: number, bytes = 600): Buffer {
    const file = Buffer.alloc(bytes, 0x11)
    file.write(tag, at)
    file.writeUInt32BE(flags, at + 4)
    const encoder = parts.reduce((sum, [flag, size]) => sum + (flags & flag ? size : 0), at + 8)
    file.writeUIntBE(padding, encoder + 21, 3)
    return file
  }

  it('keeps the padding of usual encoders, and no more', async () => {
    const tagged = (delay: number, padding: number): Buffer => frame('Info', 21, 15, delay * 4096 + padding)
    for (const [delay, padding] of [
      [576, 1000],
      [0, 4095],
      [4095, 513],
      [513, 4095],
    ] as const) {
      assert.deepEqual(await decoded('mp3', tagged(delay, padding)), tagged(delay, padding))
    }
    for (const [delay, padding] of [
      [4095, 514],
      [514, 4095],
      [4095, 4095],
    ] as const) {
      assert.deepEqual(await decoded('mp3', tagged(delay, padding)), tagged(0, 0))
    }
  })

  it('has its tag within 36 bytes, with any of its parts', async () => {
    for (const tag of ['Xing', 'Info']) {
      for (let flags = 0; flags < 16; flags++) {
        for (const at of [0, 1, 13, 21, 36]) {
          assert.deepEqual(await decoded('mp3', frame(tag, at, flags, 0xffffff)), frame(tag, at, flags, 0))
        }
        const late = frame(tag, 37, flags, 0xffffff)
        assert.deepEqual(await decoded('mp3', late), late)
      }
    }
  })

  it('may end in its tag', async () => {
    for (const bytes of [0, 40, 28 + 23]) {
      const short = frame('Xing', 20, 0, 0xffffff).subarray(0, bytes)
      assert.deepEqual(await decoded('mp3', short), short)
    }
    const whole = frame('Xing', 20, 0, 0xffffff).subarray(0, 28 + 24)
    assert.deepEqual(await decoded('mp3', whole), frame('Xing', 20, 0, 0).subarray(0, 28 + 24))
  })

  it('is the only one with a tag', async () => {
    const file = Buffer.concat([Buffer.alloc(PIECE_BYTES, 0x11), frame('Xing', 20, 0, 0xffffff)])
    assert.deepEqual(await decoded('mp3', file), file)
  })
})

describe('a Matroska file', () => {
  const codec = sizedElement(0x86, 1, Buffer.from('A_OPUS'))
  const discard = (id: number): Buffer => sizedElement(id, 1, Buffer.alloc(4, 9))

  it('of Opus discards nothing', async () => {
    const file = (id: number): Buffer => Buffer.concat([codec, discard(id), counting(20), discard(id), discard(id)])
    assert.deepEqual(await decoded('webm', file(0x75a2)), file(0x75a3))
    // In two pieces, and at their ends.
    for (let before = 0; before <= 3; before++) {
      const split = (id: number): Buffer =>
        Buffer.concat([codec, Buffer.alloc(PIECE_BYTES - codec.length - before), discard(id)])
      assert.deepEqual(await decoded('webm', split(0x75a2)), split(0x75a3))
    }
    const other = Buffer.concat([codec, Buffer.alloc(PIECE_BYTES - codec.length, 0x74), Buffer.from([0xa2, 0x75])])
    assert.deepEqual(await decoded('webm', other), other)
  })

  it('of Opus omits no more at its start than an encoder adds', async () => {
    const file = (samples: number): Buffer => {
      const head = Buffer.from('OpusHead\x01\x01\0\0')
      head.writeUInt16LE(samples, 10)
      return Buffer.concat([codec, head])
    }
    for (const [said, given] of preSkips) assert.deepEqual(await decoded('webm', file(said)), file(given))
  })

  it('of another codec is unchanged', async () => {
    const others = [discard(0x75a2), Buffer.from('OpusHead\x01\x01\0\0'), Buffer.alloc(PIECE_BYTES), discard(0x75a2)]
    const file = Buffer.concat([sizedElement(0x86, 1, Buffer.from('A_FLAC')), ...others, codec, discard(0x75a2)])
    assert.deepEqual(await decoded('webm', file), file)
  })
})
