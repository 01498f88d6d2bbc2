import { escapeHtml } from '../../shared/html.ts'
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
} from './invoice-wording.ts'

/** Renders an invoice as one self-contained HTML page that prints well. */
export function invoiceHtml(invoice: PrintableInvoice): string {
  const title = fullTitle(invoice)
  const [label, amount, by] = headlineOf(invoice)
  const digits = Math.max(...amountsOf(invoice).map((it) => fractionOf(it).length))
  return `<!doctype html>
<html lang="en-AU"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(title)}</title>
<style>
@page{size:A4;margin:16mm 16mm 20mm;@bottom-center{content:"${cssText(title)} · page " counter(page) " of " counter(pages);font:8pt system-ui,sans-serif;color:#555}}
body{font:14px/1.45 system-ui,"Noto Sans",sans-serif;color:#111;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin:0}.top{display:flex;justify-content:space-between;gap:1.5rem;margin:0 0 1rem}
.due{text-align:right}.due p{margin:0}.due strong{font-size:1.4rem}.label{font-size:.8rem;color:#555}
header{display:grid;grid-template-columns:repeat(3,minmax(0,1fr));gap:1.5rem}
h2{font-size:.8rem;font-weight:400;color:#555;margin:0}
header p,dd{margin:0;overflow-wrap:anywhere}.name{font-weight:700}.text{white-space:pre-line}
dl{margin:0}dt{font-size:.8rem;color:#555}dd{margin-bottom:.25rem}
table{width:100%;border-collapse:collapse;margin:1.5rem 0 0}
th{text-align:left;border-bottom:2px solid #111;padding:.3rem .5rem}
td{border-bottom:1px solid #ddd;padding:.3rem .5rem;vertical-align:top;overflow-wrap:anywhere}
tr{break-inside:avoid}
th:first-child,td:first-child{padding-left:0}th:last-child,td:last-child{padding-right:0}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.totals{width:auto;margin:1rem 0 1.5rem auto;break-inside:avoid}.totals td{border:0;padding-left:2rem}
.totals .sum td{font-weight:700;border-top:2px solid #111}
.end{break-inside:avoid}.notices p{margin:.4rem 0}
@media(max-width:40rem){header{grid-template-columns:1fr}.n{white-space:normal}}
@media print{body{margin:0;padding:0;max-width:none;font-size:9.5pt}a{color:inherit}}
</style></head><body>
<div class="top"><h1>${escapeHtml(invoice.title)}</h1>
<div class="due"><p class="label">${label}</p><p><strong>${amount}</strong></p><p>${by}</p></div></div>
<header>
${partiesOf(invoice)
  .map(([role, name, details]) => section(role, name, details))
  .join('\n')}
<dl>${factsOf(invoice)
    .map(([name, value]) => `<dt>${name}</dt><dd>${escapeHtml(value)}</dd>`)
    .join('')}</dl>
</header>
<table><thead><tr>${COLUMNS.map((name, index) => `<th${index === 0 ? '' : ' class="n"'}>${name}</th>`).join('')}</tr></thead>
<tbody>${invoice.lines.map((it) => line(it, digits)).join('\n')}</tbody></table>
<div class="end"><table class="totals"><tbody>
${[totalRowsOf(invoice), balanceRowsOf(invoice)].flatMap((rows) => rows.map(([name, figure], index) => totalRow(name, padded(figure, digits), index === rows.length - 1))).join('\n')}
</tbody></table>
<div class="notices">
${noticesOf(invoice)
  .map((notice) => `<p class="text">${escapeHtml(notice)}</p>`)
  .join('\n')}
</div></div>
</body></html>
`
}

function section(role: string, name: string, details: string): string {
  return `<section><h2>${role}</h2><p class="name">${escapeHtml(name)}</p><p class="text">${escapeHtml(details)}</p></section>`
}

function totalRow(name: string, figure: string, isSum: boolean): string {
  return `<tr${isSum ? ' class="sum"' : ''}><td class="n">${escapeHtml(name)}</td><td class="n">${figure}</td></tr>`
}

/** Spaces as wide as a digit put the decimal points of a column below each other. */
function padded(figure: string, digits: number): string {
  return figure + '\u2007'.repeat(digits - fractionOf(figure).length)
}

function line(it: LinkedLine, digits: number): string {
  const [description = '', quantity = '', rate = '', amount = ''] = cellsOf(it).map(escapeHtml)
  const numbers = [quantity, rate, padded(amount, digits)]
  const rows = it.link ? ` (<a href="${escapeHtml(it.link)}">rows</a>)` : ''
  return `<tr><td>${description}${rows}</td>${numbers.map((cell) => `<td class="n">${cell}</td>`).join('')}</tr>`
}

/** Numbers and titles are plain text, but nothing may end the string or the style. */
function cssText(text: string): string {
  return text.replaceAll(/[^\w :-]/g, '')
}
