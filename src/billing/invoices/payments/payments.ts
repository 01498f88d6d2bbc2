import { ApiError } from '../../../shared/errors.ts'
import { formatCents, grouped, parseAud, toCents, type Cents } from '../../../shared/money/money.ts'
import { sydneyDate } from '../../../shared/money/sydney-time.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { InvoiceStore } from '../invoice-store.ts'
import { amountDue } from './balances.ts'
import type { PaymentStore, Receivable } from './payment-store.ts'

/** Records payments of issued invoices, and removes those that were recorded by mistake. */
export interface Payments {
  /** Takes the amount due towards zero and never past it; if the buyer is owed money, the payment is one to the buyer. */
  record(number: string, payment: GivenPayment): Promise<void>
  remove(number: string, payment: number): Promise<void>
}

export interface GivenPayment {
  /** The day of the payment in Sydney, such as 2026-12-03. */
  readonly paidOn: string
  /** Finds the payment again, such as on a bank statement. */
  readonly reference: string
  /** AUD, such as "110.00"; undefined: all that is due. */
  readonly amount: string | undefined
}

const CENT = 10_000_000_000n
const DATE = /^\d{4}-\d\d-\d\d$/
const MAX_REFERENCE = 200

export function openPayments(store: PaymentStore & InvoiceStore, clock: Clock): Payments {
  async function receivableOf(number: string): Promise<Receivable> {
    const [receivable] = await store.receivables([number], sydneyDate(clock.now()))
    if (receivable) return receivable
    throw new ApiError('not_found', `There is no tax invoice "${number.slice(0, 100)}".`, { param: 'number' })
  }

  return {
    async record(number, given) {
      const paidOn = requireDay(given.paidOn, sydneyDate(clock.now()))
      const reference = requireReference(given.reference)
      const due = amountDue(await receivableOf(number))
      const amount = signedAmount(number, due, given.amount)
      const isAdded = await store.addPayment({ number, amount, paidOn, reference, recordedAt: clock.now() }, due)
      if (isAdded) return
      throw new ApiError(
        'conflict',
        `${number} already has this payment, or what is due on it has just changed. Look at it again.`,
      )
    },
    async remove(number, payment) {
      await receivableOf(number)
      if (await store.removePayment(number, payment, clock.now())) return
      throw new ApiError('not_found', `${number} has no payment ${payment}.`, { param: 'payment' })
    },
  }
}

function requireDay(text: string, today: string): string {
  const isDay = DATE.test(text) && new Date(`${text}T00:00:00Z`).toJSON()?.slice(0, 10) === text
  if (isDay && text >= '2000-01-01' && text <= today) return text
  throw new ApiError('invalid_value', "'paid_on' must be a day such as 2026-12-03, and not after today in Sydney.", {
    param: 'paid_on',
  })
}

function requireReference(text: string): string {
  const reference = text.trim()
  if (reference !== '' && reference.length <= MAX_REFERENCE && !/\p{Cc}/u.test(reference)) return reference
  throw new ApiError(
    'invalid_value',
    `'reference' must be one line of 1 to ${MAX_REFERENCE} characters, such as the number on the bank statement.`,
    { param: 'reference' },
  )
}

function signedAmount(number: string, due: Cents, text: string | undefined): Cents {
  if (due === 0n) throw new ApiError('conflict', `Nothing is due on ${number}.`, { param: 'number' })
  const most = due < 0n ? -due : due
  if (text === undefined) return due
  const exact = parseAud(text)
  if (exact === undefined || exact === 0n || exact % CENT !== 0n) {
    throw new ApiError('invalid_value', '\'amount\' must be an amount in dollars and cents, such as "110.00".', {
      param: 'amount',
    })
  }
  const amount = toCents(exact)
  if (amount > most) {
    const what = due < 0n ? 'is to be paid back' : 'is due'
    throw new ApiError('conflict', `Only A$${grouped(formatCents(most))} ${what} on ${number}.`, { param: 'amount' })
  }
  return due < 0n ? -amount : amount
}
