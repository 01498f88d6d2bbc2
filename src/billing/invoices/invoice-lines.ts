import { exactDuration } from '../../shared/money/exact-duration.ts'
import type { InvoiceLine, Unit } from './invoice.ts'
import { divideHalfUp, formatAud, grouped } from '../../shared/money/money.ts'

/** A line as the document has it. */
export interface DocumentLine {
  readonly description: string
  readonly model: string
  readonly unit: Unit
  /** In full and as printed, such as "42,500,123" or "62 min 5.5 s". */
  readonly quantity_text: string
  /** Minutes and hours are rounded to four decimals; `quantity_ms` is exact. */
  readonly quantity: string
  readonly quantity_ms: string | null
  /** AUD per `rate_per`. */
  readonly rate: string
  readonly rate_per: string
  /** Exact. */
  readonly amount: string
  readonly price_versions: readonly number[]
  /** The path below `public_url` that serves the rows behind the line to a key of the workspace; replaced once it is issued. */
  readonly rows: string
}

interface Wording {
  readonly name: string
  readonly per: string
  readonly times: bigint
}

const wording: Readonly<Record<Unit, Wording>> = {
  input_tokens: { name: 'input tokens', per: '1M tokens', times: 1_000_000n },
  cached_input_tokens: { name: 'cached input tokens', per: '1M tokens', times: 1_000_000n },
  output_tokens: { name: 'output tokens', per: '1M tokens', times: 1_000_000n },
  images: { name: 'images', per: 'image', times: 1n },
  audio_minutes: { name: 'audio', per: 'minute', times: 1n },
  capacity_hours: { name: 'reserved capacity', per: 'hour', times: 1n },
  rounding: { name: 'each request rounded to 12 decimals', per: 'line', times: 1n },
  credit: { name: 'credit', per: 'credit', times: 1n },
}

export function linesOfDocument(lines: readonly InvoiceLine[], rowsQuery: URLSearchParams): DocumentLine[] {
  return lines.map((line) => {
    const { per, times } = wording[line.unit]
    const query = new URLSearchParams(rowsQuery)
    query.set('model', line.model)
    query.set('price_versions', line.priceVersions.join(','))
    query.set('format', 'csv')
    return {
      description: descriptionOf(line),
      model: line.model,
      unit: line.unit,
      ...quantityOf(line),
      rate: formatAud(line.rate * times),
      rate_per: per,
      amount: formatAud(line.amount),
      price_versions: line.priceVersions,
      rows: `/api/v1/usage?${query.toString()}`,
    }
  })
}

function descriptionOf({ model, unit, imageKind, tier, reason, amount }: InvoiceLine): string {
  if (unit === 'credit') return `${amount < 0n ? 'Credit' : 'Credit taken back'}: ${reason}`
  const details = [wording[unit].name, imageKind, tier === 'default' ? '' : `${tier} tier`]
  return `${model}: ${details.filter((it) => it !== '').join(', ')}`
}

function quantityOf({ unit, quantity }: InvoiceLine): Pick<DocumentLine, 'quantity' | 'quantity_ms' | 'quantity_text'> {
  const ms = unit === 'audio_minutes' ? 60_000n : unit === 'capacity_hours' ? 3_600_000n : undefined
  if (ms === undefined) {
    return { quantity_text: grouped(quantity.toString()), quantity: quantity.toString(), quantity_ms: null }
  }
  const tenThousandths = divideHalfUp(quantity * 10_000n, ms)
  return {
    quantity_text: exactDuration(quantity, unit === 'capacity_hours' ? 'h' : 'min'),
    quantity: formatAud(tenThousandths * 100_000_000n, 0),
    quantity_ms: quantity.toString(),
  }
}
