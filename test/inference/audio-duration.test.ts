import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import type { TurnClient } from '../../src/shared/turns.ts'
import { measureAudio } from '../../src/inference/audio/measure/measure.ts'
import type { ByteSource, MeasuredAudio } from '../../src/server/uploads/uploads.ts'
import { mp4File, webmFile } from '../support/audio-containers.ts'
import { packetTracks } from '../support/audio-forgery.ts'
import { runLength } from '../support/long-run.ts'

const folder = new URL('../fixtures/audio/', import.meta.url)
/** Measured by decoding with ffmpeg. */
const truth = JSON.parse(readFileSync(new URL('durations.json', folder), 'utf8')) as Record<string, number>
const clips = new Map(Object.keys(truth).map((name) => [name, readFileSync(new URL(name, folder))]))
const client: TurnClient = { owner: 'a', isGone: false, onGone: () => () => {} }

function measure(bytes: Buffer): Promise<MeasuredAudio | undefined> {
  const source: ByteSource = { length: bytes.length, read: async (into, position) => bytes.copy(into, 0, position) }
  return measureAudio(client, source)
}

async function durationOf(bytes: Buffer): Promise<number> {
  const { durationMs = 0, isClaimed } = (await measure(bytes)) ?? {}
  assert.equal(isClaimed, false)
  return durationMs
}

function bytesOf(name: string): Buffer {
  const bytes = clips.get(name)
  assert.ok(bytes, name)
  return bytes
}

describe('the length of a recording', () => {
  for (const [name, bytes] of clips) {
    it(`[M4] is accurate to 70 ms: ${name}`, async () => {
      // A decoder of AAC may leave out its first frame, of 64 ms.
      const measured = await durationOf(bytes)
      assert.ok(Math.abs(measured - (truth[name] ?? 0)) <= 70, `${measured} instead of ${truth[name]}`)
    })
  }

  it('[M4] covers what the file contains, not what a header claims', async () => {
    for (const name of [
      'constant.mp3',
      'variable.mp3',
      'bare.mp3',
      'opus.ogg',
      'plain.flac',
      'live.webm',
      'plain.wav',
    ]) {
      const bytes = bytesOf(name)
      const half = await measure(bytes.subarray(0, Math.floor(bytes.length / 2)))
      assert.ok((half?.durationMs ?? 0) < (truth[name] ?? 0) * 0.8, `${name}: ${half?.durationMs}`)
    }
  })

  it('[M4] counts recordings that are concatenated', async () => {
    for (const name of ['opus.ogg', 'vorbis.ogg', 'bare.mp3']) {
      const twice = await durationOf(Buffer.concat([bytesOf(name), bytesOf(name)]))
      assert.ok(Math.abs(twice - 2 * (truth[name] ?? 0)) <= 60, `${name}: ${twice}`)
    }
  })

  it('ignores tags at the start', async () => {
    const tag = Buffer.alloc(10 + 70_000, 0xff)
    tag.write('ID3\x04\x00\x00', 'latin1')
    // Seven bits per byte: 70,000.
    tag.set([0, 4, 34, 112], 6)
    for (const name of ['bare.mp3', 'constant.mp3', 'plain.flac']) {
      assert.equal(await durationOf(Buffer.concat([tag, bytesOf(name)])), await durationOf(bytesOf(name)), name)
    }
  })

  it('[M4] is that of all packets, in every codec of MP4 and Matroska', async () => {
    const { opus, aac, flac, mpeg, pcm, vorbis } = packetTracks()
    const lengths = [
      ['opus', opus, 1720],
      ['aac', aac, 1792],
      ['flac', flac, 1700],
      ['mpeg', mpeg, 1776],
      ['pcm', pcm, 1700],
      ['vorbis', vorbis, 1712],
    ] as const
    for (const [codec, track, played] of lengths) {
      const files = codec === 'vorbis' ? [webmFile(track)] : [webmFile(track), mp4File([track])]
      for (const file of files) {
        const measured = await durationOf(file)
        assert.ok(measured <= played + 1 && measured >= played - 70, `${codec}: ${measured} instead of ${played}`)
      }
    }
  })

  it('is only claimed if the file cannot be decoded', async () => {
    const file = Buffer.from(bytesOf('opus.webm'))
    file.write('A_NONE', file.indexOf('A_OPUS'), 'latin1')
    const measured = await measure(file)
    assert.equal(measured?.isClaimed, true)
    assert.ok(Math.abs((measured?.durationMs ?? 0) - 1700) <= 70, String(measured?.durationMs))
  })

  it('is only claimed if a lossless file has more bytes than sound', async () => {
    const wav = bytesOf('plain.wav')
    // A frame of 1,000 bytes instead of two, as some decoders believe and others do not.
    const frames = Buffer.from(wav)
    frames.writeUInt16LE(1000, 32)
    // Two chunks of sound, the first of 16 bytes.
    const first = Buffer.from(wav.subarray(0, 60))
    first.writeUInt32LE(16, 40)
    const chunks = Buffer.concat([first, wav.subarray(36)])
    for (const file of [frames, chunks]) assert.equal((await measure(file))?.isClaimed, true)
  })

  it('is undefined for a file that is not audio', async () => {
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.from('hello'),
      Buffer.from('%PDF-1.7'),
      Buffer.alloc(100_000),
      Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    ]) {
      assert.equal(await measure(bytes), undefined)
    }
    assert.equal((await measure(Buffer.alloc(300_000, 0xff)))?.durationMs, undefined)
  })
})

describe('measuring any file', () => {
  const clip = fc.constantFrom(...clips.values())

  async function holds(bytes: Buffer): Promise<void> {
    const { durationMs } = (await measure(bytes)) ?? {}
    assert.ok(durationMs === undefined || (Number.isSafeInteger(durationMs) && durationMs > 0), String(durationMs))
  }

  it('never fails when it is truncated anywhere', async () => {
    const cut = fc.asyncProperty(clip, fc.double({ min: 0, max: 1, noNaN: true }), (bytes, share) =>
      holds(bytes.subarray(0, Math.floor(bytes.length * share))),
    )
    await fc.assert(cut, { numRuns: runLength(3, 30) })
  })

  it('never fails when it is damaged anywhere', async () => {
    const spot = fc.record({
      at: fc.double({ min: 0, max: 0.999, noNaN: true }),
      bytes: fc.uint8Array({ maxLength: 16 }),
    })
    const damage = fc.asyncProperty(clip, fc.array(spot, { minLength: 1, maxLength: 8 }), (original, spots) => {
      const bytes = Buffer.from(original)
      // Most of the damage goes to the start, where the headers are.
      for (const [index, { at, bytes: patch }] of spots.entries()) {
        const reach = index % 2 === 0 ? Math.min(600, bytes.length) : bytes.length
        bytes.set(patch.subarray(0, bytes.length - Math.floor(at * reach)), Math.floor(at * reach))
      }
      return holds(bytes)
    })
    await fc.assert(damage, { numRuns: runLength(6, 60) })
  })

  it('takes little memory, whatever the file declares', async () => {
    const before = process.memoryUsage().rss
    const wav = (fields: Readonly<{ code: number; channels: number; block: number; samples: number }>): Buffer => {
      const file = Buffer.alloc(2 ** 20)
      file.write('RIFF\xff\xff\xff\x7fWAVEfmt \x14\0\0\0', 'latin1')
      file.writeUInt16LE(fields.code, 20)
      file.writeUInt16LE(fields.channels, 22)
      file.writeUInt32LE(8000, 24)
      file.writeUInt16LE(fields.block, 32)
      file.writeUInt16LE(8, 34)
      file.writeUInt16LE(2, 36)
      file.writeUInt16LE(fields.samples, 38)
      file.write('data\xff\xff\xff\x7f', 40, 'latin1')
      return file
    }
    // An Opus packet of two bytes may be 120 ms of silence.
    const { opus } = packetTracks()
    const silence = Array.from({ length: 20_000 }, () => Buffer.from([0b1111_1011, 6]))
    const bombs = [
      wav({ code: 0x11, channels: 1, block: 1, samples: 65_535 }),
      wav({ code: 1, channels: 65_535, block: 1, samples: 0 }),
      webmFile({ ...opus, packets: silence }),
    ]
    for (const bomb of bombs) await holds(bomb)
    const grown = process.memoryUsage().rss - before
    assert.ok(grown < 600 * 2 ** 20, `${Math.round(grown / 2 ** 20)} MiB`)
  })

  it('does not block the event loop', async () => {
    const { opus } = packetTracks()
    const long = webmFile({ ...opus, packets: Array.from({ length: 100 }, () => opus.packets).flat() })
    let turns = 0
    const timer = setInterval(() => turns++, 1)
    assert.ok((await durationOf(long)) > 170_000)
    clearInterval(timer)
    assert.ok(turns > 20, String(turns))
  })
})
