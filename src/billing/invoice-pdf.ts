import PDFDocument from 'pdfkit'
import type { DocumentLine, InvoiceDocument, Party } from '../core/money/invoice-document.ts'
import { grouped, headingOf, noticesOf, rowsLink } from './invoice-wording.ts'

/** Renders an invoice as an A4 PDF with numbered pages. */

type Pdf = InstanceType<typeof PDFDocument>

const MARGIN = 50
const WIDTH = 495
const BOTTOM = 770
/** Left edge and width of each column. */
const COLUMNS = {
  description: [MARGIN, 215],
  quantity: [265, 85],
  rate: [350, 100],
  amount: [450, 95],
} as const
type Column = keyof typeof COLUMNS

export function invoicePdf(invoice: InvoiceDocument): Promise<Buffer> {
  const title = `${headingOf(invoice)} ${invoice.number ?? ''}`.trim()
  const page = new PDFDocument({
    size: 'A4',
    margin: MARGIN,
    bufferPages: true,
    info: { Title: title, Author: invoice.seller?.name ?? 'Weir', ...dateOf(invoice) },
  })
  const chunks: Buffer[] = []
  const done = new Promise<Buffer>((resolve, reject) => {
    page.on('data', (chunk: Buffer) => chunks.push(chunk))
    page.on('end', () => resolve(Buffer.concat(chunks)))
    page.on('error', reject)
  })
  head(page, invoice)
  tableHead(page)
  for (const line of invoice.lines) tableLine(page, line, rowsLink(invoice, line))
  totals(page, invoice)
  notices(page, invoice)
  pageNumbers(page, title)
  page.end()
  return done
}

/** A fixed creation date, so that an invoice always produces the same file. */
function dateOf({ issued }: InvoiceDocument): { CreationDate?: Date } {
  return issued === null ? {} : { CreationDate: new Date(`${issued}T00:00:00Z`) }
}

function head(page: Pdf, invoice: InvoiceDocument): void {
  page.font('Helvetica-Bold').fontSize(20).text(headingOf(invoice), MARGIN, MARGIN)
  const top = page.y + 16
  party(page, 'From', invoice.seller ?? { name: 'not configured', abn: null, address: '' }, MARGIN, top)
  const left = page.y
  party(page, 'To', invoice.buyer, 220, top)
  const middle = page.y
  facts(page, invoice, 390, top)
  page.x = MARGIN
  page.y = Math.max(left, middle, page.y) + 20
}

function party(page: Pdf, role: string, { name, abn, address }: Party, x: number, y: number): void {
  page.font('Helvetica').fontSize(8).fillColor('#666').text(role, x, y, { width: 160 })
  page.font('Helvetica-Bold').fontSize(10).fillColor('#000').text(name, { width: 160 })
  page.font('Helvetica').fontSize(9)
  if (abn !== null) page.text(`ABN ${abn}`, { width: 160 })
  if (address !== '') page.text(address, { width: 160 })
}

function facts(page: Pdf, invoice: InvoiceDocument, x: number, y: number): void {
  const all: readonly [string, string | null][] = [
    ['Number', invoice.number],
    ['Date of issue', invoice.issued],
    ['Period', `${invoice.period_from} to ${invoice.period_to}`],
    ['Due', invoice.kind === 'tax_invoice' ? invoice.due : null],
    ['Adjusts', invoice.adjusts],
    ['Reason', invoice.reason],
  ]
  page.y = y
  for (const [name, value] of all) {
    if (value === null) continue
    page.font('Helvetica').fontSize(8).fillColor('#666').text(name, x, page.y, { width: 155 })
    page.fontSize(9).fillColor('#000').text(value, x, page.y, { width: 155 })
  }
}

function tableHead(page: Pdf): void {
  page.font('Helvetica-Bold').fontSize(9)
  row(page, { description: 'Description', quantity: 'Quantity', rate: 'Rate (AUD)', amount: 'Amount (AUD)' })
  rule(page, 1)
}

function tableLine(page: Pdf, line: DocumentLine, link: string | undefined): void {
  page.font('Helvetica').fontSize(9)
  if (page.y + page.heightOfString(line.description, { width: COLUMNS.description[1] }) > BOTTOM - 20) {
    page.addPage()
    tableHead(page)
    page.font('Helvetica').fontSize(9)
  }
  row(
    page,
    {
      description: line.description,
      quantity: grouped(line.quantity),
      rate: `${grouped(line.rate)} / ${line.rate_per}`,
      amount: grouped(line.amount),
    },
    link,
  )
  rule(page, 0.3)
}

function totals(page: Pdf, invoice: InvoiceDocument): void {
  if (page.y > BOTTOM - 100) page.addPage()
  page.moveDown(0.5)
  const all: readonly [string, string][] = [
    ['Sum of the lines', invoice.lines_total],
    ['Subtotal, excluding GST', invoice.subtotal],
    ['GST 10 %', invoice.gst],
    ['Total, AUD including GST', invoice.total],
  ]
  for (const [index, [name, amount]] of all.entries()) {
    page.font(index === all.length - 1 ? 'Helvetica-Bold' : 'Helvetica').fontSize(10)
    const y = page.y
    page.text(name, COLUMNS.quantity[0], y, { width: 185, align: 'right' })
    page.text(grouped(amount), COLUMNS.amount[0], y, { width: COLUMNS.amount[1], align: 'right' })
    page.moveDown(0.2)
  }
}

function notices(page: Pdf, invoice: InvoiceDocument): void {
  if (page.y > BOTTOM - 80) page.addPage()
  page.moveDown(1.5)
  page.font('Helvetica').fontSize(9)
  for (const notice of noticesOf(invoice)) page.text(notice, MARGIN, page.y, { width: WIDTH }).moveDown(0.4)
}

function row(page: Pdf, cells: Readonly<Record<Column, string>>, link?: string): void {
  const y = page.y
  let bottom = y
  for (const column of Object.keys(COLUMNS) as Column[]) {
    const [x, width] = COLUMNS[column]
    const isFirst = column === 'description'
    const linked = isFirst && link !== undefined ? { link, underline: true } : {}
    page.text(cells[column], x, y, { width: width - 4, align: isFirst ? 'left' : 'right', ...linked })
    bottom = Math.max(bottom, page.y)
  }
  page.y = bottom + 2
}

function rule(page: Pdf, thickness: number): void {
  page
    .lineWidth(thickness)
    .moveTo(MARGIN, page.y)
    .lineTo(MARGIN + WIDTH, page.y)
    .stroke('#888')
  page.y += 4
}

function pageNumbers(page: Pdf, title: string): void {
  const { start, count } = page.bufferedPageRange()
  for (let index = start; index < start + count; index++) {
    page.switchToPage(index)
    // The page number is below the margin, where text would otherwise start a new page.
    page.page.margins.bottom = 0
    page.font('Helvetica').fontSize(8).fillColor('#666')
    page.text(`${title} · page ${index + 1} of ${count}`, MARGIN, 800, { width: WIDTH, align: 'center' })
    page.fillColor('#000')
  }
}
