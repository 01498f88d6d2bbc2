import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser } from 'playwright-core'
import { assertAccessible, openBrowser, openPage } from '../support/browser.ts'
import { startWeir, type TestWeir } from '../support/weir.ts'
import { WEBHOOK_SECRET, webhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

let receiver: WebhookReceiver
let weir: TestWeir
let browser: Browser

before(async () => {
  receiver = await webhookReceiver()
  const hook = { name: 'ops', url: receiver.url, secret_env: 'HOOK', allow_private: true }
  const alerts = { webhooks: [hook, { ...hook, name: 'billing', events: ['invoice.issued'], workspace: 'acme' }] }
  weir = await startWeir({ models: [], alerts }, { HOOK: WEBHOOK_SECRET })
  browser = await openBrowser()
})
after(async () => {
  await browser.close()
  await weir.stop()
  await receiver.stop()
})

describe('the alerts in the console of the operator', () => {
  it('list endpoints and deliveries, and send tests and replays', async () => {
    const page = await openPage(await browser.newContext({ reducedMotion: 'reduce' }))
    await page.goto(`${weir.adminUrl}/console/alerts`)
    await page.getByLabel('Operator token').fill(weir.operatorToken)
    await page.keyboard.press('Enter')
    const endpoints = page.getByRole('table', { name: 'Endpoints' })
    await endpoints.getByRole('row').filter({ hasText: 'billing' }).getByText('invoice.issued').waitFor()
    receiver.answer = { status: 500 }
    await page.getByRole('button', { name: 'Test ops' }).click()
    await page.getByText('A test for ops is queued.').waitFor()
    const test = page.getByRole('table', { name: 'Deliveries' }).getByRole('row').filter({ hasText: 'webhook.test' })
    await test.waitFor()
    const refreshUntil = async (text: string): Promise<void> => {
      while ((await test.getByText(text).count()) === 0) {
        await page.getByRole('button', { name: 'Refresh' }).click()
        await page.waitForTimeout(200)
      }
    }
    await refreshUntil('HTTP 500')
    await test.getByText('Waiting').waitFor()
    await assertAccessible(page)

    receiver.answer = { status: 204 }
    await refreshUntil('Delivered')
    const arrived = () => receiver.received.filter(({ event, id }) => event.type === 'webhook.test' && id)
    const before = arrived().length
    await test.getByRole('button', { name: 'Replay webhook.test to ops' }).click()
    await page.getByText('webhook.test is queued again, under the same id.').waitFor()
    while (arrived().length === before) await page.waitForTimeout(100)
    assert.equal(new Set(arrived().map(({ id }) => id)).size, 1)
    await page.getByRole('button', { name: 'Failed', exact: true }).click()
    await page.getByText('No deliveries').waitFor()
    await assertAccessible(page)
    assert.deepEqual(page.problems, [])
  })
})
