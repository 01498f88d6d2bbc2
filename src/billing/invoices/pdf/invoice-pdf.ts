import PDFDocument from 'pdfkit'
import type { InvoiceDocument } from '../invoice-document.ts'
import {
  cellsOf,
  COLUMNS,
  factsOf,
  fullTitle,
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
  [MARGIN, 200],
  [MARGIN + 206, 92],
  [MARGIN + 304, 98],
  [MARGIN + 408, 87],
] as const

/** Where the next thing goes. */
interface Cursor {
  readonly page: Pdf
  readonly text: TextSetter
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
  const cursor: Cursor = { page, text: textSetter(page, loadFonts(page, fonts)), y: MARGIN }
  head(cursor, invoice)
  tableHead(cursor)
  for (const line of invoice.lines) tableLine(cursor, line)
  totals(cursor, invoice)
  notices(cursor, invoice)
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
  const top = text.draw(invoice.title, MARGIN, MARGIN, WIDTH, { size: 20, weight: 'bold' }) + 12
  const ends = partiesOf(invoice).map(([role, name, details], index) => {
    const x = MARGIN + index * 170
    let y = text.draw(role, x, top, 155, { size: 8, color: GRAY })
    y = text.draw(name, x, y, 155, { size: 10, weight: 'bold' })
    return details === '' ? y : text.draw(details, x, y, 155, { size: 9 })
  })
  let y = top
  for (const [name, value] of factsOf(invoice)) {
    y = text.draw(name, MARGIN + 340, y, 155, { size: 8, color: GRAY })
    y = text.draw(value, MARGIN + 340, y, 155, { size: 9 }) + 2
  }
  cursor.y = Math.max(y, ...ends) + 16
}

function tableHead(cursor: Cursor): void {
  row(cursor, COLUMNS, { size: 9, weight: 'bold' })
  rule(cursor, 1)
}

function tableLine(cursor: Cursor, line: LinkedLine): void {
  const cells = cellsOf(line)
  const style = { size: 9 }
  if (cursor.y + heightOf(cursor, cells, style) > BOTTOM) {
    newPage(cursor)
    tableHead(cursor)
  }
  row(cursor, cells, style, line.link)
  rule(cursor, 0.3)
}

function totals(cursor: Cursor, invoice: InvoiceDocument): void {
  const all = totalRowsOf(invoice)
  const [x, width] = [MARGIN + 200, 180]
  if (cursor.y + all.length * 16 > BOTTOM) newPage(cursor)
  cursor.y += 6
  for (const [index, [name, amount]] of all.entries()) {
    const style: TextStyle = { size: 10, weight: index === all.length - 1 ? 'bold' : 'regular', align: 'right' }
    cursor.text.draw(name, x, cursor.y, width, style)
    cursor.y = cursor.text.draw(amount, x + width, cursor.y, WIDTH - 200 - width, style) + 2
  }
}

function notices(cursor: Cursor, invoice: PrintableInvoice): void {
  const all = noticesOf(invoice)
  const style = { size: 9 }
  const height = all.reduce((sum, notice) => sum + cursor.text.heightOf(notice, WIDTH, style) + 5, 0)
  if (cursor.y + height + 14 > BOTTOM) newPage(cursor)
  cursor.y += 14
  for (const notice of all) cursor.y = cursor.text.draw(notice, MARGIN, cursor.y, WIDTH, style) + 5
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
