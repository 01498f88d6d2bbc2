import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import sharp, { type Sharp } from 'sharp'
import { readImageHeader } from '../../src/shared/image-header.ts'
import { simulationSeed } from '../simulation/seed.ts'
import { chanceOf, type Chance } from '../support/fuzz/chance.ts'

/** The header as we read it, and as libvips does, which decodes the whole file. */
const seed = simulationSeed()
const IMAGES = 40
const CHANGES = 25

const write: Readonly<Record<string, (image: Sharp) => Sharp>> = {
  png: (image) => image.png(),
  'png with a palette': (image) => image.png({ palette: true }),
  jpeg: (image) => image.jpeg(),
  'progressive jpeg with metadata': (image) => image.jpeg({ progressive: true }).withMetadata({ orientation: 6 }),
  webp: (image) => image.webp(),
  'lossless webp': (image) => image.webp({ lossless: true }),
  'webp with alpha': (image) => image.ensureAlpha(0.5).webp(),
  gif: (image) => image.gif(),
}

function sample(chance: Chance): {
  readonly width: number
  readonly height: number
  readonly bytes: Promise<Buffer>
  readonly name: string
} {
  const [width, height] = [1 + chance.below(300), 1 + chance.below(300)]
  const background = { r: chance.below(256), g: chance.below(256), b: chance.below(256) }
  const name = chance.pick(Object.keys(write))
  const image = sharp({ create: { width, height, channels: 3, background } })
  return { width, height, name, bytes: (write[name] as (it: Sharp) => Sharp)(image).toBuffer() }
}

function ours(bytes: Buffer): { width: number; height: number; format: string } | undefined {
  const header = readImageHeader((offset, length) => bytes.subarray(offset, offset + length))
  return header && { width: header.width, height: header.height, format: header.type.replace('image/', '') }
}

/** undefined: not an image, or not one of these. */
async function theirs(bytes: Buffer): Promise<{ width: number; height: number; format: string } | undefined> {
  try {
    const { width, height, format } = await sharp(bytes, { limitInputPixels: false }).metadata()
    return ['png', 'jpeg', 'webp', 'gif'].includes(format) ? { width, height, format } : undefined
  } catch {
    return undefined
  }
}

describe(`the header of an image, next to libvips, WEIR_SEED=${seed}`, () => {
  it('has the same type and size', async () => {
    for (let input = 0; input < IMAGES; input++) {
      const { width, height, name, bytes } = sample(chanceOf(seed, input))
      const expected = { width, height, format: /png|jpeg|webp|gif/.exec(name)?.[0] }
      assert.deepEqual(ours(await bytes), expected, name)
      assert.deepEqual(await theirs(await bytes), expected, name)
    }
  })

  // libvips takes a very large screen of a gif for a mistake, and has the size of the picture instead.
  it('never has a smaller size than libvips finds, whatever was changed in the file', async () => {
    let both = 0
    for (let input = 0; input < IMAGES; input++) {
      const chance = chanceOf(seed, IMAGES + input)
      const { name, bytes } = sample(chance)
      const whole = await bytes
      for (let change = 0; change < CHANGES; change++) {
        const changed = Buffer.from(whole)
        for (let count = 1 + chance.below(3); count > 0; count--) {
          changed[chance.below(Math.min(changed.length, 64))] = chance.below(256)
        }
        const [one, other] = [ours(changed), await theirs(changed)]
        if (!one || !other) continue
        both++
        const isSafe = one.format === other.format && one.width >= other.width && one.height >= other.height
        assert.ok(isSafe, `${name}, ${JSON.stringify([one, other])}: ${changed.subarray(0, 64).toString('hex')}`)
      }
    }
    assert.ok(both > 50, `${both} of them could be read`)
  })
})
