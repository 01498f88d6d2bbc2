import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { stageConfig } from '../support/chat-stage.ts'
import { commandLine } from '../support/command-line.ts'
import { copyToLastMonth, lastMonth } from '../support/last-month.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { startWeir, type TestWeir } from '../support/weir.ts'

/** The signed links on an invoice, opened as a browser opens them: without a key. */

const seller = { name: 'Example Pty Ltd', abn: '51 824 753 556', public_url: 'https://api.example.com' }
const ROWS = 230
let engine: ScriptedEngine
let weir: TestWeir
/** The links of the invoice, on the listener of this test. */
let links: readonly string[]

interface Issued {
  readonly number: string
  readonly links_until: string
  readonly lines: readonly {
    readonly unit: string
    readonly quantity: string
    readonly amount: string
    readonly rows: string
    readonly link: string
  }[]
}
let invoice: Issued

before(async () => {
  engine = await scriptedEngine()
  weir = await startWeir(
    stageConfig([engine.url], { config: { seller, rate_limit: { unauthenticated_per_minute: 1000 } } }),
  )
  engine.script = { promptTokens: 1000, tokens: ['a', 'b'] }
  await (await weir.chat({})).text()
  await copyToLastMonth(weir, ROWS)
  const issued = await weir.admin('POST', '/admin/v1/invoices', { workspace: 'default', period: lastMonth.name })
  invoice = (await issued.json()) as Issued
  links = invoice.lines.map(({ link }) => link.replace(seller.public_url, weir.service.url))
})
after(async () => {
  await weir.stop()
  await engine.close()
})

describe('a link on an invoice', () => {
  it('opens a page with the rows of its line, page by page, without a key', async () => {
    const ids = new Set<string>()
    let pages = 0
    for (let address: string | undefined = links[0]; address !== undefined; pages++) {
      const response = await fetch(address)
      assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'text/html; charset=utf-8'])
      const page = await response.text()
      assert.match(page, /Tax invoice INV-000001/)
      const found = [...page.matchAll(/<td>(copy-\d+)/g)].map(([, id]) => id ?? '')
      assert.ok(found.length <= 100)
      for (const id of found) ids.add(id)
      const next = /href="([^"]*)">Next page/.exec(page)?.[1]?.replaceAll('&#38;', '&')
      address = next === undefined ? undefined : new URL(next, address).href
    }
    assert.deepEqual([ids.size, pages], [ROWS, 3])
  })

  it('downloads all rows as CSV, which add up to the line', async () => {
    for (const [index, { unit, quantity, amount }] of invoice.lines.entries()) {
      const response = await fetch(`${links[index]}&format=csv`)
      assert.equal(response.headers.get('content-type'), 'text/csv; charset=utf-8')
      const [head, ...rows] = (await response.text()).trimEnd().split('\n')
      assert.equal(head, 'request_id,started,settled,quantity,amount_aud,estimated,outcome,corrects,reason')
      const cells = rows.map((row) => row.split(','))
      assert.equal(
        cells.reduce((sum, row) => sum + Number(row[3]), 0),
        Number(quantity),
        unit,
      )
      const pico = (text = '0'): bigint => BigInt(text.split('.')[0] + (text.split('.')[1] ?? '').padEnd(12, '0'))
      assert.equal(
        cells.reduce((sum, row) => sum + pico(row[4]), 0n),
        pico(amount),
        unit,
      )
    }
  })

  it('has an equivalent for keys of the workspace, in pages and as CSV, which adds up too', async () => {
    const sumOf = (amounts: readonly string[]): bigint =>
      amounts.reduce((sum, text) => sum + BigInt(Math.round(Number(text) * 1e12)), 0n)
    for (const [index, { rows, amount }] of invoice.lines.entries()) {
      assert.equal(rows, `/api/v1/invoices/INV-000001/lines/${index + 1}?format=csv`)
      const file = await weir.call(weir.service.url + rows)
      assert.equal(file.headers.get('content-disposition'), `attachment; filename="INV-000001-line-${index + 1}.csv"`)
      const [, ...lines] = (await file.text()).trimEnd().split('\n')
      assert.equal(sumOf(lines.map((line) => line.split(',')[4] ?? '')), sumOf([amount]))
      const found: { amount: string }[] = []
      for (let after = ''; ;) {
        const page = await weir.call(`/invoices/INV-000001/lines/${index + 1}?limit=100${after}`)
        const { data, next } = (await page.json()) as { data: { amount: string }[]; next: string | null }
        found.push(...data)
        if (next === null) break
        after = `&after=${encodeURIComponent(next)}`
      }
      assert.equal(found.length, ROWS)
      assert.equal(sumOf(found.map((row) => row.amount)), sumOf([amount]))
    }
    const where = ['--config', weir.configFile, '--data', weir.dataDir]
    const rows = ['invoice', 'rows', 'INV-000001', '--line', '1']
    const amounts: string[] = []
    let more: string[] = []
    for (let pages = 0; pages < 3; pages++) {
      const shown = await commandLine([...rows, '--limit', '100', ...more, '--json', ...where])
      const { data, next } = shown.json<{ data: { amount: string }[]; next: string | null }>()
      amounts.push(...data.map((row) => row.amount))
      assert.equal(next === null, pages === 2)
      more = ['--after', next ?? '']
    }
    assert.equal(amounts.length, ROWS)
    assert.equal(sumOf(amounts), sumOf([invoice.lines[0]?.amount ?? '']))
    const whole = await commandLine([...rows, ...where])
    assert.match(whole.stdout, /\n230 rows of a line of A\$[\d.]+ excluding GST\n$/)
    const part = await commandLine([...rows, '--limit', '2', ...where])
    assert.match(part.stdout, /\n2 rows of a line of .*\nThere are more rows: see them with --after \S+\.\n$/)
  })

  it('has an equivalent that refuses keys of other workspaces, and requests without a key', async () => {
    await weir.admin('POST', '/admin/v1/workspaces', { name: 'other' })
    const made = await weir.admin('POST', '/admin/v1/keys', { workspace: 'other' })
    const { key } = (await made.json()) as { key: string }
    const path = '/invoices/INV-000001/lines/1'
    assert.equal((await weir.call(path, { key })).status, 404)
    assert.equal((await weir.call(path, { key: null })).status, 401)
    assert.equal((await weir.call('/invoices/INV-000001/lines/9')).status, 404)
    assert.equal((await weir.call(`${path}?after=nonsense`)).status, 400)
  })

  it('shows no keys, runs no scripts, is not cached and sends no referrer', async () => {
    const response = await fetch(links[0]!)
    const page = await response.text()
    assert.doesNotMatch(page, /key_|<script|sk-/)
    assert.match(response.headers.get('content-security-policy') ?? '', /^default-src 'none'; style-src 'sha256-/)
    assert.deepEqual(
      ['referrer-policy', 'cache-control', 'x-content-type-options'].map((name) => response.headers.get(name)),
      ['no-referrer', 'private, no-store', 'nosniff'],
    )
  })

  it('is valid only for its own line and document, until its own day', async () => {
    const address = new URL(links[0]!)
    const changed = (change: (it: URL) => void): string => {
      const other = new URL(address)
      change(other)
      return other.href
    }
    for (const wrong of [
      changed((it) => (it.pathname = it.pathname.replace('/rows/1', '/rows/2'))),
      changed((it) => (it.pathname = it.pathname.replace('/rows/1', '/rows/01'))),
      changed((it) => (it.pathname = it.pathname.replace('INV-000001', 'INV-000002'))),
      changed((it) => it.searchParams.set('until', '2999-01-01')),
      changed((it) => it.searchParams.set('signature', 'A'.repeat(43))),
      changed((it) => it.searchParams.set('signature', '')),
      changed((it) => it.searchParams.delete('signature')),
      changed((it) => it.searchParams.delete('until')),
    ]) {
      const response = await fetch(wrong, { headers: { accept: 'text/html,*/*' } })
      assert.deepEqual(
        [response.status, response.headers.get('content-type')],
        [404, 'text/html; charset=utf-8'],
        wrong,
      )
      assert.match(await response.text(), /This link does not work/)
      const program = (await (await fetch(wrong)).json()) as { error: { code: string } }
      assert.equal(program.error.code, 'not_found')
    }
    assert.equal((await fetch(`${links[0]}&after=nonsense`)).status, 400)
  })

  it('is refused on the day after its last, even with a valid signature', async (t) => {
    const expired = await startExpired()
    t.after(() => expired.stop())
    const response = await fetch(expired.link)
    assert.equal(response.status, 404)
    assert.match(await response.text(), /This link has expired\. Ask for a new copy/)
  })

  /** A link that was made 91 days ago. */
  async function startExpired(): Promise<{ link: string; stop(): Promise<void> }> {
    const { openRowLinks } = await import('../../src/billing/invoices/rows/row-links.ts')
    const { openStore } = await import('../../src/store/open.ts')
    const store = await openStore({ dataDir: weir.dataDir, exclusive: false })
    const clock = { now: () => Date.now() - 91 * 86_400_000, monotonic: () => 0 }
    const old = openRowLinks(store, clock, { publicUrl: weir.service.url, days: 90 })
    const [document] = (await store.invoices({ number: 'INV-000001' })).map((it) => it.document)
    const { lines } = await old.linked(document!)
    return { link: lines[0]?.link ?? '', stop: () => store.close() }
  }

  it('is revoked with all others, and a new copy has new links', async () => {
    const { code } = await commandLine([
      'invoice',
      'revoke-links',
      '--config',
      weir.configFile,
      '--data',
      weir.dataDir,
      '--json',
    ])
    assert.equal(code, 0)
    assert.equal((await fetch(links[0]!)).status, 404)
    const copy = (await (await weir.admin('GET', '/admin/v1/invoices/INV-000001')).json()) as Issued
    assert.equal((await fetch(copy.lines[0]!.link.replace(seller.public_url, weir.service.url))).status, 200)
    assert.equal((await weir.admin('POST', '/admin/v1/invoices/revoke-links')).status, 200)
    assert.equal((await fetch(copy.lines[0]!.link.replace(seller.public_url, weir.service.url))).status, 404)
  })
})

describe('links to rows', () => {
  it('count against the limit for callers without a key, whether they work or not', async (t) => {
    const small = await startWeir(
      stageConfig([engine.url], { config: { rate_limit: { unauthenticated_per_minute: 3 } } }),
    )
    t.after(() => small.stop())
    const statuses: number[] = []
    // Twice as many as one minute allows, in case a minute ends in between.
    for (let call = 0; call < 8; call++) {
      statuses.push(
        (await fetch(`${small.service.url}/api/v1/invoices/INV-1/rows/1?until=2999-01-01&signature=x`)).status,
      )
    }
    assert.ok(statuses.includes(404) && statuses.includes(429), statuses.join())
  })
})
