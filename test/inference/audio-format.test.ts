import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formatOf, type AudioFormat } from '../../src/inference/audio/measure/audio-format.ts'

const text = (value: string): Buffer => Buffer.from(value, 'latin1')
const FRAME = Buffer.from([0xff, 0xfb, 0x90, 0x00])

function formatIn(bytes: Buffer): Promise<AudioFormat | undefined> {
  return formatOf({ length: bytes.length, read: async (into, position) => bytes.subarray(position).copy(into) })
}

function ogg(content: string): Buffer {
  return text(`OggS${'\0'.repeat(24)}${content}`)
}

/** An ID3v2 tag, of which only the head is there. */
function tagHead(sizes: readonly number[], flags = 0): Buffer {
  return Buffer.from([...text('ID3\x04\x00'), flags, ...sizes])
}

function tag(bytes: number, flags = 0): Buffer {
  return Buffer.concat([
    tagHead([0, 0, bytes >> 7, bytes & 0x7f], flags),
    Buffer.alloc(bytes + (flags & 0x10 ? 10 : 0)),
  ])
}

describe('the format of a recording', () => {
  const known: readonly [file: Buffer, format: AudioFormat][] = [
    [text('RIFF____WAVEfmt '), { extension: 'wav', contentType: 'audio/wav', decoder: 'wav', start: 0 }],
    [ogg('OpusHead'), { extension: 'ogg', contentType: 'audio/ogg', decoder: 'opus', start: 0 }],
    [ogg('\x7fFLAC'), { extension: 'ogg', contentType: 'audio/ogg', decoder: 'flac', start: 0 }],
    [ogg('\x01vorbis'), { extension: 'ogg', contentType: 'audio/ogg', decoder: 'oga', start: 0 }],
    [text('____ftypM4A '), { extension: 'm4a', contentType: 'audio/mp4', decoder: 'm4a', start: 0 }],
    [text('\x1a\x45\xdf\xa3'), { extension: 'webm', contentType: 'audio/webm', decoder: 'webm', start: 0 }],
    [text('fLaC'), { extension: 'flac', contentType: 'audio/flac', decoder: 'flac', start: 0 }],
    [FRAME, { extension: 'mp3', contentType: 'audio/mpeg', decoder: 'mp3', start: 0 }],
  ]
  for (const [file, format] of known) {
    it(`is found in its first bytes: ${format.extension}, ${format.decoder}`, async () => {
      assert.deepEqual(await formatIn(file), format)
      assert.deepEqual(await formatIn(Buffer.concat([file, Buffer.alloc(100, 0xff)])), format)
      assert.equal((await formatIn(Buffer.concat([text('.'), file])))?.extension, undefined)
    })
  }

  it('is unknown if a part of its signature is missing', async () => {
    for (const file of ['', 'RIFF', 'RIFF____AVI ', 'RIFX____WAVE', 'Ogg_', 'ftyp____', 'fLa', '\x1a\x45\xdf']) {
      assert.equal(await formatIn(text(file)), undefined, file)
    }
  })

  it('is MP3 if its first frame has a known version, layer, bit rate and sample rate', async () => {
    for (let second = 0; second < 256; second++) {
      for (let third = 0; third < 256; third += 4) {
        const [sync, version, layer] = [second >> 5, (second >> 3) & 3, (second >> 1) & 3]
        const [bitRate, sampleRate] = [third >> 4, (third >> 2) & 3]
        const isFrame = sync === 7 && version !== 1 && layer !== 0 && bitRate !== 15 && sampleRate !== 3
        const found = await formatIn(Buffer.from([0xff, second, third, 0]))
        assert.equal(found?.extension, isFrame ? 'mp3' : undefined, `${second} ${third}`)
      }
    }
    for (const first of [0, 0x7f, 0xfe]) assert.equal(await formatIn(Buffer.from([first, 0xfb, 0x90, 0])), undefined)
    assert.equal(await formatIn(Buffer.from([0xff])), undefined)
  })
})

describe('the tags before a recording', () => {
  it('are skipped, with their footers', async () => {
    for (const [tags, start] of [
      [[tag(0)], 10],
      [[tag(1)], 11],
      [[tag(300)], 310],
      [[tag(300, 0x10)], 320],
      [[tag(300, 0xef)], 310],
      [[tag(7), tag(20, 0x10), tag(0)], 17 + 40 + 10],
    ] as const) {
      for (const sound of [FRAME, text('fLaC')]) {
        assert.equal((await formatIn(Buffer.concat([...tags, sound])))?.start, start)
      }
    }
  })

  it('have a size of four times seven bits', async () => {
    for (const [place, bytes] of [2 ** 21, 2 ** 14, 2 ** 7, 1].entries()) {
      const sizes = [0, 0, 0, 0].with(place, 3)
      const head = tagHead(sizes)
      const start = 10 + 3 * bytes
      const source = {
        length: start + 4,
        read: async (into: Buffer, position: number) => (position >= start ? FRAME : head).copy(into, 0, 0),
      }
      assert.equal((await formatOf(source))?.start, start)
      // The highest bit of a byte is never set.
      assert.equal(await formatIn(Buffer.concat([tagHead(sizes.with(place, 0x80)), FRAME])), undefined)
    }
    assert.equal((await formatIn(Buffer.concat([tag(127), FRAME])))?.start, 137)
  })

  it('are skipped up to sixteen times', async () => {
    const tags = (count: number): Buffer => Buffer.concat([...Array.from({ length: count }, () => tag(5)), FRAME])
    assert.equal((await formatIn(tags(16)))?.start, 16 * 15)
    assert.equal(await formatIn(tags(17)), undefined)
  })

  it('may be truncated', async () => {
    for (let bytes = 0; bytes <= 10; bytes++) assert.equal(await formatIn(tag(300).subarray(0, bytes)), undefined)
  })
})
