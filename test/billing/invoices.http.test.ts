import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it, type TestContext } from 'node:test'
import { stringify } from 'yaml'
import { reconcileLedger } from '../../src/ledger/reconcile/reconcile.ts'
import { startService } from '../../src/compose.ts'
import { loadConfig } from '../../src/config.ts'
import { sydneyMonth } from '../../src/shared/money/sydney-time.ts'
import { testBooks } from '../support/books.ts'
import { chatStage, stageConfig } from '../support/chat-stage.ts'
import { startCli, type CliResult } from '../support/cli.ts'
import { commandLine } from '../support/command-line.ts'
import { copyToLastMonth, lastMonth } from '../support/last-month.ts'
import { rawClient, type RawClient } from '../support/raw-client.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually } from '../support/waiting.ts'
import { startWeir, type TestWeir } from '../support/weir.ts'

/** Invoices of a running service, by the command line and the operator's API. */

const seller = {
  name: 'Example Pty Ltd',
  abn: '51 824 753 556',
  address: '1 Lock Street',
  payment_terms_days: 30,
  public_url: 'https://api.example.com/',
}
let engine: ScriptedEngine
let weir: TestWeir

before(async () => {
  engine = await scriptedEngine()
  weir = await startWeir(stageConfig([engine.url], { config: { seller } }))
  engine.script = { promptTokens: 1000, tokens: ['a', 'b'] }
  await (await weir.chat({})).text()
  await copyToLastMonth(weir, 1000)
})
after(async () => {
  await weir.stop()
  await engine.close()
})

const run = (...args: string[]): Promise<CliResult> =>
  commandLine([...args, '--config', weir.configFile, '--data', weir.dataDir, '--json'])
const month = ['--workspace', 'default', '--period', lastMonth.name]

describe('weir invoice', () => {
  it('[M1] previews, issues, lists and shows: AUD with two decimals, GST on top', async () => {
    const preview = (await run('invoice', 'preview', ...month)).json()
    // 1000 requests of 1000 tokens in and 2 out: 0.20 + 0.0012.
    assert.deepEqual(
      [preview['number'], preview['subtotal'], preview['gst'], preview['total']],
      [null, '0.20', '0.02', '0.22'],
    )
    const files = { pdf: join(weir.dataDir, 'a.pdf'), html: join(weir.dataDir, 'a.html') }
    const issued = (await run('invoice', 'issue', ...month, '--pdf', files.pdf, '--html', files.html)).json<{
      number: string
      lines: { rows: string; link: string }[]
    }>()
    assert.equal(issued.number, 'INV-000001')
    const pdf = readFileSync(files.pdf, 'latin1')
    assert.equal(pdf.slice(0, 5), '%PDF-')
    assert.ok(pdf.includes(`/URI (${issued.lines[0]?.link})`))
    assert.match(
      issued.lines[0]?.link ?? '',
      /^https:\/\/api\.example\.com\/api\/v1\/invoices\/INV-000001\/rows\/1\?until=/,
    )
    assert.match(readFileSync(files.html, 'utf8'), /Tax invoice/)
    assert.deepEqual((await run('invoice', 'show', ...month)).json(), issued)
    assert.deepEqual((await run('invoice', 'show', 'INV-000001')).json(), issued)
    assert.deepEqual((await run('invoice', 'list', '--workspace', 'default')).json(), {
      object: 'list',
      data: [issued],
      next: null,
    })
    // Each line links to its rows.
    for (const { rows } of issued.lines) {
      const csv = await (await weir.call(`${weir.service.url}${rows}`)).text()
      assert.equal(csv.trimEnd().split('\n').length, 1001)
    }
  })

  it('refuses mistakes in one line', async () => {
    for (const [args, told] of [
      [['issue', ...month], /has already been invoiced: INV-000001/],
      [['issue', '--workspace', 'default', '--period', sydneyMonth(Date.now()).name], /not over yet/],
      [['issue', '--workspace', 'default', '--period', '2026-13'], /a month such as/],
      [['issue', '--workspace', 'nobody', '--period', lastMonth.name], /no workspace "nobody"/],
      [['credit', ...month, '--reason', 'x'], /either --request ID or --all or --amount/],
      [['credit', ...month, '--reason', 'x', '--amount', '5'], /more than INV-000001 comes to: A\$0\.20 is left/],
      [['credit', ...month, '--reason', 'x', '--request', 'nothing'], /Some of these requests are not in/],
      [['show', 'INV-9'], /no invoice "INV-9"/],
      [['hide'], /--workspace is required/],
    ] as const) {
      const { code, stderr } = await run('invoice', ...args)
      assert.notEqual(code, 0, args.join(' '))
      assert.match(stderr, told)
      assert.ok(stderr.trimEnd().split('\n').length <= 2, stderr)
    }
  })

  it('credits, and weir reconcile still finds nothing wrong', async () => {
    const note = (await run('invoice', 'credit', ...month, '--reason', 'A test', '--request', 'copy-1,copy-2')).json()
    assert.deepEqual([note['number'], note['adjusts'], note['ledger_rows']], ['ADJ-000001', 'INV-000001', 2])
    const page = async (...args: string[]) =>
      (await run('invoice', 'list', '--limit', '1', ...args)).json<{
        data: { number: string }[]
        next: string | null
      }>()
    const newest = await page()
    assert.deepEqual([newest.data.map(({ number }) => number), newest.next], [['ADJ-000001'], 'ADJ-000001'])
    const older = await page('--before', 'ADJ-000001', '--workspace', 'default')
    assert.deepEqual([older.data.map(({ number }) => number), older.next], [['INV-000001'], null])
    assert.match((await run('invoice', 'list', '--before', 'INV-9')).stderr, /'before' must be the 'next' value/)
    assert.match((await run('invoice', 'list', '--limit', '0')).stderr, /--limit must be a whole number/)
    const row = (await weir.ledger()).find(({ requestId }) => !requestId.includes('copy'))
    assert.equal((await run('usage', 'correct', row!.requestId, '--reason', 'A test')).code, 0)
    const proof = (await run('reconcile')).json()
    assert.deepEqual([proof['fits'], proof['rows'], proof['invoices']], [true, 1004, 2])
  })
})

describe("the operator's API", () => {
  it('previews, issues, credits, lists and shows as the command does', async () => {
    const asked = { workspace: 'default', period: lastMonth.name }
    assert.equal((await weir.admin('POST', '/admin/v1/invoices', asked)).status, 409)
    const preview = (await (await weir.admin('POST', '/admin/v1/invoices/preview', asked)).json()) as { number: string }
    assert.equal(preview.number, 'INV-000001')
    const note = await weir.admin('POST', '/admin/v1/invoices/credit', {
      ...asked,
      requests: ['copy-3'],
      reason: 'A test',
    })
    assert.equal(note.status, 201)
    for (const wrong of [{}, { all: true, amount: '1.00' }, { requests: ['copy-4'], amount: '1.00' }]) {
      const refused = await weir.admin('POST', '/admin/v1/invoices/credit', { ...asked, reason: 'A test', ...wrong })
      assert.equal(refused.status, 400)
    }
    const goodwill = await weir.admin('POST', '/admin/v1/invoices/credit', {
      ...asked,
      reason: 'Sorry',
      amount: '0.05',
    })
    assert.deepEqual([goodwill.status, ((await goodwill.json()) as { total: string }).total], [201, '-0.06'])
    const listed = async (query: string): Promise<[numbers: string[], next: string | null]> => {
      const response = await weir.admin('GET', `/admin/v1/invoices?${query}`)
      const { data, next } = (await response.json()) as { data: { number: string }[]; next: string | null }
      return [data.map(({ number }) => number), next]
    }
    assert.deepEqual(await listed(''), [['ADJ-000003', 'ADJ-000002', 'ADJ-000001', 'INV-000001'], null])
    const [newest, next] = await listed(`workspace=${asked.workspace}&limit=3`)
    assert.deepEqual([newest, next], [['ADJ-000003', 'ADJ-000002', 'ADJ-000001'], 'ADJ-000001'])
    assert.deepEqual(await listed(`workspace=${asked.workspace}&limit=3&before=${next}`), [['INV-000001'], null])
    assert.equal((await weir.admin('GET', '/admin/v1/invoices?before=INV-9')).status, 400)
    for (const [format, type] of [
      ['json', 'application/json'],
      ['html', 'text/html; charset=utf-8'],
      ['pdf', 'application/pdf'],
    ]) {
      const response = await weir.admin('GET', `/admin/v1/invoices/ADJ-000002?format=${format}`)
      assert.deepEqual([response.status, response.headers.get('content-type')], [200, type])
    }
    const proof = (await (await weir.admin('GET', '/admin/v1/reconcile')).json()) as { fits: boolean }
    assert.equal(proof.fits, true)
  })
})

describe('an invoice that is issued by the id of its preview', () => {
  it('is what the preview shows, or is refused if that has changed', async (t) => {
    const stage = await chatStage(t, { config: { seller }, script: { promptTokens: 1000, tokens: ['a', 'b'] } })
    await (await stage.weir.chat({})).text()
    await copyToLastMonth(stage.weir, 100)
    const asked = { workspace: 'default', period: lastMonth.name }
    const post = async (path: string, body: object) => {
      const response = await stage.weir.admin('POST', `/admin/v1/invoices${path}`, body)
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    }
    const previewed = async () => (await post('/preview', asked)).body
    const changes: readonly (readonly [string, () => Promise<unknown>])[] = [
      ['the buyer', () => stage.weir.admin('PATCH', '/admin/v1/workspaces/default', { buyer: { name: 'Acme' } })],
      ['a credit', () => post('/credit', { ...asked, reason: 'Sorry', amount: '0.01' })],
    ]
    for (const [what, change] of changes) {
      const before = await previewed()
      assert.equal((await previewed())['preview_id'], before['preview_id'])
      await change()
      const refused = await post('', { ...asked, preview_id: before['preview_id'] })
      const { code, param, message } = refused.body['error'] as Record<string, string>
      assert.deepEqual([refused.status, code, param], [409, 'conflict', 'preview_id'], what)
      assert.match(message ?? '', /default for \d{4}-\d\d has changed since it was previewed\. Preview it again/)
    }
    await stage.weir.admin('POST', '/admin/v1/workspaces', { name: 'acme' })
    const { preview_id, lines, total, buyer } = await previewed()
    assert.equal((await post('', { ...asked, workspace: 'acme', preview_id })).status, 409, 'of another workspace')
    assert.deepEqual(await (await stage.weir.admin('GET', '/admin/v1/invoices')).json(), {
      object: 'list',
      data: [],
      next: null,
    })
    const { status, body: issued } = await post('', { ...asked, preview_id })
    assert.equal(status, 201)
    const amounts = (all: unknown) => (all as { amount: string }[]).map(({ amount }) => amount)
    assert.deepEqual([amounts(issued['lines']), issued['total'], issued['buyer']], [amounts(lines), total, buyer])
    const again = await post('', { ...asked, preview_id })
    assert.equal(again.status, 409)
    assert.match(JSON.stringify(again.body), /has been invoiced since it was previewed: INV-000001/)
    assert.equal((await previewed())['preview_id'], null)
    // A month that was credited as a whole can be issued again, but that has no preview.
    assert.equal((await post('/credit', { ...asked, reason: 'Wrong buyer', all: true })).status, 201)
    assert.equal((await post('', { ...asked, preview_id })).status, 409)
    assert.equal((await post('', asked)).status, 201)
  })
})

describe("a correction by the operator's API", () => {
  const correct = (id: string, body: object): Promise<Response> =>
    weir.admin('POST', `/admin/v1/usage/${id}/correct`, body)

  it('is a new row that points to the old one and reverses its amount', async () => {
    engine.script = { promptTokens: 1000, tokens: ['a', 'b'] }
    const response = await weir.chat({})
    await response.text()
    const id = response.headers.get('x-request-id') ?? assert.fail('no request id')
    const done = await correct(id, { reason: 'Asked by mistake' })
    assert.deepEqual([done.status, await done.json()], [201, { corrects: id }])
    const rows = await weir.ledger()
    const row = rows.find(({ requestId }) => requestId === id)
    const taken = rows.find(({ correction }) => correction?.of === id)
    assert.equal(taken?.amount, -row!.amount)
    assert.deepEqual(taken?.correction, { of: id, reason: 'Asked by mistake', creditNote: '' })

    const again = await correct(id, { reason: 'Asked by mistake' })
    assert.deepEqual([again.status, (await weir.ledger()).length], [409, rows.length])
  })

  it('is refused if there is no such row, if it was invoiced, and without a reason', async () => {
    const rows = (await weir.ledger()).length
    assert.equal((await correct('nothing', { reason: 'A test' })).status, 404)
    const invoiced = await correct('copy-9', { reason: 'A test' })
    assert.equal(invoiced.status, 409)
    assert.match(await invoiced.text(), /has already been invoiced \(INV-000001\)\. Use weir invoice credit/)
    assert.equal((await correct('copy-9', {})).status, 400)
    assert.equal((await weir.ledger()).length, rows)
    const proof = (await (await weir.admin('GET', '/admin/v1/reconcile')).json()) as { fits: boolean }
    assert.equal(proof.fits, true)
  })
})

describe('reserved capacity', () => {
  it('[C5] is a line of hours at its rate, and its tokens cost nothing', async (t) => {
    const dedicated = [
      { workspace: 'default', engine: { kind: 'openai', urls: ['http://127.0.0.1:9/v1'] }, per_hour: '3600' },
    ]
    const { weir } = await chatStage(t, { model: { dedicated }, config: { seller } })
    const asked = { workspace: 'default', period: sydneyMonth(Date.now()).name }
    const preview = async () =>
      (await (await weir.admin('POST', '/admin/v1/invoices/preview', asked)).json()) as {
        lines: { unit: string; rate: string; quantity_ms: string; amount: string }[]
      }
    const [line] = (await preview()).lines
    assert.deepEqual([line?.unit, line?.rate], ['capacity_hours', '3600.00'])
    // A$1 per second is A$0.001 per millisecond.
    assert.equal(Number(line?.amount), Number(line?.quantity_ms) / 1000)
    weir.writeConfig(stageConfig(['http://127.0.0.1:9/v1'], { config: { seller } }))
    await weir.reload()
    const ended = await preview()
    assert.deepEqual(await preview(), ended, 'it ended when its entry left the catalog')
  })
})

describe('a seller', () => {
  it('is refused at the start if its ABN is invalid', async (t) => {
    const stage = await chatStage(t)
    stage.weir.writeConfig({ seller: { ...seller, abn: '51 824 753 557' } })
    const { code, stderr } = await commandLine([
      'invoice',
      'list',
      '--config',
      stage.weir.configFile,
      '--data',
      stage.weir.dataDir,
    ])
    assert.equal(code, 1)
    assert.match(stderr, /seller\.abn: must be an 11-digit ABN/)
  })
})

describe('a credit whose process is killed', () => {
  const ROWS = 5000

  /** Last month of a workspace, invoiced, and a command that credits all of it. */
  async function invoicedMonth(t: TestContext) {
    const books = await testBooks(lastMonth.from - 1)
    t.after(() => books.close())
    const acme = await books.workspace('acme')
    const version = await books.price('meta/a', { input_per_million: '0.20' }, lastMonth.from)
    const rows = Array.from({ length: ROWS }, (_, index) =>
      books.row(acme, 'meta/a', version, lastMonth.from + index, { inputTokens: 1_000_000 }),
    )
    await books.settle(await Promise.all(rows))
    books.now = Date.now()
    await books.invoicing.issue(acme, lastMonth)
    const configFile = join(books.dataDir, 'weir.yaml')
    const server = { port: 0, admin_port: 0 }
    writeFileSync(configFile, stringify({ server, log: { level: 'silent' }, seller, models: [] }))
    const files = ['--config', configFile, '--data', books.dataDir, '--json']
    const credit = [
      'invoice',
      'credit',
      '--workspace',
      'acme',
      '--period',
      lastMonth.name,
      '--all',
      '--reason',
      'Down.',
    ]
    return { books, acme, configFile, credit: [...credit, ...files] }
  }

  /** The rows of adjustment notes that are in the database, seen or not. */
  function rowsOfNotes(dataDir: string): number {
    const database = new DatabaseSync(join(dataDir, 'weir.db'), { readOnly: true })
    try {
      return Number(database.prepare("SELECT count(*) AS rows FROM ledger WHERE credit_note <> ''").get()?.['rows'])
    } finally {
      database.close()
    }
  }

  async function killed(command: readonly string[], dataDir: string): Promise<void> {
    const child = startCli(command)
    const ended = new Promise((resolve) => child.once('close', resolve))
    try {
      await eventually('some rows of the note are there', () => rowsOfNotes(dataDir) > 0, 30_000)
    } finally {
      child.kill('SIGKILL')
      await ended
    }
    const added = rowsOfNotes(dataDir)
    assert.ok(added > 0 && added < ROWS, `it was killed after ${added} of ${ROWS} rows`)
  }

  it('leaves a ledger that reconciles, and is finished by the same command', async (t) => {
    const { books, acme, credit } = await invoicedMonth(t)
    await killed(credit, books.dataDir)
    const before = await reconcileLedger(books.store)
    assert.deepEqual([before.problems, before.rows, before.invoices], [[], ROWS, 1])
    const total = await books.store.usageTotal({ workspaceId: acme.id, from: 0, to: Date.now(), groupBy: 'model' })
    assert.deepEqual([total.rows, total.amount], [ROWS, BigInt(ROWS) * 200_000_000_000n])

    assert.deepEqual((await commandLine(credit)).json()['number'], 'ADJ-000001')
    const after = await reconcileLedger(books.store)
    assert.deepEqual([after.problems, after.rows, after.invoices, after.amount], [[], 2 * ROWS, 2, 0n])
  })

  it('is finished by the service when it starts', async (t) => {
    const { books, configFile, credit } = await invoicedMonth(t)
    await killed(credit, books.dataDir)
    const start = () => startService(loadConfig({ config: configFile, data: books.dataDir }, {}))
    // Also if that is stopped before it gets there.
    await (await start()).stop()
    const service = await start()
    t.after(() => service.stop())
    await eventually('the note is issued', async () => (await books.store.invoices()).length === 2, 30_000)
    const { problems, rows, amount } = await reconcileLedger(books.store)
    assert.deepEqual([problems, rows, amount], [[], 2 * ROWS, 0n])
  })
})

describe('PDFs', () => {
  const path = '/console/api/invoices/INV-000001?format=pdf'

  it('that a member requested and no longer waits for delay no other', async (t) => {
    const signedIn = await fetch(`${weir.service.url}/console/api/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-weir-console': '1' },
      body: JSON.stringify({ key: weir.key }),
    })
    const cookie = (signedIn.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
    let renderings = 0
    const count = (): void => void renderings++
    process.on('worker', count)
    t.after(() => process.off('worker', count))

    const clients = await Promise.all(Array.from({ length: 60 }, () => rawClient(weir.service.url)))
    const head = `GET ${path} HTTP/1.1\r\nHost: weir.test\r\nCookie: ${cookie}\r\nX-Weir-Console: 1\r\n\r\n`
    for (const client of clients) client.send(head)
    const refused = (): RawClient[] => clients.filter(({ received }) => received.startsWith('HTTP/1.1 503'))
    // One is rendered and eight wait, if the first ones have not come already.
    await eventually('the others are refused', () => refused().length >= 50, 60_000)
    for (const { received } of refused())
      assert.match(received, /Retry-After: 2\r\n[^]*Too many PDFs that you asked for/)
    for (const client of clients) client.leave()
    const before = renderings
    for (let asked = 0; asked < 4; asked++) {
      const pdf = await weir.admin('GET', '/admin/v1/invoices/INV-000001?format=pdf')
      assert.equal(pdf.status, 200)
      assert.equal((await pdf.text()).slice(0, 5), '%PDF-')
      // Its own, and one that ran or began before the service noticed that the member has left.
      if (asked === 0) assert.ok(renderings - before <= 3, `${renderings - before} renderings`)
    }
    assert.ok(renderings - before <= 6, `${renderings - before} renderings`)
  })
})
