import type PDFDocument from 'pdfkit'
import type { PdfFonts, Weight } from './pdf-fonts.ts'

type Pdf = InstanceType<typeof PDFDocument>

/** Sets text in a PDF: several scripts in one line, broken into lines, with right-to-left words in their order. */

export interface TextStyle {
  readonly size: number
  readonly weight?: Weight
  readonly color?: string
  readonly align?: 'left' | 'right' | 'center'
  readonly link?: string | null | undefined
}

export interface TextSetter {
  /** Draws text in a column and returns the y below it. */
  draw(text: string, x: number, y: number, width: number, style: TextStyle): number
  heightOf(text: string, width: number, style: TextStyle): number
  widthOf(text: string, style: TextStyle): number
}

const LINE_HEIGHT = 1.36
const words = new Intl.Segmenter('en', { granularity: 'word' })
const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })
/** Scripts that are written without spaces, so that a line may end between any two words. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u
const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}]/u
const LEFT_TO_RIGHT = /\p{L}/u

export function textSetter(page: Pdf, fonts: PdfFonts): TextSetter {
  function linesOf(text: string, width: number, { size, weight = 'regular' }: TextStyle): readonly string[] {
    const measure = (part: string): number => fonts.widthOf(part, weight, size)
    return text
      .normalize('NFC')
      .split('\n')
      .flatMap((paragraph) => brokenLines(paragraph.trim(), width, measure))
  }

  return {
    widthOf: (text, { size, weight = 'regular' }) => fonts.widthOf(text, weight, size),
    heightOf: (text, width, style) => linesOf(text, width, style).length * style.size * LINE_HEIGHT,
    draw(text, x, y, width, style) {
      const { size, weight = 'regular', color = '#000', align = 'left', link } = style
      let top = y
      for (const line of linesOf(text, width, style)) {
        const long = fonts.widthOf(line, weight, size)
        let left = align === 'left' ? x : align === 'right' ? x + width - long : x + (width - long) / 2
        for (const word of inVisualOrder(line)) {
          const runs = fonts.runsOf(word, weight)
          for (const run of RIGHT_TO_LEFT.test(word) ? runs.toReversed() : runs) {
            page.font(run.font).fontSize(size).fillColor(color)
            // Fonts differ in height; all text of a line is on the same baseline.
            page.text(run.text, left, top + size * 1.07, { lineBreak: false, baseline: 'alphabetic' })
            left += page.widthOfString(run.text)
          }
        }
        if (link) underline(page, x, top, long, size, link)
        top += size * LINE_HEIGHT
      }
      return top
    },
  }
}

function underline(page: Pdf, x: number, y: number, width: number, size: number, link: string): void {
  page.link(x, y, width, size * LINE_HEIGHT, link)
  const below = y + size * 1.2
  page
    .lineWidth(0.4)
    .moveTo(x, below)
    .lineTo(x + width, below)
    .stroke('#000')
}

/** Breaks at spaces, between words of scripts without spaces, and inside a word only if it is wider than the column. */
function brokenLines(text: string, width: number, measure: (part: string) => number): readonly string[] {
  const lines: string[] = []
  let line = ''
  let used = 0
  const pieces = piecesOf(text).flatMap((it) => (measure(it.trimEnd()) <= width ? [it] : slicesOf(it, width, measure)))
  for (const piece of pieces) {
    if (line !== '' && used + measure(piece.trimEnd()) > width) {
      lines.push(line.trimEnd())
      line = ''
      used = 0
    }
    line += piece
    used += measure(piece)
  }
  return [...lines, line.trimEnd()]
}

/** Parts of a text between which a line may end. Spaces belong to the part before them. */
function piecesOf(text: string): readonly string[] {
  const pieces: string[] = []
  for (const { segment } of words.segment(text)) {
    const last = pieces.at(-1)
    const mayBreak =
      last === undefined ||
      (/\s$/u.test(last) && segment.trim() !== '') ||
      (UNSPACED.test(last) && UNSPACED.test(segment))
    if (mayBreak) pieces.push(segment)
    else pieces[pieces.length - 1] = last + segment
  }
  return pieces
}

/** A word that is too long for the column, in parts that fit. A part ends after a slash, dot or hyphen if possible. */
function slicesOf(word: string, width: number, measure: (part: string) => number): readonly string[] {
  const slices: string[] = []
  let slice = ''
  let used = 0
  for (const { segment } of graphemes.segment(word)) {
    if (slice !== '' && used + measure(segment) > width) {
      const end = Math.max(...['/', '-', '.', ':', '_'].map((mark) => slice.lastIndexOf(mark))) + 1
      const cut = end > slice.length / 2 ? end : slice.length
      slices.push(slice.slice(0, cut))
      slice = slice.slice(cut)
      used = [...graphemes.segment(slice)].reduce((sum, it) => sum + measure(it.segment), 0)
    }
    slice += segment
    used += measure(segment)
  }
  return [...slices, slice]
}

/** The words of a line from left to right. Consecutive words of right-to-left scripts are reversed. */
export function inVisualOrder(line: string): readonly string[] {
  if (!RIGHT_TO_LEFT.test(line)) return [line]
  const parts = line.match(/\s+|[\d.,/:-]*\d[\d.,/:-]*|[^\s\d]+/gu) ?? []
  const ordered: string[] = []
  let run: string[] = []
  const flush = (): void => {
    // Spaces after the last right-to-left word stay after the run.
    const end = run.findLastIndex((part) => RIGHT_TO_LEFT.test(part)) + 1
    ordered.push(...run.slice(0, end).toReversed(), ...run.slice(end))
    run = []
  }
  for (const part of parts) {
    const isRight = RIGHT_TO_LEFT.test(part)
    if (!isRight && LEFT_TO_RIGHT.test(part)) flush()
    if (isRight || run.length > 0) run.push(part)
    else ordered.push(part)
  }
  flush()
  return ordered
}
