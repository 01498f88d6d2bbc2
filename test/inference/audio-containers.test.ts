import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { mp4File, oggPages, sealPages, sizedElement, webmFile } from '../support/audio-containers.ts'
import { billedMs, clip, mpegFrames, packetTracks } from '../support/audio-forgery.ts'

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

  it('[M4] is not measured if decoders do not recognise its tag', async () => {
    const sound = clip('bare.mp3')
    const tag = Buffer.from('ID3\x04\x00\x00\x00\x00\x00\x00', 'latin1')
    const tagged = Buffer.concat([tag, sound])
    assert.equal(await billedMs(tagged), await billedMs(sound))
    // With the highest bit, which a size never has, it would hide most of the sound.
    tagged.set([0, 0x80, 0x30, 0], 6)
    assert.equal(await billedMs(tagged), undefined)
  })
})

describe('an Ogg file', () => {
  it('[M4] loses no more than the padding of an encoder', async () => {
    for (const granule of [0n, 1n, -1n, 2n ** 40n]) {
      const forged = Buffer.from(clip('opus.ogg'))
      forged.writeUInt16LE(65_535, forged.indexOf('OpusHead') + 10)
      for (const { start } of oggPages(forged)) forged.writeBigInt64LE(granule, start + 6)
      sealPages(forged)
      assert.equal(await billedMs(forged), 1720 - 80)
    }
  })
})

describe('an MP4 file', () => {
  const { aac, opus } = packetTracks()

  it('[M4] costs all of its sound, whatever its edit list leaves out', async () => {
    for (const track of [aac, opus]) {
      const whole = (await billedMs(mp4File([track]))) ?? 0
      for (const movieTicks of [0, 1, 1700, 9000]) {
        for (const start of [-1, 0, 1024, 20_000]) {
          const edited = (await billedMs(mp4File([track], { edits: [{ movieTicks, start }] }))) ?? 0
          assert.equal(edited, whole, `${track.entryType}: ${movieTicks} from ${start}`)
        }
      }
    }
  })

  it('[M4] is measured the same with its index at either end, in chunks of any size', async () => {
    const late = (await billedMs(clip('late-index.m4a'))) ?? 0
    for (const perChunk of [1, 7, 1000]) {
      const file = mp4File([aac], { perChunk })
      assert.ok(Math.abs(((await billedMs(file)) ?? 0) - late) <= 64)
    }
  })

  it('[M4] is not measured without an index, or with an incomplete one', async () => {
    const file = mp4File([aac])
    const at = file.indexOf('moov', 0, 'latin1')
    assert.equal(await billedMs(file.subarray(0, at - 4)), undefined)
    assert.equal(await billedMs(file.subarray(0, -200)), undefined)
    file.writeUInt32BE(4, at - 4)
    assert.equal(await billedMs(file), undefined)
  })
})

describe('a Matroska file', () => {
  const DISCARD_PADDING = 0x75a2
  const VOID = 0xec
  const { opus } = packetTracks()
  /** 20 ms in nanoseconds, which is all that a packet has. */
  const wholePacket = (bytes: number): Buffer => {
    const content = Buffer.alloc(bytes)
    content.writeUInt32BE(20_000_000, bytes - 4)
    return content
  }

  it('[M4] costs all of its Opus, however an element that discards sound is written', async () => {
    const whole = await billedMs(webmFile(opus))
    for (const sizeBytes of [1, 2, 3, 4, 8]) {
      for (const valueBytes of [4, 8, 15, 16, 100]) {
        const discard = sizedElement(DISCARD_PADDING, sizeBytes, wholePacket(valueBytes))
        const forged = webmFile(opus, { blockElements: [discard] })
        assert.equal(await billedMs(forged), whole, `${sizeBytes} bytes of size, ${valueBytes} of value`)
      }
    }
  })

  it('[M4] costs all of its Opus, wherever such an element is', async () => {
    const whole = await billedMs(webmFile(opus))
    const discard = sizedElement(DISCARD_PADDING, 1, wholePacket(4))
    const start = webmFile(opus, { blockElements: [discard] }).indexOf(Buffer.from('75a2', 'hex'))
    // The file is read in pieces. One of the elements is moved over the end of the first.
    for (const before of [0, 1, 2, 3]) {
      const filler = Buffer.alloc(16_384 - before - start - 9)
      const forged = webmFile(opus, { blockElements: [discard], clusterElements: [sizedElement(VOID, 8, filler)] })
      assert.equal(forged.indexOf(Buffer.from('75a2', 'hex')), 16_384 - before)
      assert.equal(await billedMs(forged), whole, `${before} bytes before the end of a piece`)
    }
  })

  it('[M4] loses no more than the padding of an encoder at its start', async () => {
    const head = Buffer.from(opus.codecPrivate ?? [])
    head.writeUInt16LE(65_535, 10)
    assert.equal(await billedMs(webmFile({ ...opus, codecPrivate: head })), 1720 - 80)
  })
})
