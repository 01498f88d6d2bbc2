import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type PDFDocument from 'pdfkit'
import type { PdfFonts } from '../../src/billing/invoices/pdf/pdf-fonts.ts'
import { textSetter } from '../../src/billing/invoices/pdf/pdf-text.ts'

type Pdf = InstanceType<typeof PDFDocument>

/** A page that writes down what is drawn, and fonts whose letters are all as wide as the size. */
function stage() {
  const drawn: unknown[][] = []
  const page: Record<string, (...values: never[]) => unknown> = {}
  for (const name of ['font', 'fontSize', 'fillColor', 'text', 'link', 'lineWidth', 'moveTo', 'lineTo', 'stroke']) {
    page[name] = (...values: readonly unknown[]) => {
      drawn.push([name, ...values])
      return page
    }
  }
  let size = 1
  page['fontSize'] = (value: number) => {
    size = value
    return page
  }
  page['widthOfString'] = (text: string) => text.length * size
  const fonts: PdfFonts = {
    widthOf: (text, _weight, fontSize) => text.length * fontSize,
    runsOf: (text) => [{ text, font: 'F' }],
  }
  const setter = textSetter(page as unknown as Pdf, fonts)
  const only = (...names: readonly string[]): unknown[][] => drawn.filter(([name]) => names.includes(String(name)))
  const lines = (text: string, width: number): unknown[] => {
    drawn.length = 0
    setter.draw(text, 0, 0, width, { size: 1 })
    return only('text').map(([, words]) => words)
  }
  return { setter, only, lines }
}

describe('text that is set in a PDF', () => {
  it('breaks at spaces only when a word does not fit', () => {
    const { lines } = stage()
    assert.deepEqual(lines('one two six', 11), ['one two six'])
    assert.deepEqual(lines('one two six', 10), ['one two', 'six'])
    assert.deepEqual(lines('one two six', 7), ['one two', 'six'])
    assert.deepEqual(lines('one two six', 6), ['one', 'two', 'six'])
    assert.deepEqual(lines('one\ntwo', 100), ['one', 'two'])
  })

  it('breaks a word only if it is wider than its column, after a punctuation mark in its second half if there is one', () => {
    const { lines } = stage()
    assert.deepEqual(lines('abcdefgh', 8), ['abcdefgh'])
    assert.deepEqual(lines('abcdefghi', 8), ['abcdefgh', 'i'])
    assert.deepEqual(lines('abcdefgh'.repeat(2), 8), ['abcdefgh', 'abcdefgh'])
    for (const mark of ['/', '-', '.', ':', '_']) {
      assert.deepEqual(lines(`abcd${mark}fghijklm`, 8), [`abcd${mark}`, 'fghijklm'], mark)
      assert.deepEqual(lines(`abc${mark}fghijk`, 8), [`abc${mark}fghi`, 'jk'], mark)
    }
    assert.deepEqual(lines('ab-cd-efgh', 8), ['ab-cd-', 'efgh'])
    assert.deepEqual(lines('abcdefghijklmnopqrst', 8), ['abcdefgh', 'ijklmnop', 'qrst'])
  })

  it('is aligned left, right or centred in its column, one line below the other', () => {
    const { setter, only } = stage()
    const below = setter.draw('ab cd', 100, 50, 30, { size: 10 })
    setter.draw('ab', 100, 50, 30, { size: 10, align: 'right' })
    setter.draw('ab', 100, 50, 30, { size: 10, align: 'center' })
    assert.equal(below, 50 + 2 * 10 * 1.36)
    assert.equal(setter.heightOf('ab cd', 30, { size: 10 }), 2 * 10 * 1.36)
    const options = { lineBreak: false, baseline: 'alphabetic' }
    assert.deepEqual(only('text'), [
      ['text', 'ab', 100, 50 + 10.700000000000001, options],
      ['text', 'cd', 100, 50 + 13.6 + 10.700000000000001, options],
      ['text', 'ab', 110, 50 + 10.700000000000001, options],
      ['text', 'ab', 105, 50 + 10.700000000000001, options],
    ])
  })

  it('is underlined where it is a link, and can be clicked there', () => {
    const { setter, only } = stage()
    setter.draw('abc', 100, 50, 200, { size: 10, link: 'https://weir.example' })
    assert.deepEqual(only('link', 'moveTo', 'lineTo'), [
      ['link', 100, 50, 30, 13.600000000000001, 'https://weir.example'],
      ['moveTo', 100, 62],
      ['lineTo', 130, 62],
    ])
    setter.draw('abc', 100, 50, 200, { size: 10, link: null })
    assert.equal(only('link').length, 1)
  })
})
