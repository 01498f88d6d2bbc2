import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { openInvoicing } from '../../src/billing/invoices/invoices.ts'
import { openPriceBook } from '../../src/billing/prices/price-book.ts'
import { priceRoutes } from '../../src/billing/prices/routes/prices.ts'
import { openRowLinks } from '../../src/billing/invoices/rows/row-links.ts'
import { invoiceRoutes } from '../../src/billing/invoices/routes/invoices.ts'
import { invoiceRowsRoute } from '../../src/billing/invoices/routes/invoice-rows.ts'
import { invoiceLinesRoute } from '../../src/billing/invoices/routes/invoice-lines.ts'
import { consoleInvoiceRoutes } from '../../src/billing/invoices/routes/console-invoices.ts'
import { consoleReportRoutes } from '../../src/billing/usage/routes/console-reports.ts'
import { reportRoutes } from '../../src/billing/usage/routes/operator-reports.ts'
import { usageRoutes } from '../../src/billing/usage/routes/operator-usage.ts'
import { ownUsageRoutes } from '../../src/billing/usage/routes/usage.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import type { CacheUseEntry } from '../../src/engines/cache-use.ts'
import { openAccounts } from '../../src/workspaces/accounts.ts'
import { pendingRefusals } from '../../src/billing/refused-requests/pending-refusals.ts'
import type { Refusals } from '../../src/billing/refused-requests/refusal-store.ts'
import type { SignedIn } from '../../src/workspaces/sessions/workspace-sessions.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import { escapeHtml } from '../../src/shared/html.ts'
import { seller } from '../support/books.ts'
import { SLUG, stageWithRows } from '../support/books-stage.ts'
import { catalogOf } from '../support/catalog.ts'
import { sampleRefusal } from '../support/refusal-samples.ts'
import { ask, askDocumented } from '../support/route-answer.ts'
import { modelEntry } from '../support/weir.ts'

/** The routes of invoices and usage, on books of March 2025 that are read in April. */

const APRIL = Date.UTC(2025, 3, 2)
const HOUR_MS = 3_600_000
const body = { workspace: 'acme', period: '2025-03' }

async function stage(t: TestContext) {
  const { books, rows } = await stageWithRows(t)
  books.now = APRIL
  const { store } = books
  const clock = { now: () => books.now, monotonic: () => 0 }
  const accounts = await openAccounts(store, clock, memoryChanges())
  const acme = await accounts.setBuyer('acme', { ...accounts.workspace('acme').buyer, email: 'books@acme.example' })
  const invoicing = openInvoicing(store, clock, seller, true)
  const rowLinks = openRowLinks(store, clock, { publicUrl: seller.publicUrl, days: 30 })
  const cached: CacheUseEntry = {
    workspaceId: acme.id,
    keyId: 'key_1',
    model: SLUG,
    requests: 3,
    inputTokens: 1000,
    cachedInputTokens: 250,
    misses: { first_use: 1, prefix_changed: 2, evicted: 0, moved: 0 },
    latestChange: undefined,
  }
  const asked: (string | undefined)[] = []
  const cacheUse = { entries: (workspaceId?: string) => (asked.push(workspaceId), [cached]) }
  const refusals = { ...store, add: () => assert.fail('a report adds nothing') } satisfies Refusals
  const telemetry = { cacheUse } as unknown as Parameters<typeof usageRoutes>[0]['telemetry']
  const catalog = await catalogOf(modelEntry(['http://127.0.0.1:9/v1']))
  const prices = await openPriceBook(store, clock, memoryChanges())
  const routes = [
    ...priceRoutes({ accounts, catalog, prices }),
    ...invoiceRoutes({ accounts, invoicing, rowLinks, invoiceFonts: [] }),
    ...usageRoutes({ accounts, store, invoicing, telemetry, refusals, clock }),
    ...reportRoutes({ accounts, store, clock }),
  ]
  return {
    books,
    rows,
    acme,
    store,
    asked,
    routes,
    own: [
      ...ownUsageRoutes({ usage: store, telemetry, refusals, clock }),
      invoiceLinesRoute({ invoices: store }),
      invoiceRowsRoute({ invoices: store, rowLinks }),
      ...consoleReportRoutes({ reader: store, clock }),
      ...consoleInvoiceRoutes({ invoicing, rowLinks, invoiceFonts: [] }),
    ],
    call: (request: string, given?: object) =>
      askDocumented(routes, request.replace(' ', ' /admin/v1/'), given ? { body: given } : {}),
    raw: (request: string, given?: object) =>
      ask(routes, request.replace(' ', ' /admin/v1/'), given ? { body: given } : {}),
  }
}

describe('prices of a workspace, over the API', () => {
  it('are set and removed on record, for a model by its slug or its short id', async (t) => {
    const { call } = await stage(t)
    const pricing = { input_per_million: '0.10' }
    const own = { input_per_million: '0.10', output_per_million: '0.60', cached_input_per_million: '0.05' }
    for (const model of [SLUG, 'test-8b']) {
      const set = await call(`PUT workspaces/acme/prices/${model}`, pricing)
      assert.deepEqual([set.status, set.body], [200, { model, pricing }])
      assert.partialDeepStrictEqual(set.recorded, [{ action: 'setWorkspacePrice', state: { pricing: null } }])
      const { body } = await call('GET workspaces/acme/prices')
      assert.deepEqual(body, { object: 'list', data: [{ model: SLUG, pricing: own }] })
      const cleared = await call(`DELETE workspaces/acme/prices/${model}`)
      assert.deepEqual(cleared.body, { model, pricing: null })
      assert.partialDeepStrictEqual(cleared.recorded, [{ action: 'clearWorkspacePrice', state: { pricing: own } }])
      assert.deepEqual((await call('GET workspaces/acme/prices')).body.data, [])
    }
    const wrong = call(`PUT workspaces/acme/prices/${SLUG}`, { input_per_million: '-1' })
    await assert.rejects(wrong, { code: 'invalid_value', param: 'input_per_million' })
    for (const method of ['PUT', 'DELETE']) {
      const unknown = call(`${method} workspaces/acme/prices/no/such`, method === 'PUT' ? pricing : undefined)
      await assert.rejects(unknown, { code: 'model_not_found', param: 'model' })
    }
  })
})

const signedIn = (workspace: Workspace) => ({ caller: { workspace, keyId: '' } }) as unknown as SignedIn

describe('invoices, over the API', () => {
  it('are read by finance and viewers, changed by finance, and their links revoked by operators alone', async (t) => {
    const { routes } = await stage(t)
    const allowed = (roles: string) =>
      routes.filter((it) => it.roles.join(' ') === roles).map(({ operation }) => operation?.id)
    assert.deepEqual(allowed('operator finance viewer'), [
      'listWorkspacePrices',
      'listInvoices',
      'previewInvoice',
      'getInvoice',
      'listDrafts',
      'listUsage',
      'listCacheUse',
      'listRefused',
      'getUsage',
      'usageReport',
      'latencyReport',
      'listRequests',
    ])
    assert.deepEqual(allowed('operator finance'), [
      'issueInvoice',
      'creditInvoice',
      'sendInvoice',
      'issueDrafts',
      'recordPayment',
      'removePayment',
    ])
    assert.deepEqual(allowed('operator'), [
      'setWorkspacePrice',
      'clearWorkspacePrice',
      'revokeInvoiceLinks',
      'correctUsage',
    ])
  })

  it('are previewed, issued as previewed, listed, read and sent', async (t) => {
    const { call, raw, books } = await stage(t)
    const preview = await call('POST invoices/preview', body)
    assert.deepEqual([preview.status, preview.body.number, preview.recorded], [200, null, []])
    assert.match(preview.body.preview_id, /\S/)
    assert.equal(preview.body.notices[0], 'Payable within 14 days.\nBSB 000-000, account 12345678.')
    const stale = { ...body, preview_id: 'another' }
    await assert.rejects(call('POST invoices', stale), { code: 'conflict' })
    const issued = await call('POST invoices', { ...body, preview_id: preview.body.preview_id })
    assert.match(issued.body.notices[0], /^Payable within 14 days, by 16 April 2025\. Please quote INV-000001\.\n/)
    assert.deepEqual([issued.status, issued.body.number, issued.body.email.state], [201, 'INV-000001', 'queued'])
    assert.match(issued.body.lines[0].link, /^https:\/\/api\.example\.com\/weir\/.*INV-000001.*signature=/)
    assert.partialDeepStrictEqual(issued.recorded, [{ action: 'issueInvoice', body: { period: '2025-03' } }])
    assert.equal((await call('POST invoices/preview', body)).body.preview_id, null, 'it has been issued')

    const listed = await call('GET invoices?workspace=acme')
    assert.deepEqual(
      [listed.body.object, listed.body.data.length, listed.body.data[0].number, listed.body.next],
      ['list', 1, 'INV-000001', null],
    )
    assert.equal(listed.body.data[0].email.recipient, 'books@acme.example')
    assert.equal((await call('GET invoices?state=paid')).body.data.length, 0)
    await assert.rejects(call('GET invoices?state=late'), { code: 'invalid_value', param: 'state' })
    await assert.rejects(call('GET invoices?workspace=none'), { code: 'not_found' })

    const one = await call('GET invoices/INV-000001')
    assert.deepEqual([one.body.number, one.body.balance.state], ['INV-000001', 'due'])
    const page = await raw('GET invoices/INV-000001?format=html')
    assert.match(page.text, /INV-000001/)
    assert.match((await raw('POST invoices/preview?format=html', body)).text, /INV-000001/)
    await assert.rejects(raw('GET invoices/INV-000009'), { code: 'not_found' })

    books.now += 60_000
    const sent = await call('POST invoices/INV-000001/email')
    assert.deepEqual([sent.status, sent.body.email.state], [200, 'queued'])
    assert.partialDeepStrictEqual(sent.recorded, [
      { action: 'sendInvoice', subject: 'INV-000001', state: { recipient: 'books@acme.example' } },
    ])
    const revoked = await call('POST invoices/revoke-links')
    assert.deepEqual(revoked.body, { revoked: true })
    assert.notEqual((await call('GET invoices/INV-000001')).body.lines[0].link, one.body.lines[0].link)
  })

  it('are credited by their requests, by an amount, or all of what is left', async (t) => {
    const { call } = await stage(t)
    await call('POST invoices', body)
    const credit = (what: object) => call('POST invoices/credit', { ...body, reason: 'slow', ...what })
    for (const what of [{}, { all: false }, { all: true, amount: '0.10' }, { requests: ['x'], amount: '0.10' }])
      await assert.rejects(credit(what), { code: 'invalid_value', param: 'requests' })
    const [first, second, third] = [
      await credit({ requests: ['request-000000001'] }),
      await credit({ amount: '0.10' }),
      await credit({ all: true }),
    ]
    assert.deepEqual(
      [first, second, third].map(({ status, body: note }) => [status, note.number, note.kind, note.subtotal]),
      [
        [201, 'ADJ-000001', 'adjustment_note', '-0.50'],
        [201, 'ADJ-000002', 'adjustment_note', '-0.10'],
        [201, 'ADJ-000003', 'adjustment_note', '-1.11'],
      ],
    )
    assert.partialDeepStrictEqual(first.recorded, [{ action: 'creditInvoice', body: { reason: 'slow' } }])
  })

  it('are paid, and a payment can be taken back, on record', async (t) => {
    const { call } = await stage(t)
    await call('POST invoices', body)
    const path = 'invoices/INV-000001/payments'
    const part = { paid_on: '2025-04-02', reference: 'bank 1', amount: '1.00' }
    const paid = await call(`POST ${path}`, part)
    assert.deepEqual([paid.status, paid.body.balance.paid], [201, '1.00'])
    assert.partialDeepStrictEqual(paid.recorded, [
      { action: 'recordPayment', subject: 'INV-000001', state: { state: 'due', paid: '0.00' } },
    ])
    for (const [wrong, code] of [
      [{ amount: '1000.00' }, 'conflict'],
      [{ paid_on: 'yesterday' }, 'invalid_value'],
      [{ reference: 'a\nb' }, 'invalid_value'],
    ] as const)
      await assert.rejects(call(`POST ${path}`, { ...part, ...wrong }), { code })
    await assert.rejects(call('POST invoices/INV-000009/payments', part), { code: 'not_found' })
    for (const id of ['0', '01', '2', 'x', '1x', '1234567890'])
      await assert.rejects(call(`DELETE ${path}/${id}`), { code: 'not_found' }, id)
    const back = await call(`DELETE ${path}/1`)
    assert.deepEqual([back.status, back.body.balance.paid, back.body.balance.payments], [200, '0.00', []])
    assert.partialDeepStrictEqual(back.recorded, [
      { action: 'removePayment', subject: 'INV-000001 1', state: { paid: '1.00' } },
    ])
  })

  it('of a month are drafted for every workspace, and issued as listed', async (t) => {
    const { call, books } = await stage(t)
    const listed = await call('GET invoices/drafts?period=2025-03')
    assert.deepEqual([listed.body.object, listed.body.data.length, listed.body.next], ['list', 1, null])
    const [{ workspace, preview_id }] = listed.body.data
    assert.equal(workspace, 'acme')
    assert.equal((await call('GET invoices/drafts?period=2025-03&after=acme')).body.data.length, 0)
    await assert.rejects(call('GET invoices/drafts?period=2025-13'), { code: 'invalid_value', param: 'period' })
    for (const limit of [0, 101])
      await assert.rejects(call(`GET invoices/drafts?period=2025-03&limit=${limit}`), { code: 'invalid_value' })
    const drafts = [
      { workspace: 'acme', preview_id: 'stale' },
      { workspace: 'acme', preview_id },
      { workspace: 'none', preview_id },
    ]
    const { body: issued, recorded } = await call('POST invoices/drafts/issue', { period: '2025-03', drafts })
    assert.deepEqual([issued.object, issued.data.length], ['list', 3])
    assert.deepEqual(
      issued.data.map((it: { number: string | null }) => it.number),
      [null, 'INV-000001', null],
    )
    assert.partialDeepStrictEqual(recorded, [{ action: 'issueDrafts', body: { period: '2025-03' } }])
    assert.equal((await books.invoicing.byNumber('INV-000001')).workspace, 'acme')
  })

  it('show the rows of a line in pages, or all of them as CSV, to a key of the workspace', async (t) => {
    const { call, own, acme } = await stage(t)
    await call('POST invoices', body)
    const caller = { workspace: acme, keyId: 'key_1' }
    const line = (query: string, path = '1') =>
      askDocumented(own, `GET /api/v1/invoices/INV-000001/lines/${path}${query}`, { caller })
    const first = await line('?limit=2')
    const rest = await line(`?limit=2&after=${first.body.next}`)
    assert.deepEqual([first.body.object, first.body.unit, rest.body.next], ['list', 'input_tokens', null])
    assert.deepEqual(
      [first, rest].map((page) => page.body.data.map((it: { request_id: string }) => it.request_id)),
      [['request-000000001', 'request-000000002'], ['request-000000003']],
    )
    assert.equal((await line('?limit=3')).body.next, null)
    for (const limit of [0, 1001]) await assert.rejects(line(`?limit=${limit}`), { code: 'invalid_value' })
    await assert.rejects(line('', '9'), { code: 'not_found' })
    const csv = await ask(own, 'GET /api/v1/invoices/INV-000001/lines/1?format=csv', { caller })
    assert.equal(csv.text.trim().split('\n').length, 4)
    assert.deepEqual(
      [csv.headers['Content-Type'], csv.headers['Content-Disposition']],
      ['text/csv; charset=utf-8', 'attachment; filename="INV-000001-line-1.csv"'],
    )
    const otherCaller = { workspace: { ...acme, id: 'ws_other' }, keyId: 'key_1' }
    await assert.rejects(ask(own, 'GET /api/v1/invoices/INV-000001/lines/1', { caller: otherCaller }), {
      code: 'not_found',
    })
  })
})

describe('the rows of an invoice line', () => {
  it('are a page or a file for everyone with its link, and a page says why a link does not work', async (t) => {
    const { call, own } = await stage(t)
    const { body: invoice } = await call('POST invoices', body)
    const { pathname, search } = new URL(invoice.lines[0].link)
    const open = (query: string, accept = 'text/html') =>
      ask(own, `GET ${pathname.replace('/weir', '')}${query}`, { headers: { accept } })
    const page = await open(search)
    const shown = { 'Cache-Control': 'private, no-store', 'Referrer-Policy': 'no-referrer', 'X-Robots-Tag': 'noindex' }
    assert.equal(page.status, 200)
    assert.partialDeepStrictEqual(page.headers, { ...shown, 'Content-Type': 'text/html; charset=utf-8' })
    for (const part of ['request-000000001', 'request-000000003', escapeHtml(`${search}&format=csv`)])
      assert.ok(page.text.includes(part), part)
    assert.ok(!page.text.includes('after='), 'there is one page')
    const csv = await open(`${search}&format=csv`)
    assert.equal(csv.text.trim().split('\n').length, 4)
    const file = { 'Content-Type': 'text/csv; charset=utf-8' }
    const name = { 'Content-Disposition': 'attachment; filename="INV-000001-line-1.csv"' }
    assert.partialDeepStrictEqual(csv.headers, { ...shown, ...file, ...name })
    const refused = await open(`${search}0`)
    assert.deepEqual([refused.status, /^<!doctype html>/i.test(refused.text)], [404, true])
    await assert.rejects(open(`${search}0`, '*/*'), { code: 'not_found' })
    await assert.rejects(open(`${search}&after=x`), { code: 'invalid_value' })
  })
})

describe('invoices in the console of a workspace', () => {
  it('are its invoices and adjustment notes, in pages, for its administrators', async (t) => {
    const { call, own, acme, books } = await stage(t)
    await call('POST invoices', body)
    books.now += 1
    await call('POST invoices/credit', { ...body, reason: 'slow', amount: '0.10' })
    const get = (path: string) => askDocumented(own, `GET /console/api/invoices${path}`, { session: signedIn(acme) })
    const pages = [await get('?limit=1'), await get('?limit=1&before=ADJ-000001')]
    assert.deepEqual(
      pages.map((page) => [page.body.data.map((it: { number: string }) => it.number), page.body.next]),
      [
        [['ADJ-000001'], 'ADJ-000001'],
        [['INV-000001'], null],
      ],
    )
    assert.equal((await get('?state=due')).body.data.length, 1)
    assert.equal((await get('?state=paid')).body.data.length, 0)
    assert.equal((await get('/ADJ-000001')).body.adjusts, 'INV-000001')
    const routes = own.filter(({ operation }) => ['invoices', 'invoice'].includes(operation?.id ?? ''))
    assert.deepEqual(
      routes.map((route) => route.access === 'session' && route.roles),
      [['workspace_admin'], ['workspace_admin']],
    )
  })

  it('are none of another workspace, whose numbers are as unknown as those that were never issued', async (t) => {
    const { call, own, books } = await stage(t)
    await call('POST invoices', body)
    await call('POST invoices/credit', { ...body, reason: 'slow', amount: '0.10' })
    const session = signedIn(await books.workspace('other'))
    const get = (path: string) => ask(own, `GET /console/api/invoices${path}`, { session })
    for (const query of ['', '?state=due', '?limit=1'])
      assert.deepEqual((await get(query)).body, { object: 'list', data: [], next: null }, query)
    for (const number of ['INV-000001', 'ADJ-000001', 'INV-000009']) {
      const unknown = { code: 'not_found', message: `There is no invoice "${number}".`, param: 'number' }
      for (const format of ['json', 'html', 'pdf']) await assert.rejects(get(`/${number}?format=${format}`), unknown)
      await assert.rejects(get(`?before=${number}`), { code: 'invalid_value', param: 'before' }, number)
    }
  })
})

describe('usage in the console of a workspace', () => {
  it('is that of the workspace, by model unless by key', async (t) => {
    const { own, acme, rows } = await stage(t)
    const period = 'from=2025-03-01&to=2025-04-01'
    const get = (path: string, workspace = acme) =>
      askDocumented(own, `GET /console/api/${path}`, { session: signedIn(workspace) })
    const usage = await get(`reports/usage?${period}`)
    assert.deepEqual([usage.body.total.requests, usage.body.groups[0].group], [3, SLUG])
    assert.equal((await get(`reports/usage?${period}&group_by=key`)).body.groups[0].group, 'key_1')
    assert.equal((await get(`reports/latency?${period}`)).body.groups[0].group, SLUG)
    assert.equal((await get(`reports/latency?${period}&group_by=key`)).body.groups[0].group, 'key_1')
    assert.equal((await get('reports/month')).body.month, '2025-04')
    assert.equal((await get(`requests?${period}`)).body.data.length, rows.length)
    assert.equal((await get(`requests?${period}`, { ...acme, id: 'ws_other' })).body.data.length, 0)
  })
})

describe('usage, over the API', () => {
  it('is listed row by row for one workspace, or as sums', async (t) => {
    const { call, raw, rows } = await stage(t)
    const from = 'from=2025-03-01&to=2025-04-01'
    await assert.rejects(raw(`GET usage?${from}`), { code: 'missing_required_parameter', param: 'workspace' })
    const first = await raw(`GET usage?workspace=acme&${from}&limit=2`)
    const page = JSON.parse(first.text)
    assert.deepEqual([page.object, page.data.length, page.has_more], ['list', 2, true])
    const rest = JSON.parse((await raw(`GET usage?workspace=acme&${from}&limit=2&after=${page.next}`)).text)
    assert.deepEqual([rest.data.length, rest.has_more, rest.next], [1, false, null])
    assert.equal(new Set([...page.data, ...rest.data].map((it) => it.request_id)).size, 3)
    for (const [query, param] of [
      ['limit=0', 'limit'],
      ['limit=10001', 'limit'],
      ['limit=1.5', 'limit'],
      ['after=x', 'after'],
    ] as const)
      await assert.rejects(raw(`GET usage?workspace=acme&${from}&${query}`), { code: 'invalid_value', param }, query)
    const counts = [1, 10_000].map(
      async (limit) => JSON.parse((await raw(`GET usage?workspace=acme&${from}&limit=${limit}`)).text).data.length,
    )
    assert.deepEqual(await Promise.all(counts), [1, 3])
    const sums = JSON.parse((await raw(`GET usage?group_by=workspace&${from}`)).text)
    assert.deepEqual(
      [sums.group_by, sums.data.length, sums.data[0].workspace, sums.total.requests, sums.total.estimated_requests],
      ['workspace', 1, 'acme', 3, 1],
    )
    const days = JSON.parse((await raw(`GET usage?group_by=day&${from}&limit=1`)).text)
    assert.deepEqual([days.data.length, days.data[0].requests, days.total.requests, days.has_more], [1, 2, 3, true])
    const one = await call(`GET usage/${rows[0]?.requestId}`)
    assert.deepEqual([one.body.request_id, one.body.workspace], [rows[0]?.requestId, 'acme'])
    await assert.rejects(call('GET usage/absent'), { code: 'not_found' })
  })

  it('is corrected on record, with a reason', async (t) => {
    const { call, rows } = await stage(t)
    const id = rows[0]?.requestId ?? assert.fail()
    const corrected = await call(`POST usage/${id}/correct`, { reason: 'empty' })
    assert.deepEqual([corrected.status, corrected.body], [201, { corrects: id }])
    assert.deepEqual(corrected.recorded, [{ action: 'correctUsage', subject: id, body: { reason: 'empty' } }])
    await assert.rejects(call(`POST usage/${id}/correct`, { reason: 'again' }), { code: 'conflict' })
    for (const reason of ['', 'x'.repeat(1001)])
      await assert.rejects(call(`POST usage/${id}/correct`, { reason }), { code: 'invalid_value' })
  })

  it('shows a key only the usage of its own workspace', async (t) => {
    const { own, acme, rows } = await stage(t)
    const id = rows[0]?.requestId ?? ''
    const caller = { workspace: acme, keyId: 'key_1' }
    const { body: row } = await askDocumented(own, `GET /api/v1/usage/${id}`, { caller })
    assert.equal(row.request_id, id)
    const listed = JSON.parse((await ask(own, 'GET /api/v1/usage?from=2025-03-01', { caller })).text)
    assert.equal(listed.data.length, 3)
    const otherCaller = { workspace: { ...acme, id: 'ws_other' }, keyId: 'key_1' }
    await assert.rejects(ask(own, `GET /api/v1/usage/${id}`, { caller: otherCaller }), { code: 'not_found' })
    assert.deepEqual(
      JSON.parse((await ask(own, 'GET /api/v1/usage?from=2025-03-01', { caller: otherCaller })).text).data,
      [],
    )
    await assert.rejects(ask(own, 'GET /api/v1/usage?group_by=workspace', { caller }), { code: 'invalid_value' })
  })

  it('is reported over time, with its latency and its requests', async (t) => {
    const { call, rows } = await stage(t)
    const period = 'from=2025-03-01&to=2025-04-01'
    const usage = await call(`GET reports/usage?${period}`)
    assert.equal(usage.body.total.requests, 3)
    assert.ok(JSON.stringify(usage.body).includes('acme'), 'groups have the names of workspaces')
    const byModel = await call(`GET reports/usage?${period}&workspace=acme&group_by=model`)
    assert.ok(JSON.stringify(byModel.body).includes(SLUG))
    await call(`GET reports/latency?${period}`)
    await call(`GET reports/latency?${period}&workspace=acme`)
    const found = await call(`GET requests?${period}&workspace=acme`)
    assert.deepEqual(
      found.body.data.map((it: { request_id: string }) => it.request_id),
      rows.map(({ requestId }) => requestId).toReversed(),
    )
    const failed = await call(`GET requests?${period}&code=upstream_error`)
    assert.deepEqual(
      failed.body.data.map((it: { request_id: string; workspace: string }) => [it.request_id, it.workspace]),
      [[rows[1]?.requestId, 'acme']],
    )
    await assert.rejects(call(`GET requests?${period}&key=key_none`), { code: 'not_found', param: 'key' })
    for (const path of ['reports/usage', 'reports/latency', 'requests'])
      await assert.rejects(call(`GET ${path}?${period}&workspace=none`), { code: 'not_found' }, path)
  })
  it('shows how much of the input was cached, to the operator of all workspaces or one', async (t) => {
    const { call, own, acme, asked } = await stage(t)
    const all = await call('GET usage/cache')
    assert.deepEqual([all.body.object, all.body.data.length], ['list', 1])
    assert.partialDeepStrictEqual(all.body.data[0], { workspace: 'acme', key: 'key_1', requests: 3 })
    assert.equal(all.body.data[0].cache_hit_rate, 0.25)
    await call('GET usage/cache?workspace=acme')
    const ofKey = await askDocumented(own, 'GET /api/v1/usage/cache', { caller: { workspace: acme, keyId: 'key_1' } })
    assert.deepEqual([ofKey.body.object, ofKey.body.data.length], ['list', 1])
    assert.deepEqual(asked, [undefined, acme.id, acme.id])
  })

  it('shows refused requests in pages, of the last seven days unless others are asked for', async (t) => {
    const { call, own, acme, store, books } = await stage(t)
    const pending = pendingRefusals()
    const at = APRIL - 1000
    for (const [age, workspaceId, code] of [
      [0, acme.id, 'rate_limit_exceeded'],
      [2 * HOUR_MS, acme.id, 'rate_limit_exceeded'],
      [3 * HOUR_MS, acme.id, 'spend_limit_exceeded'],
      [4 * HOUR_MS, '', 'invalid_api_key'],
    ] as const)
      pending.add(sampleRefusal({ at: at - age, workspaceId, keyId: workspaceId && 'key_1', code }))
    await store.addRefusals(pending.take() ?? assert.fail(), 0)
    const all = await call('GET usage/refused')
    assert.deepEqual(
      [all.body.object, all.body.unit, all.body.times.length, all.body.total, all.body.newest.length],
      ['refused.report', 'day', 7, 4, 4],
    )
    assert.deepEqual(all.body.codes[0], {
      http_status: 429,
      error_code: 'rate_limit_exceeded',
      requests: 2,
      series: [{ at: Date.UTC(2025, 3, 1, 13), requests: 2 }],
    })
    assert.deepEqual(
      all.body.newest.map((it: { workspace: string | null }) => it.workspace),
      ['acme', 'acme', 'acme', null],
    )
    const first = await call('GET usage/refused?workspace=acme&limit=2')
    assert.deepEqual([first.body.total, first.body.newest.length], [3, 2])
    const rest = await call(`GET usage/refused?workspace=acme&limit=2&before=${first.body.next}`)
    assert.deepEqual([rest.body.newest.length, rest.body.next], [1, null])
    assert.equal((await call('GET usage/refused?code=spend_limit_exceeded')).body.total, 1)
    assert.equal((await call('GET usage/refused?key=key_2')).body.total, 0)
    assert.equal((await call('GET usage/refused?status=402')).body.newest.length, 0)
    assert.equal((await call('GET usage/refused?model=a/b')).body.newest.length, 0)
    assert.equal((await call('GET usage/refused?from=2025-04-01&to=2025-04-01')).body.unit, 'hour')
    await assert.rejects(call('GET usage/refused?before=x'), { code: 'invalid_value', param: 'before' })
    for (const query of ['limit=0', 'limit=1001', 'status=99', 'status=600', 'code=none'])
      await assert.rejects(call(`GET usage/refused?${query}`), { code: 'invalid_value' }, query)

    const caller = { workspace: acme, keyId: 'key_1' }
    const ofKey = (query: string) => askDocumented(own, `GET /api/v1/usage/refused${query}`, { caller })
    assert.equal((await ofKey('')).body.total, 3)
    const [mine, strange] = [all.body.newest[0].request_id, all.body.newest[3].request_id]
    assert.equal((await ofKey(`?request_id=${mine}`)).body.newest.length, 1)
    assert.equal((await ofKey(`?request_id=${strange}`)).body.newest.length, 0)
    assert.equal((await call(`GET usage/refused?request_id=${strange}`)).body.newest.length, 1)
    books.now += 8 * 86_400_000
    assert.equal((await ofKey('')).body.total, 0)
  })
})
