import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage } from '../support/console-stage.ts'

/** Forms keep what was typed, and mark each field that is wrong. */

let stage: ConsoleStage

before(async () => {
  stage = await consoleStage()
})
after(() => stage.stop())

describe('a form of the operator', () => {
  it('keeps every value when one is refused, and saves them all when it is corrected', async () => {
    const { page, context, go } = await stage.operator()
    await stage.weir.admin('POST', '/admin/v1/workspaces', { name: 'acme' })
    await go('/workspaces/acme')
    const typed = {
      'Requests a minute': '70',
      'Spend limit, A$ a month': '250.5',
      Buyer: 'Acme Pty Ltd',
      ABN: '51 824 753 557',
      Address: '2 River Road',
      'Purchase order': 'PO-7',
      'Tokens a minute': '9000',
    }
    for (const [label, value] of Object.entries(typed)) await page.getByLabel(label).fill(value)
    await page.getByLabel('Kind of limit').selectOption('soft')
    await page.getByRole('button', { name: 'Save' }).click()
    const abn = page.getByLabel('ABN')
    // The check digits are wrong, which only the service finds.
    await page.locator('.field-problem').getByText('is not a valid ABN').waitFor()
    assert.equal(await abn.getAttribute('aria-invalid'), 'true')
    assert.equal(await page.evaluate('document.activeElement.name'), 'buyer.abn')
    for (const [label, value] of Object.entries(typed)) {
      assert.equal(await page.getByLabel(label).inputValue(), value, label)
    }
    assert.equal(await page.getByLabel('Kind of limit').inputValue(), 'soft')
    await assertAccessible(page)
    await abn.fill('51 824 753 556')
    assert.equal(await abn.getAttribute('aria-invalid'), null)
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    const saved = (await (await stage.weir.admin('GET', '/admin/v1/workspaces/acme')).json()) as object
    const { id: _, created: __, ...rest } = saved as { id: string; created: string }
    assert.deepEqual(rest, {
      name: 'acme',
      requests_per_minute: 70,
      tokens_per_minute: 9000,
      spend_limit: '250.50',
      spend_limit_kind: 'soft',
      buyer: { name: 'Acme Pty Ltd', abn: '51824753556', address: '2 River Road', purchase_order: 'PO-7', email: null },
    })
    assert.equal(await page.getByLabel('Spend limit, A$ a month').inputValue(), '250.50')
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('marks all wrong fields at once, and no right one', async () => {
    const { page, context, go } = await stage.operator()
    await go('/workspaces/default')
    await page.getByLabel('Requests a minute').fill('0')
    await page.getByLabel('Spend limit, A$ a month').fill('a lot')
    await page.getByLabel('ABN').fill('12')
    await page.getByRole('button', { name: 'Save' }).click()
    const marked = page.locator('[aria-invalid=true]')
    await marked.nth(2).waitFor()
    assert.equal(await marked.count(), 3)
    assert.equal(await page.locator('.field-problem').count(), 3)
    assert.equal(await page.getByText('Saved.').count(), 0)
    assert.equal(await page.evaluate('document.activeElement.name'), 'requests_per_minute')
    await assertAccessible(page)

    await page.getByLabel('Input, A$ / 1M tokens').fill('-1')
    await page.getByRole('button', { name: 'Set the price' }).click()
    await marked.nth(3).waitFor()
    assert.equal(await page.getByLabel('Input, A$ / 1M tokens').inputValue(), '-1')

    await go('/queues/meta/test-8b')
    await page.getByLabel('Token budget').fill('')
    await page.getByLabel('Last hours').fill('200')
    await page.getByRole('button', { name: 'Simulate' }).click()
    await marked.nth(1).waitFor()
    assert.equal(await page.getByLabel('Token budget').inputValue(), '')
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('keeps what was typed when the page cannot be loaded again', async () => {
    const { page, context, go } = await stage.operator()
    await go('/workspaces/default')
    await page.getByLabel('Buyer').fill('Typed before')
    await page.route('**/admin/v1/engines', (route) =>
      route.fulfill({ status: 500, json: { error: { code: 'internal_error', message: 'It broke.', param: null } } }),
    )
    await page.getByLabel('Output, A$ / 1M tokens').fill('0.5')
    await page.getByRole('button', { name: 'Set the price' }).click()
    await page.getByRole('alert').getByText('It broke.').waitFor()
    assert.equal(await page.getByLabel('Buyer').inputValue(), 'Typed before')
    await context.close()
  })

  it('marks the name of a workspace, and the workspace of a key, that the service refuses', async () => {
    const { page, context, go } = await stage.operator()
    await go('/workspaces')
    await page.getByRole('button', { name: 'Create a workspace' }).click()
    await page.getByLabel('Name').fill('/no')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.locator('.field-problem').waitFor()
    assert.equal(await page.getByLabel('Name').inputValue(), '/no')
    await go('/keys')
    await page.getByRole('button', { name: 'Create a key' }).click()
    await page.getByLabel('Workspace', { exact: true }).fill('nowhere')
    await page.getByLabel('What is it for?').fill('website')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.locator('.field-problem').getByText('nowhere').waitFor()
    assert.equal(await page.getByLabel('What is it for?').inputValue(), 'website')
    await assertAccessible(page)
    await context.close()
  })

  it('sets the limits of a key, marks one that is wrong, and removes them', async () => {
    const { page, context, go } = await stage.operator()
    await stage.weir.admin('POST', '/admin/v1/keys', { workspace: 'default', name: 'limited' })
    await go('/keys')
    const change = page.getByRole('button', { name: 'Change limited' })
    await change.click()
    await page.getByText('Limits', { exact: true }).click()
    await page.getByLabel('Requests per minute').fill('60')
    await page.getByLabel('Tokens per minute').fill('9000')
    await page.getByLabel('Models').fill('meta/test-8b\ntest-8b')
    await page.getByLabel('/embeddings').check()
    await page.getByLabel('Addresses').fill('10.0.0.0/40')
    // The limits unfold again to show what is wrong.
    await page.getByText('Limits', { exact: true }).click()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.locator('.field-problem').getByText('is neither').waitFor()
    await assertAccessible(page)
    await page.getByLabel('Addresses').fill('10.0.0.0/8')
    await page.getByRole('button', { name: 'Save' }).click()
    const row = page.getByRole('row').filter({ hasText: 'limited' })
    for (const limit of [
      '60 requests per minute',
      '9,000 tokens per minute',
      '2 models',
      '1 endpoint',
      '1 address or network',
    ]) {
      await row.getByText(`Only ${limit}`).waitFor()
    }
    await assertAccessible(page)
    await change.click()
    assert.equal(await page.getByLabel('Models').inputValue(), 'meta/test-8b\ntest-8b')
    await page.getByLabel('Requests per minute').fill('')
    await page.getByLabel('Tokens per minute').fill('')
    await page.getByLabel('Models').fill('')
    await page.getByLabel('/embeddings').uncheck()
    await page.getByLabel('Addresses').fill('')
    await page.getByRole('button', { name: 'Save' }).click()
    await row.getByText('Only 60 requests per minute').waitFor({ state: 'detached' })
    assert.equal(await row.getByText(/^Only /).count(), 0)
    await context.close()
  })
})

describe('a form of the playground', () => {
  it('marks a setting that is wrong, and keeps the message', async () => {
    const { page, context, go } = await stage.visitor()
    await go('/playground')
    const temperature = page.getByRole('spinbutton', { name: 'Temperature' })
    const tokens = page.getByRole('spinbutton', { name: 'Longest answer, tokens' })
    const close = page.getByRole('button', { name: 'Close' })
    const send = page.getByRole('button', { name: 'Send' })
    await page.getByLabel('Message').fill('Keep me')
    await page.getByRole('button', { name: 'Settings' }).click()
    await temperature.fill('3')
    await close.click()
    await send.click()
    // The sheet opens at the setting that is wrong.
    await page.locator('.field-problem').waitFor()
    assert.equal(await temperature.getAttribute('aria-invalid'), 'true')
    await temperature.fill('0.75')
    // Only the service knows the most that this model can take.
    await tokens.fill('99999999')
    await close.click()
    await send.click()
    await page.locator('.field-problem').waitFor()
    assert.equal(await tokens.getAttribute('aria-invalid'), 'true')
    assert.equal(await page.getByLabel('Message').inputValue(), 'Keep me')
    await assertAccessible(page)
    await tokens.fill('20')
    await close.click()
    stage.engine.script = { tokens: ['Kept.'] }
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('Kept.').waitFor()
    const sent = stage.engine.calls.at(-1)?.body as { messages: object[] } | undefined
    assert.deepEqual(sent?.messages, [{ role: 'user', content: 'Keep me' }])
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('marks a number of images that is out of range', async () => {
    const { page, context, go } = await stage.visitor()
    await go('/playground?model=art/images')
    await page.getByLabel('Images', { exact: true }).fill('40')
    await page.getByRole('button', { name: 'Make' }).click()
    await page.locator('.field-problem').waitFor()
    assert.equal(await page.getByRole('spinbutton', { name: 'Images' }).inputValue(), '40')
    await context.close()
  })
})
