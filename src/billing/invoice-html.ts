import { escapeHtml } from '../core/html.ts'
import type { DocumentLine, InvoiceDocument, Party } from '../core/money/invoice-document.ts'
import { grouped, headingOf, noticesOf, rowsLink } from './invoice-wording.ts'

/** Renders an invoice as one self-contained HTML page that prints well. */
export function invoiceHtml(invoice: InvoiceDocument): string {
  const { seller, buyer } = invoice
  const facts = [
    ['Number', invoice.number ?? 'preview'],
    ['Issued', invoice.issued],
    ['Period', `${invoice.period_from} to ${invoice.period_to}`],
    ['Due', invoice.kind === 'tax_invoice' ? invoice.due : null],
    ['Adjusts', invoice.adjusts],
    ['Reason', invoice.reason],
  ].flatMap(([name, value]) =>
    value === null || value === undefined ? [] : [`<dt>${name}</dt><dd>${escapeHtml(value)}</dd>`],
  )
  return `<!doctype html>
<html lang="en-AU"><head><meta charset="utf-8"><title>${escapeHtml(`${headingOf(invoice)} ${invoice.number ?? ''}`)}</title>
<style>
body{font:14px/1.45 system-ui,sans-serif;color:#111;max-width:56rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin:0 0 1rem}
header{display:flex;gap:2rem;justify-content:space-between;flex-wrap:wrap}
dl{display:grid;grid-template-columns:auto 1fr;gap:.1rem 1rem;margin:0}dt{color:#555}dd{margin:0}
table{width:100%;border-collapse:collapse;margin:1.5rem 0}
th{text-align:left;border-bottom:2px solid #111;padding:.3rem .5rem}
td{border-bottom:1px solid #ddd;padding:.3rem .5rem;vertical-align:top;overflow-wrap:anywhere}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
tfoot td{border:0}tfoot tr:last-child td{font-weight:700;border-top:2px solid #111}
address{font-style:normal;white-space:pre-line}
@media print{body{margin:0}a{color:inherit;text-decoration:none}}
</style></head><body>
<h1>${headingOf(invoice)}</h1>
<header>
<section><strong>From</strong>${seller ? party(seller) : '<p>The seller is not configured.</p>'}</section>
<section><strong>To</strong>${party(buyer)}</section>
<dl>${facts.join('')}</dl>
</header>
<table><thead><tr><th>Description</th><th class="n">Quantity</th><th class="n">Rate (AUD)</th><th class="n">Amount (AUD)</th></tr></thead>
<tbody>${invoice.lines.map((it) => line(it, invoice)).join('')}</tbody>
<tfoot>
<tr><td colspan="3" class="n">Sum of the lines</td><td class="n">${grouped(invoice.lines_total)}</td></tr>
<tr><td colspan="3" class="n">Subtotal, excluding GST</td><td class="n">${grouped(invoice.subtotal)}</td></tr>
<tr><td colspan="3" class="n">GST 10 %</td><td class="n">${grouped(invoice.gst)}</td></tr>
<tr><td colspan="3" class="n">Total, AUD including GST</td><td class="n">${grouped(invoice.total)}</td></tr>
</tfoot></table>
${noticesOf(invoice)
  .map((notice) => `<p>${escapeHtml(notice)}</p>`)
  .join('\n')}
</body></html>
`
}

function party({ name, abn, address }: Party): string {
  return `<address>${[name, abn === null ? '' : `ABN ${abn}`, address]
    .filter((text) => text !== '')
    .map(escapeHtml)
    .join('\n')}</address>`
}

function line(it: DocumentLine, invoice: InvoiceDocument): string {
  return `<tr><td>${escapeHtml(it.description)} (<a href="${escapeHtml(rowsLink(invoice, it) ?? it.rows)}">rows</a>)</td><td class="n">${grouped(it.quantity)}</td><td class="n">${grouped(it.rate)} / ${it.rate_per}</td><td class="n">${grouped(it.amount)}</td></tr>`
}
