import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { SMTPServer } from 'smtp-server'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage } from '../support/console-stage.ts'
import { eventually } from '../support/waiting.ts'
import { copyToLastMonth, lastMonth, useLastMonth } from '../support/last-month.ts'

let stage: ConsoleStage
let mailbox: SMTPServer
const recipients: string[] = []

before(async () => {
  mailbox = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, { envelope }, done) {
      stream.resume()
      stream.on('end', () => {
        recipients.push(...envelope.rcptTo.map(({ address }) => address))
        done()
      })
    },
  })
  mailbox.listen(0, '127.0.0.1')
  await once(mailbox.server, 'listening')
  const { port } = mailbox.server.address() as AddressInfo
  stage = await consoleStage({
    seller: { name: 'Example Pty Ltd', abn: '51824753556' },
    smtp: { host: '127.0.0.1', port, from: 'invoices@example.com' },
  })
  stage.engine.script = { promptTokens: 8000 }
  await (await stage.weir.chat({})).text()
  await copyToLastMonth(stage.weir, 5)
})
after(async () => {
  await stage.stop()
  await new Promise<void>((done) => {
    mailbox.close(done)
  })
})

describe('an invoice that the operator issues', () => {
  it('is the one that was previewed, after a confirmation; a changed field clears the preview', async () => {
    const { page, context, go } = await stage.operator()
    await stage.weir.admin('POST', '/admin/v1/workspaces', { name: 'acme' })
    await go('/invoices')
    const workspace = page.getByLabel('Workspace', { exact: true })
    const preview = page.getByRole('button', { name: 'Preview' })
    const issue = page.getByRole('button', { name: 'Issue the invoice' })
    const total = page.getByText('Total, incl. GST')
    await workspace.fill('default')
    await preview.click()
    await issue.waitFor()
    for (const change of [() => workspace.fill('acme'), () => page.getByLabel('Month').fill('2020-01')]) {
      await workspace.fill('default')
      await page.getByLabel('Month').fill(lastMonth.name)
      await preview.click()
      await issue.waitFor()
      await change()
      await issue.waitFor({ state: 'detached' })
      assert.equal(await total.count(), 0)
    }

    await page.getByLabel('Month').fill(lastMonth.name)
    await preview.click()
    await issue.click()
    const question = page.getByRole('dialog')
    for (const text of ['default', 'Period', 'A$']) await question.getByText(text).first().waitFor()
    await assertAccessible(page)
    await question.getByRole('button', { name: 'Cancel' }).click()
    assert.deepEqual(await issued(), [])

    await stage.weir.admin('PATCH', '/admin/v1/workspaces/default', { buyer: { name: 'Another buyer' } })
    await issue.click()
    await question.getByRole('button', { name: 'Issue' }).click()
    await question.getByText('has changed since it was previewed').waitFor()
    assert.deepEqual(await issued(), [])
    await question.getByRole('button', { name: 'Cancel' }).click()
    await preview.click()
    await page.getByText('Another buyer').waitFor()
    await issue.click()
    await question.getByRole('button', { name: 'Issue' }).click()
    await page.getByRole('link', { name: 'INV-000001' }).waitFor()
    assert.deepEqual(await issued(), ['INV-000001'])
    assert.equal(await issue.count(), 0)
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('is sent by e-mail once the buyer has an address, and again', async () => {
    const { page, context, go } = await stage.operator()
    await go('/invoices/INV-000001')
    await page.getByText('Not sent by e-mail.').waitFor()
    const send = page.getByRole('button', { name: 'Send by e-mail' })
    await send.click()
    await page.getByRole('alert').getByText('e-mail').waitFor()
    await assertAccessible(page)
    assert.deepEqual(recipients, [])
    await stage.weir.admin('PATCH', '/admin/v1/workspaces/default', { buyer: { email: 'accounts@acme.example' } })
    await send.click()
    await page.getByText(/^(Waits to be sent|Sent) to accounts@acme\.example/).waitFor()
    await eventually('the e-mail has arrived', () => recipients.length === 1)
    await eventually('the page has read that it was sent', async () => {
      await go('/invoices/INV-000001')
      await page.getByRole('button', { name: 'Send again' }).waitFor()
      return (await page.getByText(/^Sent to accounts@acme\.example on /).count()) === 1
    })
    await page.getByRole('button', { name: 'Send again' }).click()
    await eventually('the second e-mail has arrived', () => recipients.length === 2)
    await assertAccessible(page)
    await stage.weir.admin('PATCH', '/admin/v1/workspaces/default', { buyer: { email: null } })
    await context.close()
  })

  it('is paid in parts, and a payment that was a mistake is removed', async () => {
    const { page, context, go } = await stage.operator()
    await go('/invoices/INV-000001')
    const about = page.locator('.figures')
    await about.getByText('Due', { exact: true }).first().waitFor()
    const payment = page.getByRole('button', { name: 'Record a payment' })
    await payment.click()
    const dialog = page.getByRole('dialog')
    const amount = dialog.getByLabel('Amount in A$, including GST')
    const due = await amount.inputValue()
    assert.match(due, /^0\.\d\d$/)
    await amount.fill('5000.00')
    await dialog.getByLabel('Reference').fill('bank 1')
    await dialog.getByRole('button', { name: 'Record' }).click()
    await dialog.getByText(`Only A$${due} is due on INV-000001.`).waitFor()
    await assertAccessible(page)
    await amount.fill(due)
    await dialog.getByRole('button', { name: 'Record' }).click()
    await about.getByText('Paid', { exact: true }).waitFor()
    assert.equal(await payment.count(), 0, 'nothing is due')
    await assertAccessible(page)

    await go('/invoices')
    await page.getByLabel('State').selectOption('Overdue')
    await page.getByText('No invoice is in the state “Overdue”').waitFor()
    await page.getByLabel('State').selectOption('Paid')
    await page.getByRole('link', { name: 'INV-000001' }).click()

    await page.getByRole('region', { name: 'Payments' }).getByRole('button', { name: 'Remove' }).click()
    await dialog.getByText('bank 1').waitFor()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await payment.waitFor()
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('is credited as a whole only if the operator chooses that', async () => {
    const { page, context, go } = await stage.operator()
    await go('/invoices/INV-000001')
    await page.getByRole('button', { name: 'Credit' }).click()
    const dialog = page.getByRole('dialog')
    const note = dialog.getByRole('button', { name: 'Issue the note' })
    await dialog.getByLabel('Reason, printed on the note').fill('Slow answers')
    assert.equal(await note.isDisabled(), true, 'nothing is chosen')
    await dialog.getByLabel('An amount').check()
    await note.click()
    const amount = dialog.getByLabel('Amount in A$, excluding GST')
    await dialog.locator('.field-problem').waitFor()
    assert.equal(await amount.getAttribute('aria-invalid'), 'true')
    assert.equal(await dialog.getByLabel('Reason, printed on the note').inputValue(), 'Slow answers')
    await assertAccessible(page)
    assert.deepEqual(await issued(), ['INV-000001'])
    await dialog.getByLabel('Everything that is left').check()
    await note.click()
    await dialog.getByText('Adjustment note ADJ-000001').waitFor()
    assert.deepEqual(page.problems, [])
    await context.close()
  })
})

async function issued(): Promise<readonly string[]> {
  const response = await stage.weir.admin('GET', '/admin/v1/invoices')
  return ((await response.json()) as { data: { number: string }[] }).data.map(({ number }) => number)
}

describe('the drafts of a month', () => {
  it('are reviewed, chosen and issued together; one that has changed is refused', async () => {
    const { weir } = stage
    const { page, context, go } = await stage.operator()
    const names = ['drafts-a', 'drafts-b', 'drafts-c']
    for (const name of names) await useLastMonth(weir, name)
    await go('/invoices')
    await page.getByRole('link', { name: 'Drafts of a month' }).click()
    await page.getByLabel('Month').fill(lastMonth.name)
    const table = page.getByRole('region', { name: 'Drafts', exact: true })
    for (const name of names) assert.equal(await table.getByLabel(name).isChecked(), true)
    await page.getByRole('button', { name: 'Issue 3 invoices, A$3.30' }).waitFor()
    await assertAccessible(page)
    await table.getByRole('button', { name: 'View' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Total, incl. GST').waitFor()
    await assertAccessible(page)
    await dialog.getByRole('button', { name: 'Close' }).first().click()

    await table.getByLabel('drafts-c').uncheck()
    await page.getByRole('button', { name: 'Issue 2 invoices, A$2.20' }).click()
    await dialog.getByText('A$2.20').waitFor()
    await assertAccessible(page)
    await weir.admin('PATCH', '/admin/v1/workspaces/drafts-b', { buyer: { name: 'Another buyer' } })
    const before = (await issued()).length
    await dialog.getByRole('button', { name: 'Issue' }).click()
    const result = page.getByRole('status').getByText('1 invoice issued, A$1.10; 1 refused')
    await result.waitFor()
    await page.getByText('has changed since it was previewed').waitFor()
    await page.getByRole('button', { name: 'Issue 1 invoice, A$1.10' }).waitFor()
    assert.equal((await issued()).length, before + 1)
    await assertAccessible(page)
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('name the request id if the service fails to make or to issue them', async () => {
    await useLastMonth(stage.weir, 'drafts-d')
    const { page, context, go } = await stage.operator()
    const fault = {
      status: 500,
      headers: { 'x-request-id': '0mrequest' },
      json: { error: { code: 'internal_error', message: 'Something went wrong.', param: null } },
    }
    const answered = await stage.weir.admin('GET', '/admin/v1/invoices')
    assert.match(answered.headers.get('x-request-id') ?? '', /^\w+$/, 'as every answer has it')
    const address = '**/admin/v1/invoices/drafts*'
    await page.route(address, (route) => route.fulfill(fault))
    await go('/invoices/drafts')
    await page.getByRole('alert').getByText('Its request id, for the log of the service: 0mrequest').waitFor()
    await page.unroute(address)
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('button', { name: /^Issue \d+ invoice/ }).click()
    await page.route('**/admin/v1/invoices/drafts/issue', (route) => route.fulfill(fault))
    await page.getByRole('dialog').getByRole('button', { name: 'Issue' }).click()
    await page.getByRole('alert').getByText('0mrequest').first().waitFor()
    await assertAccessible(page)
    await context.close()
  })
})

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
