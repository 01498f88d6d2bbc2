import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  box,
  boxIn,
  element,
  mp4File,
  oggPages,
  sealPages,
  webmFile,
  webmTrack,
  words,
  type PacketTrack,
} from '../support/audio-containers.ts'
import { billedMs, clip, flacFrameHeads, mpegFrames, packetTracks } from '../support/audio-forgery.ts'

const tracks = packetTracks()

describe('a WAV file', () => {
  const wav = clip('plain.wav')
  const format = 20
  const chunk = (id: string, content: Buffer): Buffer => {
    const head = Buffer.alloc(8)
    head.write(id, 'latin1')
    head.writeUInt32LE(content.length, 4)
    return Buffer.concat([head, content, Buffer.alloc(content.length % 2)])
  }
  const file = (...chunks: readonly Buffer[]): Buffer =>
    Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVE', 'latin1'), ...chunks])
  const formatChunk = (code: number, fields: Readonly<{ channels?: number; block: number; bits: number }>): Buffer => {
    const content = Buffer.alloc(16)
    content.writeUInt16LE(code, 0)
    content.writeUInt16LE(fields.channels ?? 1, 2)
    content.writeUInt32LE(8000, 4)
    content.writeUInt32LE(0xffffffff, 8)
    content.writeUInt16LE(fields.block, 12)
    content.writeUInt16LE(fields.bits, 14)
    return chunk('fmt ', content)
  }

  it('[M4] may have chunks of odd length, which are padded', async () => {
    const plain = formatChunk(1, { block: 1, bits: 8 })
    assert.equal(await billedMs(file(plain, chunk('LIST', Buffer.alloc(3)), chunk('data', Buffer.alloc(8000)))), 1000)
    assert.equal(await billedMs(file(chunk('odd ', Buffer.alloc(13)), plain, chunk('data', Buffer.alloc(4000)))), 500)
  })

  it('[M4] is refused if what counts depends on whether an odd chunk is padded', async () => {
    const unpadded = Buffer.concat([Buffer.from('LIST\x03\0\0\0abc', 'latin1'), chunk('data', Buffer.alloc(8000))])
    const hidden = file(formatChunk(1, { block: 1, bits: 8 }), unpadded, chunk('data', Buffer.alloc(2)))
    assert.equal(await billedMs(hidden), undefined)
  })

  it('[M4] costs all of its data chunks', async () => {
    const data = chunk('data', Buffer.alloc(8000))
    assert.equal(
      await billedMs(file(formatChunk(1, { block: 1, bits: 8 }), chunk('data', Buffer.alloc(8)), data)),
      1001,
    )
  })

  it('[M4] is refused with two formats, or a codec whose length cannot be counted', async () => {
    const plain = formatChunk(1, { block: 1, bits: 8 })
    const data = chunk('data', Buffer.alloc(8000))
    assert.equal(await billedMs(file(plain, formatChunk(1, { block: 8, bits: 64 }), data)), undefined)
    assert.equal(await billedMs(file(formatChunk(0x161, { block: 1, bits: 8 }), data)), undefined)
  })

  it('[M4] counts a byte for each sample of A-law and µ-law, whatever the bits say', async () => {
    for (const code of [6, 7]) {
      const data = chunk('data', Buffer.alloc(16_000))
      assert.equal(await billedMs(file(formatChunk(code, { block: 16, bits: 64 }), data)), 2000)
    }
  })

  it('[M4] has the larger length if its fields contradict each other', async () => {
    const forged = Buffer.from(wav)
    forged.writeUInt16LE(1000, format + 12)
    assert.equal(await billedMs(forged), 1700)
    forged.writeUInt16LE(1, format + 12)
    assert.equal(await billedMs(forged), 3400)
    const extensible = Buffer.from(clip('extensible.wav'))
    const at = extensible.indexOf('fmt ', 0, 'latin1') + 8
    // 24 bits, of which 8 are said to be in use.
    extensible.writeUInt16LE(8, at + 18)
    assert.equal(await billedMs(extensible), 2400)
  })

  it('[M4] with ADPCM counts blocks by their size or by what they claim, whichever is more', async () => {
    const adpcm = Buffer.from(clip('adpcm.wav'))
    const at = adpcm.indexOf('fmt ', 0, 'latin1') + 8
    const samples = adpcm.readUInt16LE(at + 18)
    const before = (await billedMs(adpcm)) ?? 0
    adpcm.writeUInt16LE(1, at + 18)
    assert.ok(Math.abs(((await billedMs(adpcm)) ?? 0) - before) <= 1)
    adpcm.writeUInt16LE(samples * 2, at + 18)
    assert.ok(((await billedMs(adpcm)) ?? 0) > before * 1.9)
  })

  it('[M4] with MP3 inside is counted by its frames', async () => {
    const mp3 = file(formatChunk(0x55, { block: 1, bits: 0 }), chunk('data', clip('bare.mp3')))
    assert.equal(await billedMs(mp3), await billedMs(clip('bare.mp3')))
  })
})

describe('an MP3 file', () => {
  it('[M4] costs frames of another sample rate, too', async () => {
    const frames = mpegFrames(clip('bare.mp3'))
    const whole = (await billedMs(clip('bare.mp3'))) ?? 0
    // 24 kHz instead of 22.05 kHz in the first two.
    const [first = Buffer.alloc(0), ...others] = frames
    const other = Buffer.alloc(Math.floor((72_000 * 32) / 24_000))
    first.copy(other)
    other[2] = 0x44
    const mixed = Buffer.concat([other, other, ...others])
    assert.ok(((await billedMs(mixed)) ?? 0) >= whole, String(await billedMs(mixed)))
  })

  it('[M4] is refused if most of it is in a free format', async () => {
    const [first = Buffer.alloc(0), ...others] = mpegFrames(clip('bare.mp3'))
    const free = others.slice(2).map((frame) => {
      const copy = Buffer.from(frame)
      copy[2] = (copy[2] ?? 0) & 0x0f
      return copy
    })
    assert.equal(await billedMs(Buffer.concat([first, ...others.slice(0, 2), ...free])), undefined)
  })
})

describe('an MP3 file with a tag', () => {
  it('[M4] is refused if decoders do not take it for a tag', async () => {
    const sound = clip('bare.mp3')
    const tag = Buffer.from('ID3\x04\x00\x00\x00\x00\x00\x00', 'latin1')
    const tagged = Buffer.concat([tag, sound])
    assert.equal(await billedMs(tagged), await billedMs(sound))
    // With the highest bit, which a size never has, it would hide most of the sound.
    tagged.set([0, 0x80, 0x30, 0], 6)
    assert.equal(await billedMs(tagged), undefined)
  })
})

describe('a FLAC file', () => {
  it('[M4] is counted by its frames, whatever their numbers and checksums', async () => {
    const forged = Buffer.from(clip('plain.flac'))
    const heads = flacFrameHeads(forged)
    assert.ok(heads.length >= 3)
    for (const at of heads) {
      const bytes = (forged[at + 2] ?? 0) >>> 4 === 7 ? 7 : (forged[at + 2] ?? 0) >>> 4 === 6 ? 6 : 5
      forged[at + 4] = 0
      forged[at + bytes] = checksum(forged.subarray(at, at + bytes))
    }
    assert.equal(await billedMs(forged), 1700)
  })
})

describe('an Ogg file', () => {
  it('[M4] costs pages inside a page that decoders drop', async () => {
    const opus = clip('opus.ogg')
    const [first, second, ...others] = oggPages(opus)
    assert.ok(first && second && others[0])
    const sound = opus.subarray(others[0].start)
    // One packet, of as many bytes as the sound has, on a page with a wrong checksum.
    const segments = Buffer.alloc(Math.ceil(sound.length / 255), 255)
    const wrapper = Buffer.concat([Buffer.from(opus.subarray(others[0].start, others[0].start + 27)), segments])
    wrapper[26] = segments.length
    wrapper.writeUInt32LE(0, 22)
    const padded = Buffer.concat([sound, Buffer.alloc(segments.length * 255 - sound.length)])
    const billed = await billedMs(Buffer.concat([opus.subarray(0, second.end), wrapper, padded]))
    assert.ok((billed ?? 0) >= 1700 - 200, String(billed))
  })

  it('[M4] needs no flag at its beginning, and is refused if pages in the middle have one', async () => {
    for (const name of ['opus.ogg', 'vorbis.ogg']) {
      const flagged = (flag: number): Buffer => {
        const forged = Buffer.from(clip(name))
        for (const { start } of oggPages(forged)) forged[start + 5] = flag
        sealPages(forged)
        return forged
      }
      assert.equal(await billedMs(flagged(0)), 1700, name)
      assert.equal(await billedMs(flagged(2)), undefined, name)
    }
  })

  it('[M4] is refused if it has sound that cannot be counted', async () => {
    const forged = Buffer.from(clip('opus.ogg'))
    forged.write('Speex   ', oggPages(forged)[0]?.content ?? 0, 'latin1')
    sealPages(forged)
    assert.equal(await billedMs(Buffer.concat([clip('vorbis.ogg'), forged])), undefined)
  })

  it('[M4] loses no more than the padding of an encoder', async () => {
    const forged = Buffer.from(clip('opus.ogg'))
    forged.writeUInt16LE(65_535, forged.indexOf('OpusHead') + 10)
    for (const { start } of oggPages(forged)) forged.writeBigInt64LE(1n, start + 6)
    sealPages(forged)
    assert.equal(await billedMs(forged), 1720 - 200)
  })
})

describe('an MP4 file', () => {
  const { aac, opus, pcm, flac, mpeg } = tracks

  it('[M4] is as long as its packets, in every codec and with every kind of index', async () => {
    const lengths: readonly [PacketTrack, number][] = [
      [aac, 1792],
      [opus, 1720],
      [pcm, 1700],
      [flac, 1700],
      [mpeg, 1776],
    ]
    for (const [track, ms] of lengths) {
      for (const perChunk of [1, 7, 1000]) {
        assert.equal(await billedMs(mp4File([track], { perChunk })), ms, track.entryType)
        assert.equal(await billedMs(mp4File([track], { perChunk, isCompact: true })), ms, `${track.entryType}, compact`)
      }
    }
  })

  it('[M4] has an edit list that cuts off padding, but no sound', async () => {
    const edited = (movieTicks: number): Promise<number | undefined> =>
      billedMs(mp4File([aac], { edits: [{ movieTicks, start: 1024 }] }))
    assert.equal(await edited(1700), 1700)
    assert.equal(await edited(1), 1592)
    assert.equal(await edited(9000), 1792)
    assert.equal(await edited(0), 1792)
  })

  it('[M4] does not cost the pauses in its edit list', async () => {
    const edits = [
      { movieTicks: 60_000, start: -1 },
      { movieTicks: 1700, start: 1024 },
    ]
    assert.equal(await billedMs(mp4File([aac], { edits })), 1700)
  })

  it('[M4] is refused if its edit list plays something twice', async () => {
    const once = [
      { movieTicks: 500, start: 0 },
      { movieTicks: 500, start: 8000 },
    ]
    assert.equal(await billedMs(mp4File([aac], { edits: once })), 1592)
    const twice = [
      { movieTicks: 1000, start: 0 },
      { movieTicks: 1000, start: 8000 },
    ]
    assert.equal(await billedMs(mp4File([aac], { edits: twice })), undefined)
  })

  it('[M4] costs the longest of its tracks, also one that is not marked as sound', async () => {
    const short = { ...aac, packets: aac.packets.slice(0, 2) }
    assert.equal(await billedMs(mp4File([short, aac])), 1792)
    assert.equal(await billedMs(mp4File([short, aac], { handler: 'vide' })), 1792)
  })

  it('[M4] is refused if one of its sound tracks cannot be counted', async () => {
    assert.equal(await billedMs(mp4File([aac, { ...aac, entryType: 'ac-3' }])), undefined)
    assert.equal(await billedMs(mp4File([{ ...pcm, bits: 64 }])), undefined)
    // Phones record this beside AAC.
    assert.equal(await billedMs(mp4File([aac, { ...aac, entryType: 'apac' }])), 1792)
  })

  it('[M4] is refused with two indexes or two descriptions of one track', async () => {
    const sizes = box('stsz', words(0, 4, 1))
    assert.equal(await billedMs(mp4File([aac], { trackBoxes: [sizes] })), undefined)
    const fast = boxIn(mp4File([aac]), 'stsd')
    assert.equal(await billedMs(mp4File([aac], { trackBoxes: [fast] })), undefined)
  })

  it('[M4] is refused if an index is not complete', async () => {
    const file = mp4File([aac, { ...aac, packets: aac.packets.slice(0, 2) }])
    file.write('free', file.indexOf('stsc', 0, 'latin1'), 'latin1')
    assert.equal(await billedMs(file), undefined)
  })

  it('[M4] counts several frames of AAC in one packet by their bytes', async () => {
    const merged = { ...aac, packets: [Buffer.concat(aac.packets)] }
    const bytes = merged.packets[0]?.length ?? 0
    assert.equal(await billedMs(mp4File([merged])), Math.ceil(bytes / 768) * 64)
  })

  it('[M4] counts several frames of MP3 in one packet', async () => {
    assert.equal(await billedMs(mp4File([{ ...mpeg, packets: [Buffer.concat(mpeg.packets)] }])), 1776)
    assert.equal(await billedMs(mp4File([{ ...mpeg, packets: [Buffer.alloc(1), ...mpeg.packets] }])), undefined)
  })

  it('[M4] has boxes that end where their container ends', async () => {
    const file = mp4File([aac])
    const second = boxIn(mp4File([aac]), 'trak')
    const at = file.indexOf('moov', 0, 'latin1') - 4
    // A box in the first index claims everything up to the end of the file, and so hides the second index.
    const small = mp4File([{ ...aac, packets: aac.packets.slice(0, 2) }])
    const hiding = boxIn(small, 'trak')
    const free = Buffer.from('\x7f\xff\xff\xfffree', 'latin1')
    const trak = box('trak', hiding.subarray(8), free)
    const movie = box('moov', boxIn(file, 'mvhd'), trak, second)
    assert.equal(await billedMs(Buffer.concat([file.subarray(0, at), movie])), 1792)
  })

  it('lets others run while it reads an index that repeats one place', async () => {
    const packets = 50_000
    const index = mp4File([{ ...opus, packets: [opus.packets[0] ?? Buffer.alloc(0)] }])
    const stco = boxIn(index, 'stco')
    const at = stco.readUInt32BE(12)
    const repeated = box('stco', words(0, packets), Buffer.alloc(packets * 4, words(at)))
    const sizes = box('stsz', words(0, opus.packets[0]?.length ?? 0, packets))
    const runs = box('stsc', words(0, 1, 1, 1, 1))
    const table = box('stbl', boxIn(index, 'stsd'), runs, sizes, repeated)
    const media = box('mdia', boxIn(index, 'mdhd'), boxIn(index, 'hdlr'), box('minf', table))
    const moov = box('moov', boxIn(index, 'mvhd'), box('trak', boxIn(index, 'tkhd'), media))
    const file = Buffer.concat([index.subarray(0, index.indexOf('moov', 0, 'latin1') - 4), moov])
    let turns = 0
    const count = (): void => {
      turns++
      timer = setImmediate(count)
    }
    let timer = setImmediate(count)
    const billed = await billedMs(file)
    clearImmediate(timer)
    assert.equal(billed, packets * 10)
    assert.ok(turns >= packets / 5000, String(turns))
  })
})

describe('a WebM file', () => {
  const { aac, opus, vorbis, pcm, flac, mpeg } = tracks

  it('[M4] is as long as its packets, in every codec and with every kind of lacing', async () => {
    const lengths: readonly [PacketTrack, number][] = [
      [aac, 1792],
      [opus, 1720],
      [pcm, 1700],
      [flac, 1700],
      [mpeg, 1776],
      [vorbis, 1712],
    ]
    for (const [track, ms] of lengths) {
      assert.equal(await billedMs(webmFile(track)), ms, track.codec)
      for (const lacing of [1, 2, 3] as const) {
        assert.equal(await billedMs(webmFile(track, { lacing })), ms, `${track.codec}, lacing ${lacing}`)
      }
    }
  })

  it('[M4] costs clusters behind an element that is larger than its cluster', async () => {
    // It ends inside the file, so only its cluster shows that its size is wrong.
    const empty = Buffer.from([0xec, 0x01, 0, 0, 0, 0, 0, 0x0f, 0xa0])
    const decoy = element(0x1f43b675, empty)
    assert.equal(await billedMs(webmFile(opus, { segmentElements: [decoy] })), 1720)
  })

  it('[M4] ignores what is said about a track outside its description', async () => {
    // 96 kHz instead of 16 kHz.
    const fast = element(0x63a2, Buffer.from([0x10, 0x08]))
    assert.equal(await billedMs(webmFile(aac, { segmentElements: [fast] })), 1792)
    assert.equal(await billedMs(webmFile(aac, { trackElements: [fast] })), undefined)
  })

  it('[M4] is refused with two tracks of one number, or packets that are encoded once more', async () => {
    const tracksAgain = element(0x1654ae6b, webmTrack({ ...pcm, sampleRate: 96_000 }))
    assert.equal(await billedMs(webmFile(pcm, { segmentElements: [tracksAgain] })), undefined)
    assert.equal(await billedMs(webmFile(opus, { trackElements: [element(0x6d80)] })), undefined)
  })

  it('[M4] is refused if a sound track cannot be counted, or its tracks come last', async () => {
    assert.equal(await billedMs(webmFile({ ...opus, codec: 'A_AC3' })), undefined)
    assert.equal(await billedMs(webmFile({ ...pcm, bits: 64 })), undefined)
    const file = webmFile(opus)
    const from = file.indexOf(Buffer.from('1654ae6b', 'hex'))
    const to = file.indexOf(Buffer.from('1f43b675', 'hex'))
    const last = Buffer.concat([file.subarray(0, from), file.subarray(to), file.subarray(from, to)])
    assert.equal(await billedMs(last), undefined)
  })
})

function checksum(bytes: Buffer): number {
  let sum = 0
  for (const byte of bytes) {
    sum ^= byte
    for (let bit = 0; bit < 8; bit++) sum = sum & 0x80 ? ((sum << 1) ^ 7) & 0xff : (sum << 1) & 0xff
  }
  return sum
}
