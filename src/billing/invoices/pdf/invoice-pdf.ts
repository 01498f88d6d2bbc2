import PDFDocument from 'pdfkit'
import type { InvoiceDocument } from '../invoice-document.ts'
import {
  amountsOf,
  balanceRowsOf,
  cellsOf,
  COLUMNS,
  factsOf,
  fractionOf,
  fullTitle,
  headlineOf,
  noticesOf,
  partiesOf,
  totalRowsOf,
  type LinkedLine,
  type PrintableInvoice,
} from '../invoice-wording.ts'
import { loadFonts } from './pdf-fonts.ts'
import { textSetter, type TextSetter, type TextStyle } from './pdf-text.ts'

/** Renders an invoice as an A4 PDF with numbered pages. */

type Pdf = InstanceType<typeof PDFDocument>

const MARGIN = 50
const WIDTH = 495
const BOTTOM = 775
const GRAY = '#555'
/** Left edge and width of each column. */
const PLACES = [
  [MARGIN, 180],
  [MARGIN + 186, 92],
  [MARGIN + 284, 98],
  [MARGIN + 388, 107],
] as const
const AMOUNT = PLACES[3]
/** Left edge of the facts at the right. */
const FACTS = MARGIN + 340
/** Of the names of totals, left of their amounts. */
const NAME_WIDTH = 240

/** Where the next thing goes. */
interface Cursor {
  readonly page: Pdf
  readonly text: TextSetter
  /** Of the longest fraction of an amount. */
  readonly fractionWidth: number
  y: number
}

/** `fonts` are files of further fonts, for scripts that Weir's own fonts do not have. */
export function invoicePdf(invoice: PrintableInvoice, fonts: readonly string[] = []): Promise<Buffer> {
  const page = new PDFDocument({
    size: 'A4',
    margin: MARGIN,
    bufferPages: true,
    lang: 'en-AU',
    displayTitle: true,
    info: { Title: fullTitle(invoice), Author: invoice.seller?.name ?? 'Weir', ...dateOf(invoice) },
  })
  const chunks: Buffer[] = []
  const done = new Promise<Buffer>((resolve, reject) => {
    page.on('data', (chunk: Buffer) => chunks.push(chunk))
    page.on('end', () => resolve(Buffer.concat(chunks)))
    page.on('error', reject)
  })
  const text = textSetter(page, loadFonts(page, fonts))
  const widths = amountsOf(invoice).map((figure) => text.widthOf(fractionOf(figure), { size: 10, weight: 'bold' }))
  const cursor: Cursor = { page, text, fractionWidth: Math.max(...widths), y: MARGIN }
  head(cursor, invoice)
  tableHead(cursor)
  for (const [index, line] of invoice.lines.entries()) {
    const isLast = index > 0 && index === invoice.lines.length - 1
    tableLine(cursor, line, isLast ? endingHeight(cursor, invoice) : 0)
  }
  if (cursor.y + endingHeight(cursor, invoice) > BOTTOM) newPage(cursor)
  ending(cursor, invoice)
  pageNumbers(cursor, fullTitle(invoice))
  page.end()
  return done
}

/** A fixed creation date, so that an invoice always produces the same file. */
function dateOf({ issued }: InvoiceDocument): { CreationDate?: Date } {
  return issued === null ? {} : { CreationDate: new Date(`${issued}T00:00:00Z`) }
}

function head(cursor: Cursor, invoice: PrintableInvoice): void {
  const { text } = cursor
  const below = text.draw(invoice.title, MARGIN, MARGIN, FACTS - MARGIN - 10, { size: 20, weight: 'bold' })
  const top = Math.max(below, headline(cursor, invoice)) + 12
  const ends = partiesOf(invoice).map(([role, name, details], index) => {
    const x = MARGIN + index * 170
    let y = text.draw(role, x, top, 155, { size: 8, color: GRAY })
    y = text.draw(name, x, y, 155, { size: 10, weight: 'bold' })
    return details === '' ? y : text.draw(details, x, y, 155, { size: 9 })
  })
  let y = top
  for (const [name, value] of factsOf(invoice)) {
    y = text.draw(name, FACTS, y, 155, { size: 8, color: GRAY })
    y = text.draw(value, FACTS, y, 155, { size: 9 }) + 2
  }
  cursor.y = Math.max(y, ...ends) + 16
}

/** What the reader looks for first, at the top right. Returns the y below it. */
function headline({ text }: Cursor, invoice: PrintableInvoice): number {
  const [label, amount, by] = headlineOf(invoice)
  let y = text.draw(label, FACTS, MARGIN, 155, { size: 8, color: GRAY })
  y = text.draw(amount, FACTS, y, 155, { size: 16, weight: 'bold' })
  return by === '' ? y : text.draw(by, FACTS, y, 155, { size: 9 })
}

function tableHead(cursor: Cursor): void {
  row(cursor, COLUMNS, { size: 9, weight: 'bold' })
  rule(cursor, 1)
}

function tableLine(cursor: Cursor, line: LinkedLine, heightBelow: number): void {
  const cells = cellsOf(line)
  const style = { size: 9 }
  if (cursor.y + heightOf(cursor, cells, style) + heightBelow > BOTTOM) {
    newPage(cursor)
    tableHead(cursor)
  }
  row(cursor, cells, style, line.link)
  rule(cursor, 0.3)
}

type Ending = readonly { readonly name: string; readonly amount: string; readonly style: TextStyle }[]
const NOTICE_STYLE = { size: 9 }

/** The totals, and what has changed since. */
function endingOf(invoice: PrintableInvoice): Ending {
  const [totals, balance] = [totalRowsOf(invoice), balanceRowsOf(invoice)]
  const bold = new Set([totals.at(-1), balance.at(-1)])
  return [...totals, ...balance].map((it) => ({
    name: it[0],
    amount: it[1],
    style: { size: 10, weight: bold.has(it) ? 'bold' : 'regular', align: 'right' },
  }))
}

/** The payment terms are never on a page without the totals, nor the totals on a page without a line. */
function endingHeight({ text }: Cursor, invoice: PrintableInvoice): number {
  const rows = endingOf(invoice).reduce((sum, { name, style }) => sum + text.heightOf(name, NAME_WIDTH, style) + 2, 6)
  return noticesOf(invoice).reduce((sum, notice) => sum + text.heightOf(notice, WIDTH, NOTICE_STYLE) + 5, rows + 14)
}

function ending(cursor: Cursor, invoice: PrintableInvoice): void {
  const { text } = cursor
  cursor.y += 6
  for (const { name, amount: figure, style } of endingOf(invoice)) {
    const bottom = text.draw(name, AMOUNT[0] - NAME_WIDTH - 8, cursor.y, NAME_WIDTH, style)
    drawAmount(cursor, figure, style)
    cursor.y = bottom + 2
  }
  cursor.y += 14
  for (const notice of noticesOf(invoice)) {
    cursor.y = text.draw(notice, MARGIN, cursor.y, WIDTH, NOTICE_STYLE) + 5
  }
}

/** With its decimal point below that of all other amounts, as long as the column is wide enough for that. */
function drawAmount({ text, fractionWidth, y }: Cursor, figure: string, style: TextStyle): number {
  const [x, width] = AMOUNT
  const shift = fractionWidth - text.widthOf(fractionOf(figure), style)
  const room = width - text.widthOf(figure, style)
  return text.draw(figure, x, y, width - Math.max(0, Math.min(shift, room)), { ...style, align: 'right' })
}

function newPage(cursor: Cursor): void {
  cursor.page.addPage()
  cursor.y = MARGIN
}

function heightOf({ text }: Cursor, cells: readonly string[], style: TextStyle): number {
  return Math.max(...cells.map((cell, index) => text.heightOf(cell, PLACES[index]?.[1] ?? 0, style)))
}

function row(cursor: Cursor, cells: readonly string[], style: TextStyle, link?: string | null): void {
  const bottoms = cells.map((cell, index) => {
    const [x, width] = PLACES[index] ?? [0, 0]
    // The title of the column is aligned at its right edge.
    if (x === AMOUNT[0] && cell.includes('.')) return drawAmount(cursor, cell, style)
    const isFirst = index === 0
    return cursor.text.draw(cell, x, cursor.y, width, {
      ...style,
      align: isFirst ? 'left' : 'right',
      link: isFirst ? link : null,
    })
  })
  cursor.y = Math.max(...bottoms) + 2
}

function rule(cursor: Cursor, thickness: number): void {
  cursor.page
    .lineWidth(thickness)
    .moveTo(MARGIN, cursor.y)
    .lineTo(MARGIN + WIDTH, cursor.y)
    .stroke('#888')
  cursor.y += 3
}

function pageNumbers({ page, text }: Cursor, title: string): void {
  const { start, count } = page.bufferedPageRange()
  for (let index = start; index < start + count; index++) {
    page.switchToPage(index)
    // The page number is below the margin, where text would otherwise start a new page.
    page.page.margins.bottom = 0
    text.draw(`${title} · page ${index + 1} of ${count}`, MARGIN, 800, WIDTH, { size: 8, color: GRAY, align: 'center' })
  }
}
