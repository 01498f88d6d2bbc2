import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { measureAudio } from '../../src/media/audio/measure.ts'
import { opusPacketMs } from '../../src/media/audio/opus.ts'
import type { ByteSource } from '../../src/ports/uploads.ts'

const folder = new URL('../fixtures/audio/', import.meta.url)
/** Measured by decoding with ffmpeg. */
const truth = JSON.parse(readFileSync(new URL('durations.json', folder), 'utf8')) as Record<string, number>
const clips = new Map(Object.keys(truth).map((name) => [name, readFileSync(new URL(name, folder))]))

function source(bytes: Buffer): ByteSource & { readonly reads: number } {
  let reads = 0
  return {
    length: bytes.length,
    get reads() {
      return reads
    },
    async read(into, position) {
      reads++
      return bytes.copy(into, 0, position)
    },
  }
}

async function durationOf(bytes: Buffer): Promise<number | undefined> {
  return (await measureAudio(source(bytes)))?.durationMs
}

function bytesOf(name: string): Buffer {
  const bytes = clips.get(name)
  assert.ok(bytes, name)
  return bytes
}

describe('the length of a recording', () => {
  for (const [name, bytes] of clips) {
    it(`[M4] is accurate to 30 ms: ${name}`, async () => {
      const measured = await durationOf(bytes)
      assert.ok(Math.abs((measured ?? 0) - (truth[name] ?? 0)) <= 30, `${measured} instead of ${truth[name]}`)
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
      const half = await durationOf(bytes.subarray(0, Math.floor(bytes.length / 2)))
      assert.ok((half ?? 0) < (truth[name] ?? 0) * 0.8, `${name}: ${half}`)
    }
  })

  it('[M4] counts recordings that are concatenated', async () => {
    for (const name of ['opus.ogg', 'vorbis.ogg', 'bare.mp3']) {
      const twice = await durationOf(Buffer.concat([bytesOf(name), bytesOf(name)]))
      assert.ok(Math.abs((twice ?? 0) - 2 * (truth[name] ?? 0)) <= 60, `${name}: ${twice}`)
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

  it('leaves out the tag frame of a Fraunhofer encoder', async () => {
    const bytes = Buffer.from(bytesOf('bare.mp3'))
    const before = await durationOf(bytes)
    bytes.write('VBRI', 36, 'latin1')
    const frameMs = (576 / 22_050) * 1000
    assert.equal(await durationOf(bytes), Math.round((before ?? 0) - frameMs))
  })

  it('needs only a few reads of a large file, and one buffer', async () => {
    const large = Buffer.concat(Array.from({ length: 400 }, () => bytesOf('bare.mp3')))
    const counted = source(large)
    const { durationMs } = (await measureAudio(counted)) ?? {}
    assert.ok(Math.abs((durationMs ?? 0) - 400 * (truth['bare.mp3'] ?? 0)) < 200)
    assert.ok(counted.reads < (large.length / 65_536) * 2 + 10, String(counted.reads))
  })

  it('is undefined for a file that is not audio', async () => {
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.from('hello'),
      Buffer.from('%PDF-1.7'),
      Buffer.alloc(100_000),
      Buffer.alloc(3_000_000, 0xff),
      Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    ]) {
      assert.equal(await measureAudio(source(bytes)), undefined)
    }
  })
})

describe('measuring any file', () => {
  const clip = fc.constantFrom(...clips.values())

  async function holds(bytes: Buffer): Promise<void> {
    const started = process.cpuUsage()
    const measured = await measureAudio(source(bytes))
    const { user, system } = process.cpuUsage(started)
    assert.ok(user + system < 2_000_000, 'two seconds of computing')
    if (measured?.durationMs === undefined) return
    assert.ok(Number.isSafeInteger(measured.durationMs) && measured.durationMs > 0)
  }

  it('never crashes or hangs when it is truncated anywhere', async () => {
    const cut = fc.asyncProperty(clip, fc.double({ min: 0, max: 1, noNaN: true }), (bytes, share) =>
      holds(bytes.subarray(0, Math.floor(bytes.length * share))),
    )
    await fc.assert(cut, { numRuns: 1000 })
  })

  it('never crashes or hangs when it is damaged anywhere', async () => {
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
    await fc.assert(damage, { numRuns: 2000 })
  })

  it('never crashes or hangs on garbage after a valid start', async () => {
    const garbage = fc.asyncProperty(clip, fc.nat(400), fc.uint8Array({ maxLength: 4000 }), (bytes, keep, rest) =>
      holds(Buffer.concat([bytes.subarray(0, keep), rest])),
    )
    await fc.assert(garbage, { numRuns: 1000 })
  })

  it('is quick for a large file of one repeated byte or header', async () => {
    const headers = [
      'RIFF\x00\x00\x00\x00WAVE',
      'OggS',
      '\x00\x00\x00\x08ftyp',
      '\x1aE\xdf\xa3',
      'fLaC',
      '\xff\xfb\x90\x64',
    ]
    for (const header of headers) {
      const start = Buffer.from(header, 'latin1')
      for (const filler of [start, Buffer.from([0xff]), Buffer.from([0x80]), Buffer.from('OggS\0\0', 'latin1')]) {
        const bytes = Buffer.alloc(8 * 2 ** 20, filler)
        start.copy(bytes)
        await holds(bytes)
      }
    }
  })
})

describe('an Opus packet', () => {
  it('has a length in its first two bytes', () => {
    const packets: readonly [first: number, second: number, ms: number][] = [
      [0b0000_0000, 0, 10],
      [0b0001_1000, 0, 60],
      [0b0110_1001, 0, 40],
      [0b1000_0000, 0, 2.5],
      [0b1111_1000, 0, 20],
      [0b1111_1011, 3, 60],
      [0b1111_1011, 63, 120],
    ]
    for (const [first, second, ms] of packets) assert.equal(opusPacketMs(first, second), ms)
  })
})
