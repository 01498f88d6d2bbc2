import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  findLineRows,
  nextRows,
  rowsAfter,
  type LineRow,
  type LineRows,
} from '../../src/billing/invoices/rows/line-rows.ts'
import { openRowLinks, type RowLinks } from '../../src/billing/invoices/rows/row-links.ts'
import type { LinkSecretStore } from '../../src/billing/invoices/invoice-store.ts'
import type { InvoiceDocument } from '../../src/billing/invoices/invoice-document.ts'
import { parseSignedAud } from '../../src/shared/money/money.ts'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import { testBooks, type TestBooks } from '../support/books.ts'

const month = parseMonth('2026-10') ?? assert.fail()
const nextMonth = month.to + 1000

/** An invoice with tokens of both kinds, and with audio whose rows are each rounded, beside tokens of the same model. */
let books: TestBooks
let documents: readonly InvoiceDocument[]

before(async () => {
  books = await testBooks(month.from)
  const acme = await books.workspace('acme')
  const list = { input_per_million: '0.20', output_per_million: '0.60', cached_input_per_million: '0.05' }
  const text = await books.price('meta/a', list, month.from)
  const speechList = { per_audio_minute: '0.000000000007', input_per_million: '0.10' }
  const speech = await books.price('openai/whisper', speechList, month.from)
  const rows = []
  for (let index = 0; index < 25; index++) {
    const at = month.from + index * 1000
    const words = { inputTokens: 100 + index, cachedInputTokens: index, outputTokens: 7 * index }
    rows.push(await books.row(acme, 'meta/a', text, at, words))
    rows.push(await books.row(acme, 'openai/whisper', speech, at, { audioMs: 4321 + index * 777, inputTokens: 5 }))
  }
  await books.settle(rows)
  books.now = nextMonth
  const issued = await books.invoicing.issue(acme, month)
  const credited = await books.invoicing.credit(acme, month, null, 'All of it.')
  documents = [issued, credited]
})
after(() => books.close())

async function inPages({ page }: LineRows, size: number): Promise<readonly LineRow[]> {
  const rows: LineRow[] = []
  for (let next: string | undefined; ;) {
    const found = await page(rowsAfter(next), size)
    rows.push(...found)
    if (found.length < size) return rows
    next = nextRows(found)
  }
}

describe('a link to the rows of an invoice line', () => {
  const DAY_MS = 86_400_000
  const linksAt = (state: { now: number }, store: LinkSecretStore) =>
    openRowLinks(store, { now: () => state.now, monotonic: () => 0 }, { publicUrl: 'https://api', days: 10 })

  /** As two processes see it: each makes a secret at the same time, and the first one counts. */
  function secretStore(others: string | undefined): LinkSecretStore {
    let secret: string | undefined
    return {
      linkSecret: async () => secret,
      addLinkSecret: async (own) => void (secret ??= others ?? own),
      replaceLinkSecret: async (own) => void (secret = own),
    }
  }

  const linkIn = async (links: RowLinks) => {
    const { lines } = await links.linked(documents[0]!)
    const { pathname, searchParams } = new URL(lines[0]?.link ?? '')
    const [number = '', , line = ''] = pathname.split('/').slice(-3)
    return { number, line, until: searchParams.get('until') ?? '', signature: searchParams.get('signature') ?? '' }
  }

  it('works until the end of its last day in Sydney, and no longer', async () => {
    const state = { now: Date.UTC(2026, 10, 1, 14) }
    const links = linksAt(state, secretStore(undefined))
    const link = await linkIn(links)
    assert.equal(link.until, '2026-11-12')
    state.now = Date.UTC(2026, 10, 12, 13) - 1
    await links.requireValid(link)
    state.now += 1
    await assert.rejects(links.requireValid(link), /has expired/)
    state.now -= DAY_MS
    await assert.rejects(links.requireValid({ ...link, until: '2026-11-13' }), /incomplete/)
    await links.revoke()
    await assert.rejects(links.requireValid(link), /has been revoked/)
  })

  it('is signed with the secret that was stored first, if two processes make one', async () => {
    const links = linksAt({ now: 0 }, secretStore('00ff'))
    await links.requireValid(await linkIn(links))
  })
})

describe('the rows of an invoice line', () => {
  it('add up to the line to the last digit, whatever the line is for and however they are read', async () => {
    const units = new Set<string>()
    for (const { number, lines } of documents) {
      for (const [index, { unit, amount, quantity, quantity_ms: ms }] of lines.entries()) {
        units.add(unit)
        const found = await findLineRows(books.store, number ?? '', String(index + 1))
        const all = (await Array.fromAsync(found.all())).flat()
        for (const rows of [all, await inPages(found, 7), await inPages(found, 1)]) {
          assert.equal(rows.length, 25, unit)
          const sum = rows.reduce((total, row) => total + row.amount, 0n)
          assert.equal(sum, parseSignedAud(amount), `${number} ${unit}`)
          if (unit === 'rounding') continue
          assert.equal(rows.reduce((total, row) => total + row.quantity, 0n).toString(), ms ?? quantity, unit)
        }
      }
    }
    assert.ok(units.has('rounding') && units.has('audio_minutes') && units.has('cached_input_tokens'))
  })

  it('are found only by the number of the line, and by its own workspace', async () => {
    const number = documents[0]?.number ?? ''
    for (const line of ['0', '01', '1.0', '-1', '99', 'x', '']) {
      await assert.rejects(findLineRows(books.store, number, line), { code: 'not_found' }, line)
    }
    await assert.rejects(findLineRows(books.store, number, '1', 'ws_other'), { code: 'not_found' })
    for (const after of ['', 'x', '1_2', '1_x_a']) assert.throws(() => rowsAfter(after), { code: 'invalid_value' })
  })
})
