import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage } from '../support/console-stage.ts'
import { copyToLastMonth, lastMonth } from '../support/last-month.ts'

let stage: ConsoleStage

before(async () => {
  stage = await consoleStage({ seller: { name: 'Example Pty Ltd', abn: '51824753556' } })
  await (await stage.weir.chat({})).text()
  await copyToLastMonth(stage.weir, 5)
  const body = { workspace: 'default', period: lastMonth.name }
  const issued = await stage.weir.admin('POST', '/admin/v1/invoices', body)
  assert.equal(issued.status, 201, await issued.text())
})
after(() => stage.stop())

describe('an invoice in the console', () => {
  it('has its lines, their requests, and a PDF', async () => {
    const { page, context, go } = await stage.visitor()
    await go('/invoices')
    await page.getByRole('link', { name: 'INV-000001' }).click()
    await page.getByRole('heading', { name: 'Tax invoice INV-000001' }).waitFor()
    await page.getByText('Total, incl. GST').waitFor()
    await assertAccessible(page)
    await page.getByRole('link', { name: 'Show' }).first().click()
    await page.getByRole('region', { name: 'Requests' }).getByRole('row').nth(5).waitFor()
    await assertAccessible(page)
    const pdf = await context.request.get(`${stage.weir.service.url}/console/api/invoices/INV-000001?format=pdf`)
    assert.equal((await pdf.body()).subarray(0, 5).toString(), '%PDF-')
    assert.deepEqual(page.problems, [])
    await context.close()
  })
})
