import { hash } from 'node:crypto'
import { escapeHtml } from '../../../shared/html.ts'
import { exactDuration } from '../../../shared/money/exact-duration.ts'
import { formatAud, grouped } from '../../../shared/money/money.ts'
import { writtenDate } from '../../../shared/money/sydney-time.ts'
import { cellsOf, COLUMNS, fullTitle } from '../invoice-wording.ts'
import { lineRowView, type LineRow, type LineRows } from './line-rows.ts'
import { csvCell } from '../../usage/usage-export.ts'

/** The rows of an invoice line, for a browser and as CSV. The page has no scripts and loads nothing. */

const STYLE = `body{font:14px/1.45 system-ui,"Noto Sans",sans-serif;color:#111;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem;margin:0 0 .3rem;overflow-wrap:anywhere}p{margin:.3rem 0}
table{width:100%;border-collapse:collapse;margin:1.2rem 0}
th{text-align:left;border-bottom:2px solid #111;padding:.3rem .5rem}
td{border-bottom:1px solid #ddd;padding:.3rem .5rem;vertical-align:top;overflow-wrap:anywhere}
th:first-child,td:first-child{padding-left:0}th:last-child,td:last-child{padding-right:0}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.t{white-space:nowrap}
.g{color:#555}nav a{margin-right:1.5rem}
@media(max-width:40rem){table{font-size:12px}.t,.n{white-space:normal}}`

/** The page may use only this style sheet, and only its links work. */
export const PAGE_POLICY = `default-src 'none'; style-src 'sha256-${hash('sha256', STYLE, 'base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

const CSV_COLUMNS = [
  'request_id',
  'started',
  'settled',
  'quantity',
  'amount_aud',
  'estimated',
  'outcome',
  'corrects',
  'reason',
]

const time = new Intl.DateTimeFormat('en-AU', {
  timeZone: 'Australia/Sydney',
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})

export interface PageLinks {
  readonly csv: string
  readonly first: string | undefined
  readonly next: string | undefined
  /** The last day on which they work. */
  readonly until: string
}

export function rowPage({ document, line }: LineRows, rows: readonly LineRow[], links: PageLinks): string {
  const [, ...heads] = COLUMNS
  const [description, ...cells] = cellsOf(line)
  const ways = [
    links.first === undefined ? '' : `<a href="${escapeHtml(links.first)}">First page</a>`,
    links.next === undefined ? '' : `<a href="${escapeHtml(links.next)}">Next page</a>`,
    `<a href="${escapeHtml(links.csv)}">All rows as CSV</a>`,
  ]
  return page(
    `${fullTitle(document)}: ${description}`,
    `<h1>${escapeHtml(description)}</h1>
<p>${escapeHtml(fullTitle(document))}, ${writtenDate(document.period_from)} to ${writtenDate(document.period_to)}, for ${escapeHtml(document.buyer.name)}</p>
<table><thead><tr>${heads.map((head) => `<th class="n">${head}</th>`).join('')}</tr></thead>
<tbody><tr>${cells.map((cell) => `<td class="n">${escapeHtml(cell)}</td>`).join('')}</tr></tbody></table>
<table><thead><tr><th>Time in Sydney</th><th>Request</th><th class="n">Quantity</th><th class="n">Amount (AUD)</th></tr></thead>
<tbody>${rows.map((it) => tableRow(it, line.unit)).join('\n')}</tbody></table>
<nav>${ways.filter((way) => way !== '').join('')}</nav>
<p class="g">Each row is one request and its part of this line, excluding GST. This page works until ${writtenDate(links.until)}.</p>`,
  )
}

/** The page for a link that does not work. */
export function refusalPage(message: string): string {
  return page('Invoice rows', `<h1>This link does not work</h1><p>${escapeHtml(message)}</p>`)
}

export async function* rowsCsv({ all }: LineRows): AsyncGenerator<string> {
  yield `${CSV_COLUMNS.join(',')}\n`
  for await (const rows of all()) yield rows.map(csvLine).join('')
}

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en-AU"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>${escapeHtml(title)}</title>
<style>${STYLE}</style></head><body>
${body}
</body></html>
`
}

function tableRow({ row, quantity, amount }: LineRow, unit: LineRows['line']['unit']): string {
  const remarks = [
    row.estimated ? 'estimated' : '',
    row.outcome === 'completed' ? '' : row.outcome.replaceAll('_', ' '),
    row.correction ? `reverses ${row.correction.of}: ${row.correction.reason}` : '',
    row.credit?.reason ?? '',
  ].filter((text) => text !== '')
  const remark = remarks.length === 0 ? '' : `<br><span class="g">${escapeHtml(remarks.join(', '))}</span>`
  return `<tr><td class="t">${time.format(row.settledAt)}</td><td>${escapeHtml(row.requestId)}${remark}</td><td class="n">${quantityText(quantity, unit)}</td><td class="n">${grouped(formatAud(amount))}</td></tr>`
}

function quantityText(quantity: bigint, unit: LineRows['line']['unit']): string {
  if (unit === 'capacity_hours') return exactDuration(quantity, 'h')
  return unit === 'audio_minutes' || unit === 'rounding' ? exactDuration(quantity, 'min') : grouped(quantity.toString())
}

/** Times in the quantity are milliseconds. */
function csvLine(row: LineRow): string {
  return `${Object.values(lineRowView(row)).map(csvCell).join(',')}\n`
}
