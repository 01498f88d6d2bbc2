import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { openInvoicing } from '../../src/billing/invoices/invoices.ts'
import { reconcileLedger } from '../../src/ledger/reconcile/reconcile.ts'
import { memorySpending } from '../../src/workspaces/spend-limits/memory.ts'
import { parseSignedAud } from '../../src/shared/money/money.ts'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import type { ApiError } from '../../src/shared/errors.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import { seller, testBooks, type TestBooks } from '../support/books.ts'

/** What a finance team meets with its first invoices: the buyer, credits of any amount, and a month issued again. */

const month = parseMonth('2026-07')!
const ALL = { from: 0, to: Number.MAX_SAFE_INTEGER, limit: 1000 }
const emptyBuyer = { name: null, abn: null, address: null, purchaseOrder: null, email: null }

/** A workspace that owes A$100 for July: two requests of A$60 and A$40. It is August. */
async function stage(t: TestContext, dollars: readonly number[] = [60, 40]) {
  const books = await testBooks(month.to + 1)
  t.after(() => books.close())
  const workspace = await books.workspace('acme')
  const version = await books.price('m', { input_per_million: '1' }, 0)
  const rows = await Promise.all(
    dollars.map((it, index) => books.row(workspace, 'm', version, month.from + index, { inputTokens: it * 1_000_000 })),
  )
  await books.settle(rows)
  return { books, workspace, version, ids: rows.map(({ requestId }) => requestId) }
}

async function fits(books: TestBooks): Promise<void> {
  assert.deepEqual((await reconcileLedger(books.store)).problems, [])
}

async function amountOfAll(books: TestBooks, { id }: Workspace): Promise<bigint> {
  const rows = await books.store.usage({ workspaceId: id, ...ALL })
  return rows.reduce((sum, { amount }) => sum + amount, 0n)
}

describe('an invoice of A$1,000 or more', () => {
  // Including GST: A$909.09 + 90.91 is A$1,000.00 exactly.
  const exactly = [909.09] as const

  it('is refused without the buyer, and the error names what is missing', async (t) => {
    const { books, workspace } = await stage(t, exactly)
    for (const [buyer, missing, present] of [
      [emptyBuyer, /Missing: the buyer's name and the buyer's ABN \(or its address/, /never/],
      [{ ...emptyBuyer, name: 'Acme Pty Ltd' }, /Missing: the buyer's ABN/, /buyer's name and/],
      [
        { ...emptyBuyer, abn: '83914571673' },
        /Missing: the buyer's name\. Set it with weir workspaces set "acme"/,
        /ABN \(or/,
      ],
      [{ ...emptyBuyer, name: ' ', address: ' ' }, /Missing: the buyer's name and the buyer's ABN/, /never/],
    ] as const) {
      const issue = books.invoicing.issue({ ...workspace, buyer }, month)
      const error = await issue.then(
        () => assert.fail('it was issued'),
        (it: ApiError) => it,
      )
      assert.deepEqual([error.code, error.param], ['conflict', 'buyer'])
      assert.match(error.message, missing)
      assert.doesNotMatch(error.message, present)
    }
    assert.equal(await books.store.lastSequence('tax_invoice'), 0, 'no number is used up')
    const preview = await books.invoicing.preview({ ...workspace, buyer: emptyBuyer }, month)
    assert.match(preview.warnings.join(), /Missing: the buyer's name/)
  })

  for (const buyer of [
    { ...emptyBuyer, name: 'Acme Pty Ltd', abn: '83914571673' },
    { ...emptyBuyer, name: 'Acme GmbH', address: '1010 Wien' },
  ]) {
    it(`is issued with a name and ${buyer.abn === null ? 'an address' : 'an ABN'}`, async (t) => {
      const { books, workspace } = await stage(t, exactly)
      const { total, warnings } = await books.invoicing.issue({ ...workspace, buyer }, month)
      assert.deepEqual([total, warnings], ['1000.00', []])
    })
  }

  it('is issued one cent below, and neither it nor its preview asks for the buyer', async (t) => {
    const { books, workspace } = await stage(t, [909.08])
    const nameless = { ...workspace, buyer: emptyBuyer }
    assert.deepEqual((await books.invoicing.preview(nameless, month)).warnings, [])
    const { total, warnings } = await books.invoicing.issue(nameless, month)
    assert.deepEqual([total, warnings], ['999.99', []])
  })
})

describe('the documents of a month', () => {
  it('show the purchase order and the buyer of that day; a note shows those of its invoice', async (t) => {
    const { books, workspace, ids } = await stage(t)
    const before = { name: 'Old Pty Ltd', abn: '83914571673', address: null, purchaseOrder: 'PO-1', email: null }
    const after = { name: 'New Pty Ltd', abn: null, address: 'Perth', purchaseOrder: 'PO-2', email: null }
    const invoice = await books.invoicing.issue({ ...workspace, buyer: before }, month)
    const renamed = { ...workspace, buyer: after }
    const notes = [
      await books.invoicing.credit(renamed, month, [ids[0]!], 'Blank.'),
      await books.invoicing.creditAmount(renamed, month, '1.00', 'Sorry.'),
      await books.invoicing.credit(renamed, month, null, 'Wrong buyer.'),
    ]
    for (const { buyer, purchase_order: order, adjusts } of notes) {
      assert.deepEqual([buyer, order, adjusts], [invoice.buyer, 'PO-1', 'INV-000001'])
    }
    const again = await books.invoicing.issue(renamed, month)
    assert.deepEqual([again.buyer.name, again.purchase_order], ['New Pty Ltd', 'PO-2'])
    await fits(books)
  })

  it('count "1 request" and "1 day" in the singular', async (t) => {
    const { books, workspace } = await stage(t, [5])
    const clock = { now: () => books.now, monotonic: () => 0 }
    const { notices } = await openInvoicing(books.store, clock, { ...seller, paymentDays: 1 }).preview(workspace, month)
    assert.match(notices.join('\n'), /Payable within 1 day\./)
    assert.match(notices.join('\n'), /\n1 request\.$/)
  })
})

describe('every printed line', () => {
  it('is its quantity at its rate, even if rows were rounded, and the lines add up', async (t) => {
    const { books, workspace } = await stage(t)
    // A third of a pico-dollar for each millisecond.
    const version = await books.price('speech', { per_audio_minute: '0.00000002' }, 0)
    const rows = [2, 2, 2, 61_000].map((audioMs, index) =>
      books.row(workspace, 'speech', version, month.from + index, { audioMs }),
    )
    await books.settle(await Promise.all(rows))
    const { lines, lines_total: total } = await books.invoicing.issue(workspace, month)
    assert.deepEqual(
      lines.map(({ unit, quantity_text: quantity }) => [unit, quantity]),
      [
        ['input_tokens', '100,000,000'],
        ['audio_minutes', '1 min 1.006 s'],
        ['rounding', '1'],
      ],
    )
    let sum = 0n
    for (const { unit, quantity_text: quantity, rate, amount } of lines) {
      sum += parseSignedAud(amount)
      const times = unit === 'audio_minutes' ? 61_006n : BigInt(quantity.replaceAll(',', ''))
      const per = unit === 'audio_minutes' ? 60_000n : unit === 'input_tokens' ? 1_000_000n : 1n
      assert.equal((2n * times * parseSignedAud(rate) + per) / (2n * per), parseSignedAud(amount), unit)
    }
    assert.equal(sum, parseSignedAud(total))
    assert.equal(sum, await amountOfAll(books, workspace))
    await fits(books)
  })
})

describe('crediting all of an invoice', () => {
  it('reverses what was charged, even if rows had been corrected before it was issued', async (t) => {
    const { books, workspace, ids } = await stage(t, [60, 40, 7])
    await books.invoicing.correct(ids[0]!, 'wrong')
    await books.invoicing.correct(ids[2]!, 'wrong')
    await books.invoicing.correct(`correction:${ids[2]}`, 'it was right after all')
    const invoice = await books.invoicing.issue(workspace, month)
    const note = await books.invoicing.credit(workspace, month, null, 'All.')
    assert.deepEqual([invoice.subtotal, note.subtotal], ['47.00', '-47.00'])
    assert.equal(await amountOfAll(books, workspace), 0n)
    await fits(books)
  })
})

describe('a month whose invoice is credited as a whole', () => {
  it('is issued again under a new number, linked to the old invoice and its notes', async (t) => {
    const { books, workspace, ids } = await stage(t)
    await books.invoicing.issue(workspace, month)
    await books.invoicing.credit(workspace, month, [ids[1]!], 'Blank.')
    await assert.rejects(
      books.invoicing.issue(workspace, month),
      /already been invoiced: INV-000001\. Credit all of it first/,
    )
    await books.invoicing.credit(workspace, month, null, 'Wrong buyer.')
    const again = await books.invoicing.issue(workspace, month)
    assert.deepEqual(
      [again.number, again.replaces, again.credited_by, again.subtotal, again.requests, again.ledger_rows],
      ['INV-000002', 'INV-000001', ['ADJ-000001', 'ADJ-000002'], '100.00', 2, 2],
    )
    assert.equal((await books.invoicing.ofMonth(workspace, month)).number, 'INV-000002')
    assert.equal((await books.invoicing.preview(workspace, month)).number, 'INV-000002')
    assert.equal((await books.invoicing.byNumber('INV-000001')).subtotal, '100.00', 'the old one stays as it is')
    assert.equal(await amountOfAll(books, workspace), 100_000_000_000_000n)
    await fits(books)
  })

  it('can be credited and issued again any number of times, with each row in one document', async (t) => {
    const { books, workspace } = await stage(t)
    await books.invoicing.issue(workspace, month)
    for (let round = 2; round <= 4; round++) {
      books.now += 1000
      await books.invoicing.credit(workspace, month, null, 'Again.')
      books.now += 1000
      const { number, lines } = await books.invoicing.issue(workspace, month)
      assert.deepEqual([number, lines.length], [`INV-00000${round}`, 1])
    }
    const [row] = await books.store.usage({ workspaceId: workspace.id, ...ALL, creditNote: 'INV-000004' })
    const part = await books.invoicing.credit(workspace, month, [row!.requestId], 'Blank.')
    assert.deepEqual([part.adjusts, part.lines[0]?.quantity], ['INV-000004', '-60000000'])
    await fits(books)
    await assert.rejects(books.invoicing.issue(workspace, month), /already been invoiced: INV-000004/)
  })

  it('keeps numbers without a gap while another invoice is issued in between', async (t) => {
    const { books, workspace, version } = await stage(t)
    const other = await books.workspace('globex')
    await books.settle([await books.row(other, 'm', version, month.from, { inputTokens: 1_000_000 })])
    await books.invoicing.issue(workspace, month)
    await books.invoicing.credit(workspace, month, null, 'Wrong buyer.')
    const clock = { now: () => books.now, monotonic: () => 0 }
    // The first process dies behind the beginning of the second invoice of acme.
    const dying = { ...books.store, continueNote: () => Promise.reject(new Error('killed')) }
    await assert.rejects(openInvoicing(dying, clock, seller).issue(workspace, month), /killed/)
    assert.equal((await books.invoicing.issue(other, month)).number, 'INV-000003')
    assert.equal((await books.invoicing.ofMonth(workspace, month)).number, 'INV-000002', 'it was finished first')
    await assert.rejects(books.invoicing.issue(workspace, month), /already been invoiced: INV-000002/)
    await fits(books)
  })

  it('is finished by the next process, but is not taken for one that was previewed', async (t) => {
    const { books, workspace } = await stage(t)
    await books.invoicing.issue(workspace, month)
    await books.invoicing.credit(workspace, month, null, 'Wrong buyer.')
    const dying = { ...books.store, continueNote: () => Promise.reject(new Error('killed')) }
    const clock = { now: () => books.now, monotonic: () => 0 }
    await assert.rejects(openInvoicing(dying, clock, seller).issue(workspace, month), /killed/)
    const previewed = books.invoicing.issue(workspace, month, 'the id of a preview')
    await assert.rejects(previewed, /has been invoiced since it was previewed: INV-000002/)
    await fits(books)
  })
})

describe('a credit of a free amount', () => {
  it('is a line with its reason if the month is not invoiced yet', async (t) => {
    const { books, workspace } = await stage(t)
    const preview = await books.invoicing.creditAmount(workspace, month, '25.50', 'The outage of 3 July')
    assert.deepEqual([preview.number, preview.subtotal], [null, '74.50'])
    const { lines, subtotal, gst, total, requests, ledger_rows: rows } = await books.invoicing.issue(workspace, month)
    const { description, quantity_text: quantity, rate, rate_per: per, amount } = lines.at(-1)!
    assert.deepEqual(
      [description, quantity, rate, per, amount],
      ['Credit: The outage of 3 July', '1', '-25.50', 'credit', '-25.50'],
    )
    assert.deepEqual([subtotal, gst, total, requests, rows], ['74.50', '7.45', '81.95', 2, 3])
    await fits(books)
  })

  it('is an adjustment note if the month is invoiced', async (t) => {
    const { books, workspace } = await stage(t)
    await books.invoicing.issue(workspace, month)
    const note = await books.invoicing.creditAmount(workspace, month, '25.00', 'Goodwill')
    assert.deepEqual(
      [note.kind, note.number, note.adjusts, note.reason, note.subtotal, note.gst, note.total, note.ledger_rows],
      ['adjustment_note', 'ADJ-000001', 'INV-000001', 'Goodwill', '-25.00', '-2.50', '-27.50', 1],
    )
    assert.doesNotMatch(note.notices.join(), /request/, 'it is about none')
    const [row] = await books.store.usage({ workspaceId: workspace.id, ...ALL, creditNote: 'ADJ-000001' })
    assert.deepEqual(
      [row?.amount, row?.credit],
      [-25_000_000_000_000n, { reason: 'Goodwill', creditNote: 'ADJ-000001' }],
    )
    await fits(books)
  })

  it('is never more than what is left of the month or the invoice', async (t) => {
    const { books, workspace, ids } = await stage(t)
    const credit = (amount: string) => books.invoicing.creditAmount(workspace, month, amount, 'Goodwill')
    await assert.rejects(credit('100.01'), /more than 2026-07 comes to: A\$100\.00 is left/)
    await credit('30')
    await assert.rejects(credit('70.01'), /A\$70\.00 is left/)
    await books.invoicing.issue(workspace, month)
    await assert.rejects(credit('70.01'), /more than INV-000001 comes to: A\$70\.00 is left/)
    await credit('20')
    await assert.rejects(books.invoicing.credit(workspace, month, [ids[0]!], 'Blank.'), /more than what is left/)
    assert.equal((await books.invoicing.credit(workspace, month, [ids[1]!], 'Blank.')).subtotal, '-40.00')
    await assert.rejects(credit('10.01'), /A\$10\.00 is left/)
    await credit('10')
    await assert.rejects(credit('0.01'), /nothing is left of it/)
    await fits(books)
  })

  it('must be in dollars and cents, in a month that has begun', async (t) => {
    const { books, workspace } = await stage(t)
    for (const amount of ['0', '-5', '1.001', 'ten', '']) {
      await assert.rejects(books.invoicing.creditAmount(workspace, month, amount, 'x'), /dollars and cents/, amount)
    }
    books.now = month.from - 1
    await assert.rejects(books.invoicing.creditAmount(workspace, month, '1', 'x'), /has not begun/)
  })

  it('counts once when two are given at the same time', async (t) => {
    const { books, workspace } = await stage(t)
    const give = () => books.invoicing.creditAmount(workspace, month, '60', 'Goodwill')
    const results = await Promise.allSettled([give(), give()])
    assert.deepEqual(results.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
    assert.equal((await books.invoicing.preview(workspace, month)).subtotal, '40.00')
  })

  it('is reversed with everything else, and is given again when the month is issued again', async (t) => {
    const { books, workspace } = await stage(t)
    await books.invoicing.creditAmount(workspace, month, '10', 'Before')
    await books.invoicing.issue(workspace, month)
    books.now += 1000
    await books.invoicing.creditAmount(workspace, month, '5', 'After')
    books.now += 1000
    const all = await books.invoicing.credit(workspace, month, null, 'Wrong buyer.')
    assert.deepEqual(
      all.lines.map(({ description, amount }) => [description, amount]),
      [
        ['m: input tokens', '-100.00'],
        ['Credit taken back: Before', '10.00'],
        ['Credit taken back: After', '5.00'],
      ],
    )
    assert.equal(await amountOfAll(books, workspace), 0n)
    const again = await books.invoicing.issue(workspace, month)
    assert.deepEqual(again.lines.map(({ description, amount }) => `${description} ${amount}`).toSorted(), [
      'Credit: After -5.00',
      'Credit: Before -10.00',
      'm: input tokens 100.00',
    ])
    assert.equal(again.subtotal, '85.00')
    await fits(books)
  })

  it('is reversed by a correction before the month is invoiced', async (t) => {
    const { books, workspace } = await stage(t)
    await books.invoicing.creditAmount(workspace, month, '10', 'By mistake')
    const [credit] = await books.store.credits(workspace.id, month.from, month.to)
    await books.invoicing.correct(credit!.requestId, 'It was for another workspace')
    const { lines, subtotal } = await books.invoicing.issue(workspace, month)
    assert.deepEqual(lines.map(({ description, amount }) => `${description} ${amount}`).toSorted(), [
      'Credit taken back: It was for another workspace 10.00',
      'Credit: By mistake -10.00',
      'm: input tokens 100.00',
    ])
    assert.equal(subtotal, '100.00')
    await fits(books)
  })

  it('cannot make an invoice negative, if usage is corrected afterwards', async (t) => {
    const { books, workspace, ids } = await stage(t)
    await books.invoicing.creditAmount(workspace, month, '70', 'Goodwill')
    await books.invoicing.correct(ids[0]!, 'wrong')
    await assert.rejects(books.invoicing.issue(workspace, month), /exceed its charges\. Take one back/)
  })

  it('makes no room under a spend limit, which applies to usage', async (t) => {
    const { books, workspace } = await stage(t)
    await books.invoicing.creditAmount(workspace, month, '30', 'Goodwill')
    const clock = { now: () => month.to - 1, monotonic: () => 0 }
    const spending = await memorySpending(books.store, clock, { limitReached: () => {} })
    assert.equal(await spending.spent(workspace.id), 100_000_000_000_000n)
  })
})

describe('weir reconcile', () => {
  const damage: readonly [check: string, sql: string][] = [
    ['credit', "UPDATE ledger SET reason = '' WHERE request_id LIKE 'credit:%'"],
    ['credit', "UPDATE ledger SET images = 1 WHERE request_id LIKE 'credit:%'"],
    ['invoice', "UPDATE ledger SET reason = 'Other' WHERE request_id LIKE 'credit:%'"],
    ['invoice', "UPDATE ledger SET amount_pico_aud = amount_pico_aud - 1 WHERE request_id LIKE 'credit:%'"],
    ['invoice', "UPDATE ledger SET credit_note = 'INV-000009' WHERE credit_note = 'INV-000002'"],
    [
      'invoice',
      `UPDATE invoices SET document = replace(document, '"replaces":"INV-000001"', '"replaces":"INV-000007"')`,
    ],
    ['invoice', `UPDATE invoices SET document = replace(document, '"adjusts":"INV-000001"', '"adjusts":"INV-000002"')`],
    [
      'invoice',
      `UPDATE invoices SET document = replace(document, '"name":"acme"', '"name":"other"') WHERE kind = 'adjustment_note'`,
    ],
  ]
  for (const [check, sql] of damage) {
    it(`finds ${sql}`, async (t) => {
      const { books, workspace } = await stage(t)
      await books.invoicing.creditAmount(workspace, month, '10', 'Goodwill')
      await books.invoicing.issue(workspace, month)
      await books.invoicing.credit(workspace, month, null, 'Wrong buyer.')
      await books.invoicing.issue(workspace, month)
      await fits(books)
      const database = new DatabaseSync(join(books.dataDir, 'weir.db'))
      database.exec('PRAGMA foreign_keys = OFF')
      for (const { name } of database.prepare("SELECT name FROM sqlite_master WHERE type = 'trigger'").all()) {
        database.exec(`DROP TRIGGER ${String(name)}`)
      }
      database.exec(sql)
      database.close()
      const { problems } = await reconcileLedger(books.store)
      assert.ok(
        problems.some((problem) => problem.check === check),
        JSON.stringify(problems),
      )
    })
  }
})
