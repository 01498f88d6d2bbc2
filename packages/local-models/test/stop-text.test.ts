import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { stopText } from '../host/runtime/stop-text.ts'

describe('stop strings', () => {
  for (const stops of [
    ['b', 'ab'],
    ['ab', 'b'],
  ]) {
    it(`end the text at the first place where any of them is: ${stops.join(', ')}`, () => {
      for (const pieces of [['xabc'], ['x', 'ab', 'c'], ['xa', 'bc']]) {
        const text = stopText(stops)
        assert.equal(pieces.map((piece) => (text.found() === undefined ? text.push(piece) : '')).join(''), 'x')
        assert.equal(text.found(), 'ab')
        assert.equal(text.flush(), '')
      }
    })
  }
})
