import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { contentTypeOf, fileName } from '../../src/server/files/file-name.ts'

const random = Buffer.alloc(16, 0xab)
const HEX = 'ab'.repeat(16)

describe('the name of a stored file', () => {
  it('gives its content type', () => {
    const names = { 'image/png': 'png', 'image/jpeg': 'jpg', 'image/webp': 'webp', 'image/gif': 'gif' }
    for (const [type, extension] of Object.entries(names)) {
      assert.equal(fileName(random, type), `${HEX}.${extension}`)
      assert.equal(contentTypeOf(`${HEX}.${extension}`), type)
    }
    assert.equal(fileName(random, 'image/tiff'), `${HEX}.bin`)
    assert.equal(contentTypeOf(`${HEX}.bin`), 'application/octet-stream')
  })

  it('must be one that the service created', () => {
    for (const name of [
      '',
      'link-secret',
      `../${HEX}.png`,
      `${HEX}.png.part`,
      `${HEX}.txt`,
      `${HEX}0.png`,
      `x${HEX}.png`,
    ])
      assert.equal(contentTypeOf(name), undefined, name)
  })
})
