import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { issueDrafts } from '../../src/billing/invoices/month-drafts.ts'
import { openInvoicing } from '../../src/billing/invoices/invoices.ts'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import { testBooks } from '../support/books.ts'

const october = parseMonth('2026-10')!
const november = parseMonth('2026-11')!
const december = parseMonth('2026-12')!

/** Three workspaces that used something in November, one that did not, and one that only had capacity reserved. */
async function stage(t: TestContext) {
  const books = await testBooks(november.from)
  t.after(() => books.close())
  const names = ['delta', 'acme', 'beta', 'unused', 'reserved']
  const all = new Map<string, Workspace>()
  for (const name of names) all.set(name, await books.workspace(name))
  const version = await books.price('meta/a', { input_per_million: '1' }, october.from - 1)
  await books.price('meta/a@reserved', { per_hour: '2' }, november.from)
  const use = async (name: string, millions: number, at = november.from) =>
    books.settle([await books.row(all.get(name)!, 'meta/a', version, at, { inputTokens: millions * 1_000_000 })])
  await use('acme', 10)
  await use('beta', 20)
  await use('delta', 30)
  books.now = december.from
  const { invoicing } = books
  const drafts = async (limit = 50, after?: string) => {
    const { drafts, next } = await invoicing.drafts({ month: november, after, limit })
    return { totals: drafts.map(({ workspace, total }) => [workspace, total]), drafts, next }
  }
  const issue = (chosen: readonly { workspace: string; preview_id: string }[]) =>
    issueDrafts((name, id) => invoicing.issue(all.get(name)!, november, id), chosen)
  return { books, all, use, drafts, issue, invoicing }
}

describe('the drafts of a month', () => {
  it('are those of every workspace that owes something and has no invoice, by name, in pages', async (t) => {
    const { all, drafts, invoicing } = await stage(t)
    const rows = [
      ['acme', '11.00'],
      ['beta', '22.00'],
      ['delta', '33.00'],
      ['reserved', '1584.00'],
    ]
    assert.deepEqual([(await drafts()).totals, (await drafts()).next], [rows, null])
    const first = await drafts(3)
    assert.deepEqual([first.totals, first.next], [rows.slice(0, 3), 'delta'])
    const last = await drafts(3, 'delta')
    assert.deepEqual([last.totals, last.next], [rows.slice(3), null])
    assert.equal((await drafts(4)).next, null, 'a page that ends with the last one')
    await invoicing.issue(all.get('beta')!, november)
    assert.deepEqual((await drafts()).totals, [rows[0], rows[2], rows[3]])
  })

  it('go on behind a page on which no workspace owes anything', async (t) => {
    const { drafts, use, all, books } = await stage(t)
    all.set('nothing', await books.workspace('nothing'))
    await use('nothing', 0)
    const found: string[] = []
    let pages = 0
    for (let next: string | null | undefined; next !== null; pages++) {
      const page = await drafts(1, next)
      found.push(...page.drafts.map(({ workspace }) => workspace))
      next = page.next
    }
    assert.deepEqual([found, pages], [['acme', 'beta', 'delta', 'reserved'], 5])
  })

  it('have the id of the preview, what is missing, why they cannot be issued, and the invoice before', async (t) => {
    const { books, all, use, drafts, invoicing } = await stage(t)
    await use('acme', 5, october.from)
    await invoicing.issue(all.get('acme')!, october)
    await books.store.setBuyer(all.get('beta')!.id, {
      name: null,
      abn: null,
      address: null,
      purchaseOrder: null,
      email: null,
    })
    await books.store.setBuyer(all.get('reserved')!.id, {
      name: null,
      abn: null,
      address: null,
      purchaseOrder: null,
      email: null,
    })
    const [acme, beta, , reserved] = (await drafts()).drafts
    assert.deepEqual(acme, {
      workspace: 'acme',
      preview_id: acme?.preview_id,
      subtotal: '10.00',
      gst: '1.00',
      total: '11.00',
      lines: 1,
      requests: 1,
      ledger_rows: 1,
      warnings: [],
      obstacle: null,
      previous: { number: 'INV-000001', period: '2026-10', total: '5.50', state: 'due' },
    })
    assert.deepEqual([beta?.obstacle, beta?.warnings], [null, []])
    assert.match(reserved?.obstacle ?? '', /must say who the buyer is/)
    assert.deepEqual(reserved?.warnings, [reserved?.obstacle])
    books.now = december.from - 1
    assert.match((await drafts()).drafts[0]?.obstacle ?? '', /^2026-11 is not over yet/)
    const unsold = openInvoicing(books.store, { now: () => december.from, monotonic: () => 0 }, undefined)
    const [draft] = (await unsold.drafts({ month: november, after: undefined, limit: 1 })).drafts
    assert.match(draft?.obstacle ?? '', /needs a seller/)
  })

  it('show the invoice before although notes have adjusted it since then', async (t) => {
    const { books, all, use, drafts, invoicing } = await stage(t)
    await use('acme', 5, october.from)
    await invoicing.issue(all.get('acme')!, october)
    books.now += 1000
    await invoicing.creditAmount(all.get('acme')!, october, '1.00', 'Goodwill')
    const [acme] = (await drafts()).drafts
    assert.deepEqual(acme?.previous, { number: 'INV-000001', period: '2026-10', total: '5.50', state: 'due' })
  })
})

describe('drafts that are issued together', () => {
  it('are issued exactly as they were listed; one that has changed is refused, and the others are issued', async (t) => {
    const { use, drafts, issue, invoicing } = await stage(t)
    const { drafts: listed } = await drafts()
    await use('beta', 1)
    const results = await issue(listed)
    assert.deepEqual(
      results.map(({ workspace, number, total, error }) => [workspace, number, total, error?.code ?? null]),
      [
        ['acme', 'INV-000001', '11.00', null],
        ['beta', null, null, 'conflict'],
        ['delta', 'INV-000002', '33.00', null],
        ['reserved', 'INV-000003', '1584.00', null],
      ],
    )
    assert.match(results[1]?.error?.message ?? '', /has changed since it was previewed/)
    assert.deepEqual((await drafts()).totals, [['beta', '23.10']])
    const again = await issue(listed)
    assert.deepEqual(
      again.map(({ number }) => number),
      [null, null, null, null],
    )
    assert.equal((await invoicing.list()).length, 3, 'nothing is issued twice')
  })

  it('are each issued once when two people issue them at the same time', async (t) => {
    const { drafts, issue, invoicing } = await stage(t)
    const { drafts: listed } = await drafts()
    const [one, two] = await Promise.all([issue(listed), issue(listed)])
    assert.equal([...one, ...two].filter(({ number }) => number !== null).length, 4)
    const numbers = (await invoicing.list()).map(({ number }) => number)
    assert.deepEqual(numbers, ['INV-000001', 'INV-000002', 'INV-000003', 'INV-000004'])
  })

  it('fail as a whole only if the service itself fails', async () => {
    const broken = new Error('the database is gone')
    const issue = () => Promise.reject(broken)
    await assert.rejects(issueDrafts(issue, [{ workspace: 'acme', preview_id: 'x' }]), broken)
  })
})
