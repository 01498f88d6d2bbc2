import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { stringify } from 'yaml'
import { ProblemsFound, UsageError } from '../../src/cli/command.ts'
import { invoice } from '../../src/billing/invoices/commands/invoice.ts'
import { ApiError } from '../../src/shared/errors.ts'
import { stageWithRows, MARCH } from '../support/books-stage.ts'
import { printed } from '../support/printed.ts'
import { modelEntry } from '../support/weir.ts'

describe('weir invoice', () => {
  it('previews, issues, shows, lists and credits documents, and audits each action', async (t) => {
    const { shown, run, audit, dataDir } = await stageWithRows(t)
    const month = '--workspace acme --period 2025-03'
    const body = (title: string, owed = '\namount due A$1.88 by TODAY (due)') => `${title}
Weir Example → acme, 1 March 2025 to 31 March 2025

DESCRIPTION                   QUANTITY        RATE (AUD)  AMOUNT (AUD)
meta/test-8b: input tokens   1,070,000  0.20 / 1M tokens         0.214
meta/test-8b: output tokens  2,500,000  0.60 / 1M tokens          1.50

subtotal A$1.71 + GST A$0.17 = A$1.88${owed}`
    assert.equal(await shown(`invoice preview ${month}`), body('Preview: not a tax invoice', ''))
    const files = [join(dataDir, 'one.pdf'), join(dataDir, 'one.html')]
    assert.equal(
      await shown(`invoice issue ${month} --pdf ${files[0]} --html ${files[1]}`),
      body('Tax invoice INV-000001'),
    )
    assert.equal(readFileSync(files[0]!).subarray(0, 5).toString(), '%PDF-')
    assert.match(readFileSync(files[1]!, 'utf8'), /INV-000001/)
    assert.equal(await shown(`invoice show ${month}`), body('Tax invoice INV-000001'))
    assert.equal(await shown('invoice show INV-000001'), body('Tax invoice INV-000001'))
    const json = JSON.parse(await shown('invoice show INV-000001 --json')) as { number: string; lines: object[] }
    assert.deepEqual([json.number, json.lines.length], ['INV-000001', 2])
    assert.equal(
      await shown(`invoice credit ${month} --request request-000000001,request-000000002 --reason "not used"`),
      `Adjustment note ADJ-000001
Weir Example → acme, 1 March 2025 to 31 March 2025

DESCRIPTION                    QUANTITY        RATE (AUD)  AMOUNT (AUD)
meta/test-8b: input tokens   -1,070,000  0.20 / 1M tokens        -0.214
meta/test-8b: output tokens    -500,000  0.60 / 1M tokens         -0.30

subtotal A$-0.51 + GST A$-0.05 = A$-0.56`,
    )
    assert.match(await shown(`invoice credit ${month} --amount 0.10 --reason kind`), /^Adjustment note ADJ-000002\n/)
    assert.match(await shown(`invoice credit ${month} --all --reason rest`), /^Adjustment note ADJ-000003\n/)
    assert.equal(
      await shown('invoice list'),
      `NUMBER      WORKSPACE  PERIOD   DUE         REFERS TO     TOTAL  STATE     AMOUNT DUE
ADJ-000003  acme       2025-03  -           INV-000001  A$-1.21  -                  -
ADJ-000002  acme       2025-03  -           INV-000001  A$-0.11  -                  -
ADJ-000001  acme       2025-03  -           INV-000001  A$-0.56  -                  -
INV-000001  acme       2025-03  TODAY  -            A$1.88  credited      A$0.00`,
    )
    const page = await shown('invoice list --workspace acme --limit 2')
    assert.match(
      page,
      /^NUMBER .*\nADJ-000003 .*\nADJ-000002 .*\n\nThere are more documents: see them with --before ADJ-000002\.$/,
    )
    assert.match(await shown('invoice list --before ADJ-000001'), /^NUMBER .*\nINV-000001 [^\n]*$/)
    const list = JSON.parse(await shown('invoice list --json')) as { object: string; data: object[]; next: null }
    assert.deepEqual([list.object, list.data.length, list.next], ['list', 4, null])
    assert.equal(await shown('invoice revoke-links'), 'All links on invoices so far are revoked.')
    assert.equal(await shown('invoice revoke-links --json'), '{"revoked":true}')
    await run(`invoice issue --workspace acme --period 2025-02`)
    const acme = { workspace: 'acme', period: '2025-03' }
    assert.deepEqual(await audit(7), [
      ['issueInvoice', '', acme, 'done'],
      ['creditInvoice', '', { ...acme, reason: 'not used', request: 'request-000000001,request-000000002' }, 'done'],
      ['creditInvoice', '', { ...acme, reason: 'kind', amount: '0.10' }, 'done'],
      ['creditInvoice', '', { ...acme, reason: 'rest', all: true }, 'done'],
      ['revokeInvoiceLinks', '', null, 'done'],
      ['revokeInvoiceLinks', '', null, 'done'],
      ['issueInvoice', '', { workspace: 'acme', period: '2025-02' }, 'refused'],
    ])
  })

  it('records payments, removes mistaken ones, lists by state, and audits each action', async (t) => {
    const { shown, failed, audit } = await stageWithRows(t)
    await shown('invoice issue --workspace acme --period 2025-03')
    const states = async (state: string) =>
      (JSON.parse(await shown(`invoice list --state ${state} --json`)) as { data: object[] }).data.length
    assert.deepEqual([await states('due'), await states('overdue'), await states('paid')], [1, 0, 0])
    const owed = async (line: string) => (await shown(line)).split('A$1.88\n')[1]
    assert.equal(
      await owed('invoice paid INV-000001 --on 2026-11-02 --reference "bank 7" --amount 1.00'),
      'payment 1: A$1.00 on TODAY, bank 7\namount due A$0.88 by TODAY (due)',
    )
    assert.equal(
      await owed('invoice paid INV-000001 --on 2026-11-03 --reference "bank 8"'),
      `payment 1: A$1.00 on TODAY, bank 7
payment 2: A$0.88 on TODAY, bank 8
amount due A$0.00 by TODAY (paid)`,
    )
    assert.deepEqual([await states('due'), await states('paid')], [0, 1])
    assert.deepEqual(await failed('invoice paid INV-000001 --on 2026-11-03 --reference more'), [
      ApiError,
      'Nothing is due on INV-000001.',
    ])
    assert.equal(
      await owed('invoice unpaid INV-000001 --payment 1'),
      'payment 2: A$0.88 on TODAY, bank 8\namount due A$1.00 by TODAY (due)',
    )
    assert.deepEqual(await failed('invoice paid --on 2026-11-03 --reference x'), [
      UsageError,
      'give the number of an invoice: weir invoice paid NUMBER',
    ])
    assert.deepEqual(await failed('invoice unpaid INV-000001 --payment x'), [
      UsageError,
      '--payment must be the number of a payment, such as 1',
    ])
    assert.deepEqual(await failed('invoice list --state late'), [
      UsageError,
      '--state must be one of due, overdue, paid, credited, refund_due',
    ])
    assert.deepEqual(await audit(4), [
      ['recordPayment', 'INV-000001', { paid_on: '2026-11-02', reference: 'bank 7', amount: '1.00' }, 'done'],
      ['recordPayment', 'INV-000001', { paid_on: '2026-11-03', reference: 'bank 8' }, 'done'],
      ['recordPayment', 'INV-000001', { paid_on: '2026-11-03', reference: 'more' }, 'refused'],
      ['removePayment', 'INV-000001 1', null, 'done'],
    ])
  })

  it('lists the drafts of a month, and issues those of a file exactly as listed', async (t) => {
    const { books, shown, run, failed, audit, dataDir } = await stageWithRows(t)
    assert.equal(
      await shown('invoice drafts --period 2025-03'),
      `WORKSPACE  REQUESTS   GST   TOTAL  CAN BE ISSUED
acme              3  0.17  A$1.88  yes

1 draft, A$1.88 including GST`,
    )
    const file = join(dataDir, 'drafts.json')
    writeFileSync(file, await shown('invoice drafts --period 2025-03 --json'))
    await books.store.setBuyer((await books.store.workspaces())[0]!.id, {
      name: 'Another buyer',
      abn: null,
      address: null,
      purchaseOrder: null,
      email: null,
    })
    const refused = await run(`invoice issue --drafts ${file}`)
    assert.ok(refused.failure instanceof ProblemsFound)
    assert.match(refused.stdout, /^acme +The invoice of acme for 2025-03 has changed since/m)
    assert.match(refused.stdout, /0 invoices issued, A\$0\.00 including GST\n$/)
    writeFileSync(file, await shown('invoice drafts --period 2025-03 --json'))
    assert.equal(
      await shown(`invoice issue --drafts ${file}`),
      `WORKSPACE  NUMBER       TOTAL
acme       INV-000001  A$1.88

1 invoice issued, A$1.88 including GST`,
    )
    assert.equal(await shown('invoice drafts --period 2025-03'), '(none)\n\n0 drafts, A$0.00 including GST')
    const workspace = (await books.store.workspaces())[0]!
    const april = await books.row(workspace, 'meta/test-8b', 1, MARCH + 30 * 86_400_000, { inputTokens: 1_000_000 })
    await books.settle([april])
    assert.match(
      await shown('invoice drafts --period 2025-04'),
      /^WORKSPACE .* TOTAL  PREVIOUS  CAN BE ISSUED\nacme .* A\$1\.88  /,
    )
    const many = Array.from({ length: 101 }, () => ({ workspace: 'acme', preview_id: 'old' }))
    writeFileSync(file, JSON.stringify({ period: '2025-04', data: many }))
    const { stdout } = await run(`invoice issue --drafts ${file} --json`)
    assert.equal((JSON.parse(stdout) as { data: object[] }).data.length, 101, 'a hundred at a time')
    writeFileSync(file, '{"object":"list","data":[]}')
    assert.deepEqual(await failed(`invoice issue --drafts ${file}`), [
      UsageError,
      `${file} must be what weir invoice drafts --json printed, with at least one draft`,
    ])
    const entries = (await audit(4)) as [string, string, { period: string; drafts: object[] }, string][]
    assert.deepEqual(
      entries.map(([action, , { period, drafts }, result]) => [action, period, drafts.length, result]),
      [
        ['issueDrafts', '2025-03', 1, 'done'],
        ['issueDrafts', '2025-03', 1, 'done'],
        ['issueDrafts', '2025-04', 100, 'done'],
        ['issueDrafts', '2025-04', 1, 'done'],
      ],
    )
  })

  it('shows the rows of a line in pages', async (t) => {
    const { shown, failed } = await stageWithRows(t)
    await shown('invoice issue --workspace acme --period 2025-03')
    assert.equal(
      await shown('invoice rows INV-000001 --line 1'),
      `Tax invoice INV-000001, meta/test-8b: input tokens

TIME (SYDNEY)        REQUEST             QUANTITY   AMOUNT
2025-03-15 12:30:00  request-000000001  1,000,000  A$0.200
2025-03-15 12:30:01  request-000000002     70,000  A$0.014
2025-03-16 12:30:00  request-000000003          0  A$0.000

3 rows of a line of A$0.214 excluding GST`,
    )
    const first = await shown('invoice rows INV-000001 --line 1 --limit 1')
    const [, after] = /\n\n1 row of a line of .*\nThere are more rows: see them with --after (\S+)\.$/.exec(first) ?? []
    const second = await shown(`invoice rows INV-000001 --line 1 --after ${after}`)
    assert.match(
      second,
      /AMOUNT\n2025-03-15 12:30:01 .*\n2025-03-16 .*\n\n2 rows of a line of A\$0\.214 excluding GST$/,
    )
    const json = JSON.parse(await shown('invoice rows INV-000001 --line 1 --limit 1 --json')) as {
      readonly object: string
      readonly line: { readonly description: string }
      readonly data: readonly object[]
      readonly next: string
    }
    assert.deepEqual(
      [json.object, json.line.description, json.data.length, json.next],
      ['list', 'meta/test-8b: input tokens', 1, after],
    )
    const whole = JSON.parse(await shown('invoice rows INV-000001 --line 1 --limit 3 --json')) as {
      next: string | null
    }
    assert.equal(whole.next, null)
    const actions =
      'choose an action: preview, drafts, issue, list, show, rows, credit, paid, unpaid, send or revoke-links'
    const ways = 'give either --request ID or --all or --amount AUD'
    const month = '--workspace acme --period 2025-03'
    const cases = {
      [`invoice ${month}`]: actions,
      [`invoice make ${month}`]: actions,
      'invoice preview --period 2025-03': '--workspace is required',
      'invoice preview --workspace acme': '--period is required',
      'invoice preview --workspace acme --period 2025-13': '--period must be a month such as 2026-11',
      'invoice rows': 'give the number of a document: weir invoice rows NUMBER --line N',
      'invoice rows INV-000001': '--line is required',
      'invoice send': 'give the number of a document: weir invoice send NUMBER',
      [`invoice credit ${month} --all`]: '--reason is required',
      [`invoice credit ${month} --reason x`]: ways,
      [`invoice credit ${month} --reason x --all --amount 1`]: ways,
      [`invoice credit ${month} --reason x --request r --amount 1`]: ways,
      [`invoice credit ${month} --reason x --request r --all`]: ways,
      'invoice show a b': 'unexpected argument "b"; put names with spaces in quotes',
    }
    for (const [line, message] of Object.entries(cases)) assert.deepEqual(await failed(line), [UsageError, message])
    assert.equal((await failed('invoice show INV-000009'))[0], ApiError)
    assert.equal((await failed('invoice list --limit x'))[0], UsageError)
  })

  it('shows what a document of A$1,000 lacks, and that there is no seller', async (t) => {
    const { books, dataDir, shown } = await stageWithRows(t)
    const lacks = 'A tax invoice of A$1,000 or more must say who the buyer is. Missing: '
    const workspace = (await books.store.workspaces())[0]!
    const { email, purchaseOrder } = workspace.buyer
    await books.store.setBuyer(workspace.id, { name: null, abn: null, address: null, email, purchaseOrder })
    const config = join(dataDir, 'no-seller.yaml')
    writeFileSync(config, stringify({ models: [modelEntry(['http://127.0.0.1:9/v1'])] }))
    const args = ['--workspace', 'acme', '--period', '2025-03', '--config', config, '--data', books.dataDir]
    const { stdout, stderr } = await printed(invoice, 'preview', ...args)
    assert.match(stdout, /^Preview: not a tax invoice\n\(no seller in weir\.yaml\) → acme, /)
    assert.equal(stderr, '')
    await books.settle([await books.row(workspace, 'meta/test-8b', 1, MARCH, { inputTokens: 5_000_000_000 })])
    assert.ok((await printed(invoice, 'preview', ...args)).stderr.startsWith(`weir: ${lacks}`))
    const drafts = await shown('invoice drafts --period 2025-03')
    assert.match(drafts, /^acme .* A\$1,101\.88  no\n/m)
    assert.ok(drafts.includes(`\nacme: ${lacks}`))
  })
})

describe('weir reconcile', () => {
  it('reports that everything agrees, or what does not, and then fails', async (t) => {
    const { shown, run, books, rows } = await stageWithRows(t)
    assert.equal(
      await shown('reconcile'),
      '3 rows in 1 workspace, A$1.714; 0 invoices and adjustment notes\n✔ Everything agrees.',
    )
    await shown('invoice issue --workspace acme --period 2025-03')
    assert.match(await shown('reconcile'), /; 1 invoice or adjustment note\n/)
    assert.equal((JSON.parse(await shown('reconcile --json')) as { problems: object[] }).problems.length, 0)
    await books.settle([{ ...rows[0]!, requestId: 'wrong', settledAt: MARCH + 1_000_000_000, amount: 1n }])
    const { stdout, failure } = await run('reconcile')
    assert.ok(failure instanceof ProblemsFound)
    assert.equal(failure.message, 'problems found; see above')
    assert.match(stdout, /^4 rows in 1 workspace, .*\n✖ \S+: acme, wrong\n {4}\S.*\n/)
    assert.doesNotMatch(stdout, /Everything agrees/)
  })
})
