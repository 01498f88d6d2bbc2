import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sydneyDate } from '../../src/shared/money/sydney-time.ts'
import { stageConfig } from '../support/chat-stage.ts'
import { copyToLastMonth, lastMonth } from '../support/last-month.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually } from '../support/waiting.ts'
import { startWeir, type TestWeir } from '../support/weir.ts'

/** The drafts of a month, and payments, through the operator's API. */

interface Answer {
  readonly number: string
  readonly balance: { readonly state: string; readonly amount_due: string; readonly payments: readonly object[] }
}

let engine: ScriptedEngine
let weir: TestWeir

before(async () => {
  engine = await scriptedEngine()
  const seller = { name: 'Example Pty Ltd', abn: '51 824 753 556' }
  weir = await startWeir(stageConfig([engine.url], { config: { seller } }))
  engine.script = { promptTokens: 1000, tokens: ['a', 'b'] }
  await (await weir.chat({})).text()
  await copyToLastMonth(weir, 1000)
})
after(async () => {
  await weir.stop()
  await engine.close()
})

const today = sydneyDate(Date.now())
const pay = (body: object, number = 'INV-000001') =>
  weir.admin('POST', `/admin/v1/invoices/${number}/payments`, { paid_on: today, reference: 'bank 1', ...body })
const brief = ({ balance }: Answer) => [balance.state, balance.amount_due, balance.payments.length]
const read = async (response: Response) => (await response.json()) as Answer
const stateIn = (balance: string) => (JSON.parse(balance) as Answer['balance']).state
const numbers = async (state: string) => {
  const list = (await (await weir.admin('GET', `/admin/v1/invoices?state=${state}`)).json()) as { data: Answer[] }
  return list.data.map(({ number }) => number)
}

describe('the drafts of a month', () => {
  it('are listed and issued, each with its result, and recorded in the audit log', async () => {
    const path = `/admin/v1/invoices/drafts?period=${lastMonth.name}`
    const list = (await (await weir.admin('GET', path)).json()) as {
      data: { workspace: string; preview_id: string; total: string; obstacle: string | null }[]
      next: null
    }
    assert.deepEqual(
      list.data.map(({ workspace, total, obstacle }) => [workspace, total, obstacle]),
      [['default', '0.22', null]],
    )
    assert.equal(list.next, null)
    const drafts = [
      { workspace: 'unknown', preview_id: 'x' },
      { workspace: 'default', preview_id: list.data[0]!.preview_id },
    ]
    const body = { period: lastMonth.name, drafts }
    const issued = await weir.admin('POST', '/admin/v1/invoices/drafts/issue', body)
    assert.equal(issued.status, 200)
    const { data } = (await issued.json()) as { data: { number: string | null; error: { code: string } | null }[] }
    assert.deepEqual(
      data.map(({ number, error }) => number ?? error?.code),
      ['not_found', 'INV-000001'],
    )
    const log = (await (await weir.admin('GET', '/admin/v1/audit-log?limit=1')).json()) as {
      data: { action: string; request: string }[]
    }
    assert.deepEqual([log.data[0]?.action, JSON.parse(log.data[0]?.request ?? '')], ['issueDrafts', body])
    for (const wrong of ['2026-13', '']) {
      assert.equal((await weir.admin('GET', `/admin/v1/invoices/drafts?period=${wrong}`)).status, 400)
    }
    const many = Array.from({ length: 101 }, () => drafts[0]!)
    assert.equal((await weir.admin('POST', '/admin/v1/invoices/drafts/issue', { ...body, drafts: many })).status, 400)
  })
})

interface Audited {
  readonly action: string
  readonly subject: string
  readonly before: string
  readonly after: string
}

describe('payments', () => {
  it('are recorded, listed by state, removed, and audited with the state before and after', async () => {
    assert.deepEqual([await numbers('due'), await numbers('paid')], [['INV-000001'], []])
    const paid = await pay({})
    assert.equal(paid.status, 201)
    assert.deepEqual(brief(await read(paid)), ['paid', '0.00', 1])
    assert.deepEqual(brief(await read(await weir.admin('GET', '/admin/v1/invoices/INV-000001'))), ['paid', '0.00', 1])
    assert.deepEqual([await numbers('due'), await numbers('paid')], [[], ['INV-000001']])
    const removed = await weir.admin('DELETE', '/admin/v1/invoices/INV-000001/payments/1')
    assert.deepEqual(brief(await read(removed)), ['due', '0.22', 0])
    const newest = async (): Promise<readonly Audited[]> =>
      ((await (await weir.admin('GET', '/admin/v1/audit-log?limit=2')).json()) as { data: Audited[] }).data
    // An entry gets its end after the answer is sent.
    await eventually('both have an end', async () => (await newest()).every(({ after }) => after !== null))
    assert.deepEqual(
      (await newest()).map(({ action, subject, before, after }) => [action, subject, stateIn(before), stateIn(after)]),
      [
        ['removePayment', 'INV-000001 1', 'paid', 'due'],
        ['recordPayment', 'INV-000001', 'due', 'paid'],
      ],
    )
  })
})
