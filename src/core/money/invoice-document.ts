import { formatAbn } from './abn.ts'
import { totalsOf, type InvoiceLine, type Unit } from './invoice.ts'
import { divideHalfUp, formatAud, formatCents } from './money.ts'
import { sydneyDate, type Month } from './sydney-time.ts'

/** A tax invoice or adjustment note as issued. It holds everything on the page, so nothing is looked up later. */
export interface InvoiceDocument {
  readonly object: 'invoice'
  readonly kind: 'tax_invoice' | 'adjustment_note'
  /** null for a preview. */
  readonly number: string | null
  readonly workspace: string
  readonly period: string
  readonly period_from: string
  readonly period_to: string
  readonly issued: string | null
  readonly due: string | null
  readonly currency: 'AUD'
  readonly seller: Party | null
  readonly buyer: Party
  readonly payment: string
  /** The base URL for links to the rows behind each line; null when none is configured. */
  readonly public_url: string | null
  /** The invoice that an adjustment note adjusts; null for an invoice. */
  readonly adjusts: string | null
  /** Why the invoice was adjusted; null for an invoice. */
  readonly reason: string | null
  readonly lines: readonly DocumentLine[]
  /** The sum of the lines before rounding. */
  readonly lines_total: string
  readonly subtotal: string
  readonly gst: string
  readonly total: string
  readonly requests: number
  readonly estimated_requests: number
  /** How many ledger rows the document covers. */
  readonly ledger_rows: number
}

export interface Party {
  readonly name: string
  readonly abn: string | null
  readonly address: string
}

export interface DocumentLine {
  readonly description: string
  readonly model: string
  readonly unit: Unit
  /** Minutes and hours to four decimals; `quantity_ms` is exact. */
  readonly quantity: string
  readonly quantity_ms: string | null
  /** AUD per `rate_per`. */
  readonly rate: string
  readonly rate_per: string
  /** Exact. */
  readonly amount: string
  readonly price_versions: readonly number[]
  /** The path below `public_url` that serves the line's rows to a key of the workspace. */
  readonly rows: string
}

export interface Seller {
  readonly name: string
  /** Eleven digits. */
  readonly abn: string
  readonly address: string
  readonly paymentDays: number
  /** How to pay, such as an account and a reference. */
  readonly paymentDetails: string
  /** The base URL at which buyers reach the API. */
  readonly publicUrl: string | undefined
}

export interface DocumentParts {
  readonly kind: InvoiceDocument['kind']
  readonly number: string | null
  readonly workspace: string
  readonly month: Month
  readonly issuedAt: number | null
  readonly seller: Seller | undefined
  readonly buyer: Party
  readonly lines: readonly InvoiceLine[]
  readonly counts: { readonly requests: number; readonly estimatedRequests: number; readonly rows: number }
  readonly adjusts?: { readonly number: string; readonly reason: string }
}

const DAY_MS = 86_400_000

const wording: Readonly<Record<Unit, { readonly name: string; readonly per: string; readonly times: bigint }>> = {
  input_tokens: { name: 'input tokens', per: '1M tokens', times: 1_000_000n },
  cached_input_tokens: { name: 'cached input tokens', per: '1M tokens', times: 1_000_000n },
  output_tokens: { name: 'output tokens', per: '1M tokens', times: 1_000_000n },
  images: { name: 'images', per: 'image', times: 1n },
  audio_minutes: { name: 'audio, minutes', per: 'minute', times: 1n },
  capacity_hours: { name: 'reserved capacity, hours', per: 'hour', times: 1n },
}

export function documentOf(parts: DocumentParts): InvoiceDocument {
  const { month, issuedAt, seller, lines, counts } = parts
  const { exact, subtotal, gst, total } = totalsOf(lines)
  const [from, to] = [sydneyDate(month.from), sydneyDate(month.to - 1)]
  const rowsQuery = new URLSearchParams(
    parts.kind === 'tax_invoice' ? { from, to } : { credit_note: parts.number ?? '' },
  )
  return {
    object: 'invoice',
    kind: parts.kind,
    number: parts.number,
    workspace: parts.workspace,
    period: month.name,
    period_from: from,
    period_to: to,
    issued: issuedAt === null ? null : sydneyDate(issuedAt),
    due: issuedAt === null || !seller ? null : sydneyDate(issuedAt + seller.paymentDays * DAY_MS),
    currency: 'AUD',
    seller: seller ? { name: seller.name, abn: formatAbn(seller.abn), address: seller.address } : null,
    buyer: parts.buyer,
    payment: seller ? paymentOf(parts.kind, seller) : '',
    public_url: seller?.publicUrl ?? null,
    adjusts: parts.adjusts?.number ?? null,
    reason: parts.adjusts?.reason ?? null,
    lines: lines.map((line) => documentLine(line, rowsQuery)),
    lines_total: formatAud(exact),
    subtotal: formatCents(subtotal),
    gst: formatCents(gst),
    total: formatCents(total),
    requests: counts.requests,
    estimated_requests: counts.estimatedRequests,
    ledger_rows: counts.rows,
  }
}

function paymentOf(kind: InvoiceDocument['kind'], seller: Seller): string {
  if (kind === 'adjustment_note') return 'This amount is deducted from the amount owed.'
  const terms = seller.paymentDays === 0 ? 'Payable on receipt.' : `Payable within ${seller.paymentDays} days.`
  return [terms, seller.paymentDetails].filter((text) => text !== '').join(' ')
}

function documentLine(line: InvoiceLine, rowsQuery: URLSearchParams): DocumentLine {
  const { name, per, times } = wording[line.unit]
  const query = new URLSearchParams(rowsQuery)
  query.set('model', line.model)
  query.set('price_versions', line.priceVersions.join(','))
  query.set('format', 'csv')
  return {
    description: `${line.model}: ${name}${line.imageKind === '' ? '' : `, ${line.imageKind}`}`,
    model: line.model,
    unit: line.unit,
    ...quantityOf(line),
    rate: formatAud(line.rate * times),
    rate_per: per,
    amount: formatAud(line.amount),
    price_versions: line.priceVersions,
    rows: `/api/v1/usage?${query.toString()}`,
  }
}

function quantityOf({ unit, quantity }: InvoiceLine): { quantity: string; quantity_ms: string | null } {
  const ms = unit === 'audio_minutes' ? 60_000n : unit === 'capacity_hours' ? 3_600_000n : undefined
  if (ms === undefined) return { quantity: quantity.toString(), quantity_ms: null }
  const tenThousandths = divideHalfUp(quantity * 10_000n, ms)
  return { quantity: formatAud(tenThousandths * 100_000_000n, 0), quantity_ms: quantity.toString() }
}
