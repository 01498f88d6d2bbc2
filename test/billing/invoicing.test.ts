import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { invoiceHtml } from '../../src/billing/invoices/invoice-html.ts'
import { invoicePdf } from '../../src/billing/invoices/pdf/invoice-pdf.ts'
import { openInvoicing } from '../../src/billing/invoices/invoices.ts'
import { openRowLinks, withRows } from '../../src/billing/invoices/rows/row-links.ts'
import { reconcileLedger } from '../../src/ledger/reconcile/reconcile.ts'
import type { InvoiceDocument } from '../../src/billing/invoices/invoice-document.ts'
import { ApiError } from '../../src/shared/errors.ts'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import { seller, testBooks, type TestBooks } from '../support/books.ts'

const october = parseMonth('2026-10')!
const november = parseMonth('2026-11')!
const HOUR_MS = 3_600_000

let books: TestBooks
let acme: Workspace
let issued: InvoiceDocument

const conflict = (error: unknown): boolean => error instanceof ApiError && error.code === 'conflict'

/** Sets up the example month of docs/billing.md from its rows. */
before(async () => {
  books = await testBooks(september())
  acme = await books.workspace('acme')
  const text = await books.price(
    'meta/llama-3.3-70b',
    { input_per_million: '0.20', output_per_million: '0.60', cached_input_per_million: '0.05' },
    books.now,
  )
  const flux = await books.price('black-forest/flux', { per_image: '0.04' }, books.now)
  const whisper = await books.price('openai/whisper-large-v3', { per_audio_minute: '0.006' }, books.now)
  await books.price('meta/llama-3.1-8b-instruct@acme', { per_hour: '12.50' }, books.now)
  const at = (day: number): number => october.from + day * 24 * HOUR_MS
  await books.settle([
    await books.row(acme, 'meta/llama-3.3-70b', text, october.from, {
      inputTokens: 100_000_000,
      cachedInputTokens: 90_000_000,
      outputTokens: 42_000_123,
    }),
    await books.row(acme, 'meta/llama-3.3-70b', text, at(5), { inputTokens: 300_000_000, outputTokens: 500_000 }),
    await books.row(acme, 'black-forest/flux', flux, at(9), { images: 125 }),
    await books.row(acme, 'openai/whisper-large-v3', whisper, october.to - 1, { audioMs: 3_725_500 }),
    // Outside the month: one millisecond before it begins, and the moment it ends.
    await books.row(acme, 'black-forest/flux', flux, october.from - 1, { images: 1000 }),
    await books.row(acme, 'black-forest/flux', flux, october.to, { images: 1000 }),
  ])
  books.now = november.from + HOUR_MS
  issued = await books.invoicing.issue(acme, october)
})
after(() => books.close())

function september(): number {
  return parseMonth('2026-09')!.from
}

/** The URLs that a PDF links to. A set, because a link that wraps has one annotation for each line of text. */
function linksIn(pdf: Buffer): ReadonlySet<string> {
  const actions = pdf.toString('latin1').matchAll(/\/S \/URI\n\/URI \(([^)]*)\)/g)
  return new Set([...actions].map(([, address = '']) => address))
}

describe('the example month of docs/billing.md', () => {
  it('[M1] adds up to A$9,384.87, with GST of 938.49 and a total of 10,323.36', () => {
    const { number, subtotal, gst, total, lines_total: exact, requests, ledger_rows: rows } = issued
    assert.deepEqual(
      { number, exact, subtotal, gst, total },
      { number: 'INV-000001', exact: '9384.8726238', subtotal: '9384.87', gst: '938.49', total: '10323.36' },
    )
    assert.deepEqual([requests, rows], [4, 5])
  })

  it('has a line for each model, unit and rate, with exact amounts', () => {
    assert.deepEqual(
      issued.lines.map(({ description, quantity_text: quantity, rate, rate_per: per, amount }) => [
        description,
        quantity,
        `${rate} / ${per}`,
        amount,
      ]),
      [
        ['black-forest/flux: images', '125', '0.04 / image', '5.00'],
        ['meta/llama-3.1-8b-instruct: reserved capacity', '743 h', '12.50 / hour', '9287.50'],
        ['meta/llama-3.3-70b: input tokens', '310,000,000', '0.20 / 1M tokens', '62.00'],
        ['meta/llama-3.3-70b: cached input tokens', '90,000,000', '0.05 / 1M tokens', '4.50'],
        ['meta/llama-3.3-70b: output tokens', '42,500,123', '0.60 / 1M tokens', '25.5000738'],
        ['openai/whisper-large-v3: audio', '62 min 5.5 s', '0.006 / minute', '0.37255'],
      ],
    )
  })

  it('[M1] has everything a tax invoice needs: title, parties, dates, GST', async () => {
    for (const text of [
      'Tax invoice',
      'Weir Example Pty Ltd',
      'ABN 51 824 753 556',
      'acme',
      'INV-000001',
      '1 November 2026',
      '15 November 2026',
      '1 October 2026 to 31 October 2026',
      'GST 10 %',
      '10,323.36',
      '9,384.87',
      '938.49',
      'Payable within 14 days, by 15 November 2026. Please quote INV-000001.\nBSB 000-000, account 12345678.',
      '4 requests.',
    ]) {
      assert.ok(invoiceHtml(issued).includes(text), text)
    }
    const pdf = await invoicePdf(issued)
    assert.equal(pdf.subarray(0, 5).toString(), '%PDF-')
    assert.deepEqual(await invoicePdf(issued), pdf, 'the same file every time')
  })

  it('shows where a key downloads the rows of each line, without rows of adjustment notes', () => {
    assert.match(
      issued.lines[0]?.rows ?? '',
      /^\/api\/v1\/usage\?from=2026-10-01&to=2026-10-31&credit_note=&model=black-forest%2Fflux/,
    )
  })

  it('links each line to a page with its rows, in the HTML, in the PDF and in the JSON', async () => {
    const links = openRowLinks(
      books.store,
      { now: () => books.now, monotonic: () => 0 },
      { publicUrl: seller.publicUrl, days: 90 },
    )
    const printable = await links.linked(issued)
    assert.equal(printable.links_until, '2027-01-30')
    const addresses = printable.lines.map(({ link }) => link ?? assert.fail('no link'))
    assert.ok(
      addresses[5]?.startsWith('https://api.example.com/weir/api/v1/invoices/INV-000001/rows/6?until=2027-01-30&'),
    )
    assert.equal(new Set(addresses).size, 6)
    assert.deepEqual(linksIn(await invoicePdf(printable)), new Set(addresses))
    const page = invoiceHtml(printable)
    for (const link of addresses) assert.ok(page.includes(`href="${link.replaceAll('&', '&#38;')}"`), link)
    assert.ok(page.includes('The link of each line shows its rows, until 30 January 2027.'))
  })

  it('has no links when no public URL is configured, and as a preview', async () => {
    const clock = { now: () => books.now, monotonic: () => 0 }
    assert.equal(linksIn(await invoicePdf(issued)).size, 0)
    const nowhere = openRowLinks(books.store, clock, { publicUrl: undefined, days: 90 })
    assert.deepEqual(await nowhere.linked(issued), withRows(issued))
    const links = openRowLinks(books.store, clock, { publicUrl: seller.publicUrl, days: 90 })
    const preview = { ...issued, number: null }
    assert.deepEqual(await links.linked(preview), preview)
  })
})

describe('an issued invoice', () => {
  it('is issued only once, and only after the month is over', async () => {
    await assert.rejects(books.invoicing.issue(acme, october), conflict)
    await assert.rejects(books.invoicing.issue(acme, november), conflict)
    assert.deepEqual(await books.invoicing.preview(acme, october), issued)
    assert.equal((await books.invoicing.preview(acme, november)).number, null)
  })

  it('never changes: the database refuses changes to invoices and to the ledger', () => {
    const database = new DatabaseSync(join(books.dataDir, 'weir.db'))
    for (const sql of [
      "UPDATE invoices SET document = '{}'",
      'DELETE FROM invoices',
      'UPDATE ledger SET amount_pico_aud = 0',
      'DELETE FROM ledger',
    ]) {
      assert.throws(() => database.exec(sql), /never changes|append-only/, sql)
    }
    database.close()
  })

  it('is not affected by a late row, which moves to the next month', async () => {
    const prices = await books.store.priceVersions()
    const version = prices.find(({ model }) => model === 'black-forest/flux')!.id
    const late = await books.row(acme, 'black-forest/flux', version, october.to - 5, { images: 3 })
    await books.settle([late])
    assert.equal((await books.store.usageRow(late.requestId))?.settledAt, october.to)
    assert.equal((await reconcileLedger(books.store)).problems.length, 0)
  })

  it('needs a seller, and always the same one', async () => {
    const other = openInvoicing(
      books.store,
      { now: () => books.now, monotonic: () => 0 },
      { ...seller, abn: '83914571673' },
    )
    await assert.rejects(other.issue(acme, parseMonth('2026-09')!), /ABN 51 824 753 556/)
    const none = openInvoicing(books.store, { now: () => books.now, monotonic: () => 0 }, undefined)
    await assert.rejects(none.issue(acme, parseMonth('2026-09')!), /needs a seller/)
  })
})

describe('an adjustment note', () => {
  it('reverses rows of an invoice, each only once', async () => {
    const rows = await books.store.usage({ workspaceId: acme.id, from: october.from, to: october.to, limit: 100 })
    const images = rows.find(({ images }) => images === 125)!
    const note = await books.invoicing.credit(acme, october, [images.requestId], 'The images were blank.')
    assert.deepEqual(
      [note.kind, note.number, note.adjusts, note.reason, note.subtotal, note.gst, note.total],
      ['adjustment_note', 'ADJ-000001', 'INV-000001', 'The images were blank.', '-5.00', '-0.50', '-5.50'],
    )
    assert.ok(invoiceHtml(note).includes('Adjustment note'))
    await assert.rejects(books.invoicing.credit(acme, october, [images.requestId], 'Again.'), /already been credited/)
    const reversals = await books.store.usage({
      workspaceId: acme.id,
      from: 0,
      to: Infinity,
      limit: 10,
      creditNote: 'ADJ-000001',
    })
    assert.deepEqual(
      reversals.map(({ correction, amount }) => [correction?.of, amount]),
      [[images.requestId, -images.amount]],
    )
  })

  it('for everything that is left brings the month to zero', async () => {
    const note = await books.invoicing.credit(acme, october, null, 'Goodwill.')
    assert.equal(note.subtotal, '-9379.87')
    await assert.rejects(books.invoicing.credit(acme, october, null, 'More.'), conflict)
    const rows = await books.store.usage({ workspaceId: acme.id, from: 0, to: Infinity, limit: 1000 })
    const octoberRows = rows.filter(
      (row) =>
        (row.correction?.creditNote ?? '') !== '' || (row.settledAt >= october.from && row.settledAt < october.to),
    )
    assert.equal(
      octoberRows.reduce((sum, { amount }) => sum + amount, 0n),
      0n,
    )
  })

  it('does not appear in the next invoice, which has the next number', async () => {
    books.now = november.to
    const next = await books.invoicing.issue(acme, november)
    assert.equal(next.number, 'INV-000002')
    assert.deepEqual(
      next.lines.map(({ unit, quantity }) => [unit, quantity]),
      [
        ['images', '1003'],
        ['capacity_hours', '720'],
      ],
    )
    assert.deepEqual((await reconcileLedger(books.store)).problems, [])
  })
})

describe('an invoice', () => {
  it('includes a row that arrives while it is drafted, or the row belongs to the next month', async () => {
    const buyer = await books.workspace('busy')
    const version = await books.price('meta/busy', { input_per_million: '1' }, september())
    const request = (at: number) => books.row(buyer, 'meta/busy', version, at, { inputTokens: 1_000_000 })
    await books.settle([await request(october.from)])
    let reads = 0
    const meanwhile = {
      ...books.store,
      async pricedSums(...asked: Parameters<typeof books.store.pricedSums>) {
        const sums = await books.store.pricedSums(...asked)
        // A row that was settled in October, and that a slow disk writes only now.
        if (reads++ === 0) await books.settle([await request(october.to - 1)])
        return sums
      },
    }
    const invoicing = openInvoicing(meanwhile, { now: () => books.now, monotonic: () => 0 }, seller)
    const { ledger_rows: rows, subtotal, number } = await invoicing.issue(buyer, october)
    assert.deepEqual([rows, subtotal, reads], [2, '2.00', 2], 'it was drafted again')
    assert.deepEqual((await books.invoicing.byNumber(number!)).ledger_rows, 2)
    const late = await request(october.to - 1)
    await books.settle([late])
    assert.equal((await books.store.usageRow(late.requestId))?.settledAt, october.to)
    assert.deepEqual((await reconcileLedger(books.store)).problems, [])
  })
})

describe('reserved capacity', () => {
  it('[C5] is billed from when the workspace exists, even if the catalog named it before', async () => {
    const before = books.now
    await books.price('meta/reserved@latecomer', { per_hour: '1.00' }, september())
    books.now = october.from + 10 * HOUR_MS
    const latecomer = await books.workspace('latecomer')
    books.now = before
    const { lines } = await books.invoicing.preview(latecomer, october)
    assert.deepEqual(
      lines.map(({ unit, quantity, amount }) => [unit, quantity, amount]),
      [['capacity_hours', '733', '733.00']],
    )
    const { lines: none } = await books.invoicing.preview(latecomer, parseMonth('2026-09')!)
    assert.deepEqual(none, [])
  })
})

describe('images priced by size', () => {
  it('[M3] get a line for each size and quality that links to only its own rows, and reconcile', async () => {
    const buyer = await books.workspace('painters')
    const at = november.from + HOUR_MS
    const all = await books.price('sd/sized', { per_image: '0.04' }, september())
    const tall = await books.price('sd/sized#1024x1792', { per_image: '0.08' }, september())
    const fine = await books.price('sd/sized#1024x1792 hd', { per_image: '0.08' }, september())
    await books.settle([
      await books.row(buyer, 'sd/sized', all, at, { images: 1 }),
      await books.row(buyer, 'sd/sized', tall, at, { images: 2 }),
      await books.row(buyer, 'sd/sized', tall, at, { images: 3 }),
      await books.row(buyer, 'sd/sized', fine, at, { images: 4 }),
    ])
    const { lines, subtotal } = await books.invoicing.issue(buyer, november)
    assert.deepEqual(
      lines.map(({ description, quantity, rate, amount }) => [description, quantity, rate, amount]),
      [
        ['sd/sized: images', '1', '0.04', '0.04'],
        ['sd/sized: images, 1024x1792', '5', '0.08', '0.40'],
        ['sd/sized: images, 1024x1792 hd', '4', '0.08', '0.32'],
      ],
    )
    assert.equal(subtotal, '0.76')
    assert.deepEqual(
      lines.map(({ rows }) => new URLSearchParams(rows.split('?')[1]).get('price_versions')),
      [all, tall, fine].map(String),
    )
    assert.deepEqual((await reconcileLedger(books.store)).problems, [])
  })
})

describe('a correction of a row that is not invoiced yet', () => {
  it('is a row in the same month that refers to the wrong one', async () => {
    const prices = await books.store.priceVersions()
    const version = prices.find(({ model }) => model === 'black-forest/flux')!.id
    const wrong = await books.row(acme, 'black-forest/flux', version, november.to + 5, { images: 7 })
    await books.settle([wrong])
    await books.invoicing.correct(wrong.requestId, 'Twice by mistake.')
    await assert.rejects(books.invoicing.correct(wrong.requestId, 'Again.'), conflict)
    const correction = await books.store.usageRow(`correction:${wrong.requestId}`)
    assert.deepEqual(
      [correction?.amount, correction?.images, correction?.settledAt],
      [-wrong.amount, -7, wrong.settledAt],
    )
    const sums = await books.store.pricedSums(acme.id, november.to, november.to + 24 * HOUR_MS, '')
    assert.deepEqual(
      sums.map(({ amount, rows, requests }) => [amount, rows, requests]),
      [[0n, 2, 1]],
    )
    assert.deepEqual((await reconcileLedger(books.store)).problems, [])
  })
})

describe('weir reconcile', () => {
  const damage: readonly [check: string, sql: string][] = [
    ['amount', 'UPDATE ledger SET amount_pico_aud = amount_pico_aud + 1 WHERE images = 1003 OR images = 1000'],
    ['sums', 'UPDATE usage_days SET images = images + 1'],
    ['sums', 'DELETE FROM usage_hours'],
    ['invoice', "UPDATE invoices SET document = replace(document, '938.49', '938.48')"],
    ['number', "DELETE FROM invoices WHERE number = 'INV-000001'"],
    ['price_version', 'UPDATE ledger SET price_version = 1 WHERE images = 1000'],
    ['correction', "UPDATE ledger SET corrects = 'request-000000001' WHERE request_id LIKE 'ADJ-000001:%'"],
  ]
  for (const [check, sql] of damage) {
    it(`detects ${sql}`, async () => {
      const database = new DatabaseSync(join(books.dataDir, 'weir.db'))
      const triggers = database.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all()
      for (const { name } of triggers) database.exec(`DROP TRIGGER ${String(name)}`)
      database.exec('PRAGMA foreign_keys = OFF; DROP INDEX ledger_by_corrected')
      const tables = ['ledger', 'usage_days', 'usage_hours', 'invoices']
      for (const table of tables) database.exec(`CREATE TABLE kept_${table} AS SELECT * FROM ${table}`)
      database.exec(sql)
      try {
        const { problems } = await reconcileLedger(books.store)
        assert.ok(
          problems.some((problem) => problem.check === check),
          JSON.stringify(problems),
        )
        assert.ok(problems.every(({ subject }) => subject !== ''))
      } finally {
        for (const table of tables)
          database.exec(
            `DELETE FROM ${table}; INSERT INTO ${table} SELECT * FROM kept_${table}; DROP TABLE kept_${table}`,
          )
        database.exec('CREATE UNIQUE INDEX ledger_by_corrected ON ledger (corrects) WHERE corrects IS NOT NULL')
        for (const trigger of triggers) database.exec(String(trigger['sql']))
        database.close()
      }
      assert.deepEqual((await reconcileLedger(books.store)).problems, [], 'no problems once the damage is undone')
    })
  }
})
