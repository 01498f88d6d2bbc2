import type { InvoiceDocument } from '../invoice-document.ts'
import { formatCents } from '../../../shared/money/money.ts'
import type { InvoiceState, Payment, PaymentStore, Receivable } from './payment-store.ts'

/** What is owed on an issued tax invoice now. The invoice itself never changes. */
export interface InvoiceBalance {
  readonly state: InvoiceState
  /** By adjustment notes, including GST. */
  readonly credited: string
  readonly paid: string
  /** The total less credits and payments. Negative: to be paid back. */
  readonly amount_due: string
  readonly payments: readonly PaymentView[]
}

export interface PaymentView {
  /** Counts the payments of the invoice from 1. */
  readonly id: number
  readonly paid_on: string
  /** Negative: paid back to the buyer. */
  readonly amount: string
  readonly reference: string
  readonly recorded: string
}

/** A document with what is owed on it; null for previews and adjustment notes. */
export interface BalancedInvoice extends InvoiceDocument {
  readonly balance: InvoiceBalance | null
}

export async function withBalances<Document extends InvoiceDocument>(
  store: Pick<PaymentStore, 'receivables' | 'payments'>,
  documents: readonly Document[],
  today: string,
): Promise<readonly (Document & BalancedInvoice)[]> {
  const numbers = documents.flatMap(({ kind, number }) => (kind === 'tax_invoice' && number !== null ? [number] : []))
  if (numbers.length === 0) return documents.map((document) => ({ ...document, balance: null }))
  const receivables = await store.receivables(numbers, today)
  const payments = Map.groupBy(await store.payments(numbers), ({ number }) => number)
  const balances = new Map(receivables.map((it) => [it.number, balanceOf(it, payments.get(it.number) ?? [])]))
  return documents.map((document) => ({ ...document, balance: balances.get(document.number ?? '') ?? null }))
}

function balanceOf(receivable: Receivable, payments: readonly Payment[]): InvoiceBalance {
  return {
    state: receivable.state,
    credited: formatCents(receivable.credited),
    paid: formatCents(receivable.paid),
    amount_due: formatCents(amountDue(receivable)),
    payments: payments.map(({ sequence, paidOn, amount, reference, recordedAt }) => ({
      id: sequence,
      paid_on: paidOn,
      amount: formatCents(amount),
      reference,
      recorded: new Date(recordedAt).toISOString(),
    })),
  }
}

/** Negative: to be paid back. */
export function amountDue({ total, credited, paid }: Receivable): bigint {
  return total - credited - paid
}
