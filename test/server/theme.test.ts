import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'

/** The style of all pages comes from the tokens: one place says what a colour, a size or a distance is. */

const root = new URL('../../', import.meta.url).pathname
const TOKENS = 'src/server/theme/tokens.css'
const styles = ['console', 'src/server']
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((it) => join(folder, it)),
  )
  .filter((file) => file.endsWith('.css') && file !== TOKENS)
const textOf = (file: string): string => readFileSync(join(root, file), 'utf8')

/** Distances, corners, shadows and text. What a column or a picture measures is its own affair. */
const SCALED = /^(padding|margin|gap|row-gap|column-gap|border-.*radius|border-radius|font|font-size|box-shadow)(-|$)/
/** A line around something, drawn as a shadow. */
const RING = /0 0 0 [\d.]+px/
const COLOUR = /#[0-9a-f]{3,8}\b|\b(rgb|hsl|oklch)a?\(|light-dark\(/i

interface Declaration {
  readonly name: string
  readonly value: string
}

function declarationsOf(css: string): readonly Declaration[] {
  return [...css.matchAll(/([a-z-]+):\s+([^;{}]+);/g)].map(([, name = '', value = '']) => ({ name, value }))
}

function strayIn(css: string): readonly string[] {
  return declarationsOf(css)
    .filter(
      ({ name, value }) => COLOUR.test(value) || (SCALED.test(name) && /\d(px|rem)\b/.test(value.replace(RING, ''))),
    )
    .map(({ name, value }) => `${name}: ${value}`)
}

describe('the style of the pages', () => {
  it('takes colours, distances, corners, shadows and sizes of text from the tokens', () => {
    assert.ok(styles.length > 5)
    for (const file of styles) assert.deepEqual(strayIn(textOf(file)), [], file)
    assert.deepEqual(strayIn('a { color: #fff; padding: 7px; width: 7px; font: 15px/1 serif; }'), [
      'color: #fff',
      'padding: 7px',
      'font: 15px/1 serif',
    ])
  })

  it('uses only tokens that exist', () => {
    const known = new Set([...textOf(TOKENS).matchAll(/(--[\w-]+):/g)].map(([, name]) => name))
    for (const file of styles) {
      const used = [...textOf(file).matchAll(/var\((--[\w-]+)/g)].map(([, name]) => name)
      assert.deepEqual(
        used.filter((name) => !known.has(name)),
        [],
        file,
      )
    }
  })
})
