import type { Cents } from '../../../shared/money/money.ts'

export const invoiceStates = ['due', 'overdue', 'paid', 'credited', 'refund_due'] as const

/**
 * `credited`: in full, and nothing was paid. `refund_due`: more was paid than is owed after credits.
 */
export type InvoiceState = (typeof invoiceStates)[number]

/** What is owed on a tax invoice, which never changes itself. */
export interface Receivable {
  readonly number: string
  readonly state: InvoiceState
  readonly total: Cents
  /** By adjustment notes: never more than the total, and exactly the total if no line is left. */
  readonly credited: Cents
  /** Less what was paid back. */
  readonly paid: Cents
}

/** A payment, or what was paid back if its amount is negative. */
export interface Payment {
  readonly number: string
  /** Counts the payments of the invoice from 1. */
  readonly sequence: number
  readonly amount: Cents
  /** A day, such as 2026-12-03. */
  readonly paidOn: string
  readonly reference: string
  readonly recordedAt: number
}

/** Payments of issued invoices. */
export interface PaymentStore {
  /** Of those numbers that are tax invoices. `today` in Sydney decides what is overdue. */
  receivables(numbers: readonly string[], today: string): Promise<readonly Receivable[]>
  /** In the order in which they were recorded, without those that were removed. */
  payments(numbers: readonly string[]): Promise<readonly Payment[]>
  /**
   * Records a payment under the next number of its invoice. false, with no effect, if the amount due is not the expected one, or if
   * the invoice already has the same payment.
   */
  addPayment(payment: Omit<Payment, 'sequence'>, expectedDue: Cents): Promise<boolean>
  /** Marks a payment as removed. false if there is none. */
  removePayment(number: string, sequence: number, removedAt: number): Promise<boolean>
}
