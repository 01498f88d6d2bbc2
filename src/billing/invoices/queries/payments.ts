import type { IssuedInvoice } from '../invoice-store.ts'
import type { InvoiceState, Payment, PaymentStore, Receivable } from '../payments/payment-store.ts'
import { parseSignedAud, toCents } from '../../../shared/money/money.ts'
import { alertEvent } from '../../../alerts/events.ts'
import { addEvent } from '../../../alerts/queries/alerts.ts'
import { command, query, readRows, type Database, type Row, type Statement } from '../../../store/database.ts'

const BILLION = 1_000_000_000n

/** The amounts of a document, if it was issued in this transaction. */
export function addAmounts({ number, workspaceId, issuedAt, document }: IssuedInvoice): Statement {
  const { adjusts, due, total, lines_total } = document
  const lines = parseSignedAud(lines_total)
  return command(
    `INSERT INTO document_amounts (number, invoice, due, total_cents, lines_high, lines_low)
     SELECT number, ?, ?, ?, ?, ? FROM invoices WHERE number = ? AND workspace_id = ? AND issued_at = ?
     ON CONFLICT DO NOTHING`,
    adjusts ?? number,
    due,
    toCents(parseSignedAud(total)),
    lines / BILLION,
    lines % BILLION,
    number,
    workspaceId,
    issuedAt,
  )
}

/**
 * What is owed on each invoice. Notes are rounded one by one, so the notes of an invoice of which no line is left may differ from
 * it by a cent: it still counts as credited in full.
 */
const OWED = `SELECT invoice AS number, due, total, paid,
    CASE WHEN is_nothing_left = 1 OR credited > total THEN total ELSE credited END AS credited
  FROM (
    SELECT invoice, max(due) AS due,
      sum(CASE WHEN number = invoice THEN total_cents ELSE 0 END) AS total,
      sum(CASE WHEN number = invoice THEN 0 ELSE -total_cents END) AS credited,
      CASE WHEN count(*) > 1 AND sum(lines_low) % 1000000000 = 0
        AND sum(lines_high) + sum(lines_low) / 1000000000 = 0 THEN 1 ELSE 0 END AS is_nothing_left,
      (SELECT coalesce(sum(amount_cents), 0) FROM payments
        WHERE payments.number = document_amounts.invoice AND removed_at IS NULL) AS paid
    FROM document_amounts GROUP BY invoice
  ) AS sums`

/** `?` is today. */
const STATE = `CASE
  WHEN total - credited - paid < 0 THEN 'refund_due'
  WHEN total - credited - paid > 0 AND due < ? THEN 'overdue'
  WHEN total - credited - paid > 0 THEN 'due'
  WHEN total > 0 AND credited = total AND paid = 0 THEN 'credited'
  ELSE 'paid' END`

/** The numbers of the invoices in a state. Its values: today and the state. */
export const NUMBERS_IN_STATE = `SELECT number FROM (${OWED}) AS owed
  WHERE number IN (SELECT number FROM invoices WHERE kind = 'tax_invoice') AND ${STATE} = ?`

const ADD = `INSERT INTO payments (number, sequence, amount_cents, paid_on, reference, recorded_at)
  SELECT number, (SELECT coalesce(max(sequence), 0) + 1 FROM payments WHERE payments.number = owed.number), ?, ?, ?, ?
  FROM (${OWED}) AS owed WHERE number = ? AND total - credited - paid = ?
  ON CONFLICT DO NOTHING RETURNING sequence`

const IS_PAID = `invoices WHERE number = ?
  AND EXISTS (SELECT 1 FROM payments WHERE payments.number = invoices.number AND recorded_at = ? AND removed_at IS NULL)
  AND number IN (SELECT number FROM (${OWED}) AS owed WHERE total - credited - paid <= 0)`

/** The event of a payment that was recorded in this transaction, if nothing is owed after it. */
function addPaid({ number, paidOn, recordedAt }: Omit<Payment, 'sequence'>): Statement {
  const data = { number, paid_on: paidOn }
  const event = alertEvent('invoice.paid', { unique: [number, recordedAt], at: recordedAt, data })
  return addEvent(event, IS_PAID, number, recordedAt)
}

export function paymentQueries(database: Database): PaymentStore {
  const { dialect } = database
  return {
    async receivables(numbers, today) {
      const rows = await readRows(
        database,
        `SELECT number, total, credited, paid, ${STATE} AS state FROM (${OWED}) AS owed
         WHERE number IN (SELECT number FROM invoices WHERE kind = 'tax_invoice'
           AND number IN (${dialect.selectTexts('?')}))`,
        today,
        JSON.stringify(numbers),
      )
      return rows.map(toReceivable)
    },
    async payments(numbers) {
      const rows = await readRows(
        database,
        `SELECT number, sequence, amount_cents, paid_on, reference, recorded_at FROM payments
         WHERE number IN (${dialect.selectTexts('?')}) AND removed_at IS NULL ORDER BY number, sequence`,
        JSON.stringify(numbers),
      )
      return rows.map(toPayment)
    },
    async addPayment(payment, expectedDue) {
      const { number, amount, paidOn, reference, recordedAt } = payment
      const adding = query(ADD, amount, paidOn, reference, recordedAt, number, expectedDue)
      // The lock keeps notes and other payments away between reading what is due and recording.
      const statements = amount > 0n ? [adding, addPaid(payment)] : [adding]
      const [added] = await database.transact({ access: 'write', locks: ['invoices'], statements })
      return added?.length === 1
    },
    async removePayment(number, sequence, removedAt) {
      const removing = query(
        `UPDATE payments SET removed_at = ? WHERE number = ? AND sequence = ? AND removed_at IS NULL RETURNING sequence`,
        removedAt,
        number,
        sequence,
      )
      const [removed] = await database.transact({ access: 'write', locks: ['invoices'], statements: [removing] })
      return removed?.length === 1
    },
  }
}

function toReceivable(row: Row): Receivable {
  return {
    number: String(row['number']),
    state: String(row['state']) as InvoiceState,
    total: BigInt(String(row['total'])),
    credited: BigInt(String(row['credited'])),
    paid: BigInt(String(row['paid'])),
  }
}

function toPayment(row: Row): Payment {
  return {
    number: String(row['number']),
    sequence: Number(row['sequence']),
    amount: BigInt(String(row['amount_cents'])),
    paidOn: String(row['paid_on']),
    reference: String(row['reference']),
    recordedAt: Number(row['recorded_at']),
  }
}
