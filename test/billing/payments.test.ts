import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import { testBooks } from '../support/books.ts'

/** Payments of an invoice of A$110.00, issued on 1 December 2026 and due on 15 December. */

const november = parseMonth('2026-11')!
const december = parseMonth('2026-12')!
const DAY_MS = 86_400_000

async function stage(t: TestContext) {
  const books = await testBooks(november.from)
  t.after(() => books.close())
  const acme = await books.workspace('acme')
  const version = await books.price('meta/a', { input_per_million: '1' }, november.from - 1)
  await books.settle([await books.row(acme, 'meta/a', version, november.from, { inputTokens: 100_000_000 })])
  books.now = december.from
  const { invoicing } = books
  const { number } = await invoicing.issue(acme, november)
  assert.equal(number, 'INV-000001')
  const balance = async () => (await invoicing.balanced(await invoicing.byNumber('INV-000001'))).balance
  const pay = (amount?: string, paidOn = '2026-12-01', reference = 'bank 1') =>
    invoicing.payments.record('INV-000001', { paidOn, reference, amount })
  const brief = async () => {
    const it = await balance()
    return [it?.state, it?.amount_due, it?.credited, it?.paid]
  }
  return { books, acme, invoicing, balance, brief, pay }
}

describe('a payment', () => {
  it('is of all that is due, unless an amount is given', async (t) => {
    const { books, brief, balance, pay } = await stage(t)
    assert.deepEqual(await brief(), ['due', '110.00', '0.00', '0.00'])
    await pay('10.50', '2026-12-01', '  bank 1 ')
    assert.deepEqual(await brief(), ['due', '99.50', '0.00', '10.50'])
    await pay(undefined, '2026-12-01', 'bank 2')
    assert.deepEqual(await balance(), {
      state: 'paid',
      credited: '0.00',
      paid: '110.00',
      amount_due: '0.00',
      payments: [
        { id: 1, paid_on: '2026-12-01', amount: '10.50', reference: 'bank 1', recorded: '2026-11-30T13:00:00.000Z' },
        { id: 2, paid_on: '2026-12-01', amount: '99.50', reference: 'bank 2', recorded: '2026-11-30T13:00:00.000Z' },
      ],
    })
    books.now += 400 * DAY_MS
    assert.equal((await balance())?.state, 'paid')
  })

  it('makes a due invoice overdue only after the due day has ended in Sydney', async (t) => {
    const { books, brief } = await stage(t)
    books.now = december.from + 15 * DAY_MS - 1
    assert.equal((await brief())[0], 'due')
    books.now += 1
    assert.equal((await brief())[0], 'overdue')
  })

  it('is never more than what is due, on a day that has been, and with a reference', async (t) => {
    const { brief, pay } = await stage(t)
    await assert.rejects(pay('110.01'), { code: 'conflict', message: 'Only A$110.00 is due on INV-000001.' })
    for (const amount of ['0', '0.00', '1.001', '-1.00', '1e2', '']) {
      await assert.rejects(pay(amount), { code: 'invalid_value', param: 'amount' }, amount)
    }
    for (const day of ['2026-12-02', '2026-02-30', '2026-13-01', '26-12-01', '1999-12-31', '2026-12-01T00']) {
      await assert.rejects(pay('1.00', day), { code: 'invalid_value', param: 'paid_on' }, day)
    }
    for (const reference of ['', ' ', 'two\nlines', 'x'.repeat(201)]) {
      await assert.rejects(pay('1.00', '2026-12-01', reference), { code: 'invalid_value', param: 'reference' })
    }
    await pay('1.00')
    await assert.rejects(pay('1.00'), { code: 'conflict', message: /already has this payment/ })
    assert.deepEqual(await brief(), ['due', '109.00', '0.00', '1.00'])
  })

  it('goes back to the buyer if a credit comes after it', async (t) => {
    const { acme, invoicing, brief, pay } = await stage(t)
    await pay()
    await assert.rejects(pay(), { code: 'conflict', message: 'Nothing is due on INV-000001.' })
    await invoicing.creditAmount(acme, november, '25.00', 'slow answers')
    assert.deepEqual(await brief(), ['refund_due', '-27.50', '27.50', '110.00'])
    await assert.rejects(pay('27.51', '2026-12-01', 'back'), {
      message: 'Only A$27.50 is to be paid back on INV-000001.',
    })
    await pay('27.50', '2026-12-01', 'back')
    assert.deepEqual(await brief(), ['paid', '0.00', '27.50', '82.50'])
  })

  it('that was recorded by mistake is removed', async (t) => {
    const { invoicing, brief, pay } = await stage(t)
    await pay()
    await assert.rejects(invoicing.payments.remove('INV-000001', 2), { code: 'not_found', param: 'payment' })
    await invoicing.payments.remove('INV-000001', 1)
    assert.deepEqual(await brief(), ['due', '110.00', '0.00', '0.00'])
  })

  it('belongs to a tax invoice', async (t) => {
    const { acme, invoicing } = await stage(t)
    const note = await invoicing.credit(acme, november, null, 'wrong buyer')
    for (const number of [note.number ?? '', 'INV-9']) {
      const given = { paidOn: '2026-12-01', reference: 'x', amount: undefined }
      await assert.rejects(invoicing.payments.record(number, given), { code: 'not_found', param: 'number' })
      await assert.rejects(invoicing.payments.remove(number, 1), { code: 'not_found', param: 'number' })
    }
    assert.equal((await invoicing.balanced(note)).balance, null)
  })
})

describe('an invoice that is credited', () => {
  it('in full is owed nothing, and the one that replaces it is owed all', async (t) => {
    const { acme, invoicing, brief } = await stage(t)
    await invoicing.credit(acme, november, null, 'wrong buyer')
    assert.deepEqual(await brief(), ['credited', '0.00', '110.00', '0.00'])
    const again = await invoicing.balanced(await invoicing.issue(acme, november))
    assert.deepEqual([again.number, again.balance?.state, again.balance?.amount_due], ['INV-000002', 'due', '110.00'])
  })
})
