import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import decode from 'audio-decode'
import type { AudioFormat } from '../../src/inference/audio/measure/audio-format.ts'
import { claimedSeconds } from '../../src/inference/audio/measure/claimed-seconds.ts'
import { decodedSeconds } from '../../src/inference/audio/measure/decoded-seconds.ts'
import { webmFile } from '../support/audio-containers.ts'
import { packetTracks } from '../support/audio-forgery.ts'

const format = (extension: AudioFormat['extension'], decoder: AudioFormat['decoder']): AudioFormat => ({
  extension,
  contentType: `audio/${extension}`,
  decoder,
  start: 0,
})
const wav = format('wav', 'wav')

interface Sound {
  readonly channelData: readonly Float32Array[]
  readonly sampleRate: number
}
const silence: Sound = { channelData: [], sampleRate: 0 }
const sound = (samples: number, channels = 1, sampleRate = 8000): Sound => ({
  channelData: Array.from({ length: channels }, () => new Float32Array(samples)),
  sampleRate,
})

/** A decoder that plays this for each piece, and then this at the end. */
function scriptDecoder(
  t: TestContext,
  name: AudioFormat['decoder'],
  pieces: readonly (Sound | Error)[],
  end = silence,
) {
  const left = [...pieces]
  const freed = t.mock.fn()
  const feed = async (piece?: Buffer): Promise<Sound> => {
    const next = piece ? (left.shift() ?? silence) : end
    if (next instanceof Error) throw next
    return next
  }
  t.mock.method(decode, name, (async () => Object.assign(feed, { free: freed })) as never)
  return { freed: () => freed.mock.callCount() }
}

const nothing = async (_position: number, bytes: number) => Buffer.alloc(bytes)
const PIECE_BYTES = 16_384

describe('the sound of a recording', () => {
  it('is the sum of all that its decoder plays, at the rate of each piece, including the end', async (t) => {
    const { freed } = scriptDecoder(t, 'mp3', [sound(8000), silence, sound(500, 1, 1000)], sound(250, 2, 1000))
    assert.equal(await decodedSeconds(format('mp3', 'mp3'), 3 * PIECE_BYTES, nothing), 1.75)
    assert.equal(freed(), 1)
  })

  it('must not be empty', async (t) => {
    const { freed } = scriptDecoder(t, 'mp3', [sound(0), silence])
    await assert.rejects(decodedSeconds(format('mp3', 'mp3'), 100, nothing), /no sound/)
    assert.equal(freed(), 1)
  })

  it('cannot be counted if its decoder fails, which is then released', async (t) => {
    const { freed } = scriptDecoder(t, 'mp3', [sound(8000), new Error('damaged')])
    await assert.rejects(decodedSeconds(format('mp3', 'mp3'), 2 * PIECE_BYTES, nothing), /damaged/)
    assert.equal(freed(), 1)
  })

  it('is as much as a file without loss has bytes: four for a sample of a channel, and some for its headers', async (t) => {
    for (const [name, other] of [
      ['wav', 4096],
      ['flac', 2 ** 20],
    ] as const) {
      for (const channels of [1, 2]) {
        const length = other + 4 * 1000 * channels
        scriptDecoder(t, name, [sound(1000, channels)])
        assert.equal(await decodedSeconds(format(name, name), length, nothing), 0.125)
        scriptDecoder(t, name, [sound(1000, channels)])
        await assert.rejects(decodedSeconds(format(name, name), length + 1, nothing), /more bytes than sound/)
      }
    }
    scriptDecoder(t, 'mp3', [sound(8)])
    assert.equal(await decodedSeconds(format('mp3', 'mp3'), 2 ** 21, nothing), 0.001, 'others may have any size')
  })
})

describe('the headers of a recording', () => {
  const file = webmFile(packetTracks().opus)

  it('are read in the first 64 MiB', async () => {
    for (const [length, read] of [
      [1000, 1000],
      [2 ** 26, 2 ** 26],
      [2 ** 26 + 1, 2 ** 26],
    ] as const) {
      const asked: number[][] = []
      const seconds = await claimedSeconds(format('webm', 'webm'), length, async (...question) => {
        asked.push(question)
        return file
      })
      assert.deepEqual([asked, seconds], [[[0, read]], 1.7])
    }
  })

  it('may have no length', async () => {
    const without = Buffer.from(file)
    without.writeUInt16BE(0x4488, without.indexOf(Buffer.from('4489', 'hex')))
    await assert.rejects(
      claimedSeconds(format('webm', 'webm'), without.length, async () => without),
      /no length/,
    )
    await assert.rejects(claimedSeconds(wav, 4, async () => Buffer.from('RIFF')))
  })
})
