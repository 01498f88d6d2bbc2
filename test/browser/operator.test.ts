import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { assertAccessible, openPage } from '../support/browser.ts'
import { consoleStage, type ConsoleStage } from '../support/console-stage.ts'
import { openStore } from '../../src/store/open.ts'
import { addPastUsage } from '../support/past-usage.ts'
import { modelEntry } from '../support/weir.ts'

let stage: ConsoleStage
let page: Page & { readonly problems: string[] }

before(async () => {
  stage = await consoleStage({ seller: { name: 'Example Pty Ltd', abn: '51824753556' } })
  const context = await stage.browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' })
  page = await openPage(context)
})
after(async () => {
  assert.deepEqual(page.problems, [])
  await stage.stop()
})

const go = async (path: string): Promise<void> => {
  await page.goto(`${stage.weir.adminUrl}/console${path}`)
  await page.locator('h1').first().waitFor()
}

describe('the console of the operator', () => {
  it('asks for the operator token', async () => {
    await go('/queues')
    await assertAccessible(page)
    await page.getByLabel('Operator token').fill(stage.weir.key)
    await page.keyboard.press('Enter')
    await page.getByText('The operator token is wrong.').waitFor()
    await page.getByLabel('Operator token').fill(stage.weir.operatorToken)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Queues' }).waitFor()
  })

  it('marks the page that is shown in the navigation, also at the root', async () => {
    const marked = page.getByRole('navigation').locator('[aria-current=page]')
    for (const [path, title] of [
      ['', 'Overview'],
      ['/queues/meta/test-8b', 'Queues'],
      ['/audit', 'Audit log'],
    ] as const) {
      await go(path)
      assert.deepEqual(await marked.allTextContents(), [title], path)
    }
  })

  it('shows the queues live, and simulates other limits', async () => {
    const held = Promise.withResolvers<void>()
    stage.engine.script = { tokens: ['a', 'b'], hold: { afterTokens: 1, until: held.promise } }
    const chat = stage.weir.chat({ stream: true }).then((response) => response.text())
    await go('/queues')
    const row = page.getByRole('row').filter({ hasText: 'meta/test-8b' })
    await row.getByText('1 / 8').waitFor()
    held.resolve()
    await chat
    await row.getByText('0 / 8').waitFor()
    await assertAccessible(page)
    await page.getByRole('link', { name: 'meta/test-8b' }).click()
    await page.getByRole('button', { name: 'Simulate' }).click()
    await page.getByRole('columnheader', { name: 'Your limits' }).waitFor()
    await page.getByText('The engine writes 50 tokens a second, which is a guess').waitFor()
    await page.getByLabel('Engine, tokens/s').fill('70')
    await page.getByRole('button', { name: 'Simulate' }).click()
    await page.getByText('The engine writes 70 tokens a second, as you asked.').waitFor()
    await assertAccessible(page)
  })

  it('sets limits after they were simulated, and returns to the catalog', async () => {
    await go('/queues/meta/test-8b')
    await page.getByLabel('In flight at most').fill('4')
    await page.getByRole('button', { name: 'Simulate' }).click()
    await page.getByRole('button', { name: 'Set these limits' }).click()
    await page.getByText('The limits are in force.').waitFor()
    const panel = page.getByRole('region', { name: 'Set by an operator' })
    await panel.getByRole('row').filter({ hasText: 'In flight at most' }).getByText('8').waitFor()
    await assertAccessible(page)
    await page.reload()
    await page.getByText('0 in flight of 4').waitFor()
    await panel.getByRole('button', { name: 'Return to the catalog' }).click()
    await panel.waitFor({ state: 'detached' })
    await page.getByText('0 in flight of 8').waitFor()
    await go('/queues/none/such')
    await page.getByText('There is no such lane').waitFor()
  })

  it('shows the engines', async () => {
    await go('/engines')
    await page.getByRole('row').filter({ hasText: 'meta/test-8b' }).getByText('Up').waitFor()
    await page.getByText('No engine yet').waitFor()
    await assertAccessible(page)
  })

  it('drains the address of an engine after a confirmation, and undrains it', async () => {
    await go('/engines')
    const row = page.getByRole('row').filter({ hasText: 'meta/test-8b' })
    await row.getByRole('button', { name: `Drain ${stage.engine.url}` }).click()
    await page.getByText('has no other address that is up').waitFor()
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Drain', exact: true }).click()
    await row.getByText('Drained').first().waitFor()
    assert.equal((await stage.weir.chat({})).status, 503)
    await assertAccessible(page)
    await row.getByRole('button', { name: `Undrain ${stage.engine.url}` }).click()
    await row.getByText('Up').waitFor()
    assert.equal((await stage.weir.chat({})).status, 200)
  })

  it('removes a drained address that is no longer in the catalog', async () => {
    const store = await openStore({ dataDir: stage.weir.dataDir, exclusive: false })
    await store.setDrained('http://10.0.0.9/v1', true)
    await store.close()
    await stage.weir.admin('POST', '/admin/v1/engines/drain', { url: stage.engine.url })
    await stage.weir.admin('POST', '/admin/v1/engines/undrain', { url: stage.engine.url })
    await go('/engines')
    await page.getByRole('region', { name: 'Drained, and no longer in the catalog' }).waitFor()
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Forget http://10.0.0.9/v1' }).click()
    await page.getByText('http://10.0.0.9/v1').waitFor({ state: 'detached' })
  })

  it('shows the replicas', async () => {
    await go('/replicas')
    await page.getByText('This service works alone').waitFor()
    await page.getByRole('region', { name: 'Replicas' }).getByText('answers this page').waitFor()
    await assertAccessible(page)
  })

  it('shows what the catalog file would change, and applies it', async () => {
    await go('/catalog')
    await page.getByText('Nothing would change').waitFor()
    stage.weir.writeConfig({
      rate_limit: { requests_per_minute: 100_000 },
      models: [modelEntry([stage.engine.url], { name: '<i>Renamed</i>' })],
    })
    await page.getByRole('button', { name: 'Check again' }).click()
    await page.getByText('<i>Renamed</i>').waitFor()
    await assertAccessible(page)
  })

  it('creates a workspace, changes it, and audits both', async () => {
    await go('/workspaces')
    await page.getByRole('button', { name: 'Create a workspace' }).click()
    const create = page.getByRole('button', { name: 'Create', exact: true })
    assert.equal(await create.isDisabled(), true, 'without a name')
    await page.getByLabel('Name').fill('acme')
    await create.click()
    await page.getByRole('link', { name: 'acme' }).click()
    const setPrice = page.getByRole('button', { name: 'Set the price' })
    assert.equal(await setPrice.isDisabled(), true, 'without a price')
    await page.getByLabel('Output, A$ / 1M tokens').fill('0.5')
    assert.equal(await setPrice.isDisabled(), false)
    await page.getByLabel('Spend limit, A$ a month').fill('250.00')
    await page.getByLabel('Buyer').fill('<b>Acme</b>')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Issue a link to its console' }).click()
    await page.getByText('/console#link=').waitFor()
    await go('/audit')
    const entry = page.getByRole('row').filter({ hasText: 'Change a workspace' })
    await entry.getByText('operator (console ').waitFor()
    await entry.getByText('spend_limit').first().click()
    await entry.getByText('"250.00"').first().waitFor()
    // It had no name before it was created.
    await page.getByRole('row').filter({ hasText: 'Create a workspace' }).getByRole('cell', { name: 'acme' }).waitFor()
    await assertAccessible(page)
  })

  it('creates, renames and revokes a key', async () => {
    await go('/keys')
    await page.getByRole('button', { name: 'Create a key' }).click()
    await page.getByLabel('Workspace', { exact: true }).fill('acme')
    await page.getByLabel('What is it for?').fill('website')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    const key = (await page.locator('.secret').textContent()) ?? ''
    assert.equal((await stage.weir.call('/models', { key })).status, 200)
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'I have copied it' }).click()
    await page.getByText(`weir_…${key.slice(-4)}`).waitFor()
    await page.getByRole('button', { name: 'Change website' }).click()
    await page.getByLabel('What is it for?').fill('shop')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'Revoke shop' }).click()
    await page.getByRole('button', { name: 'Revoke', exact: true }).last().click()
    await page.getByText(/^Revoked/).waitFor()
    assert.equal((await stage.weir.call('/models', { key })).status, 401)
    await assertAccessible(page)
  })

  it('shows usage of all workspaces, previews an invoice, and reconciles', async () => {
    await addPastUsage(stage.weir, { days: 3, rows: 50 })
    await go('/usage')
    await page.getByRole('region', { name: 'Those that cost most' }).getByText('default').waitFor()
    await page.getByRole('region', { name: 'Cache hits' }).getByText('meta/test-8b').waitFor()
    await assertAccessible(page)
    await go('/invoices')
    const preview = page.getByRole('button', { name: 'Preview' })
    assert.equal(await preview.isDisabled(), true, 'without a workspace')
    await page.getByLabel('Workspace', { exact: true }).fill('default')
    await preview.click()
    await page.getByText('Total, incl. GST').waitFor()
    await assertAccessible(page)
    await go('/reconcile')
    await page.getByRole('button', { name: 'Reconcile now' }).click()
    await page.getByText('Sum of all rows').waitFor()
    await assertAccessible(page)
  })

  it('signs out', async () => {
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Operator token').waitFor()
  })
})
