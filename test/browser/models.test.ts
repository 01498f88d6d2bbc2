import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage } from '../support/console-stage.ts'
import { modelEntry } from '../support/weir.ts'

let stage: ConsoleStage
const HOSTILE = '<img src=x onerror="window.hacked=1">'

before(async () => {
  const many = Array.from({ length: 200 }, (_, index) =>
    modelEntry([], { id: `many/model-${index}`, aliases: [], name: `Model number ${index}`, serverless: {} }),
  )
  const hostile = modelEntry([], { id: 'evil/model', aliases: [], name: HOSTILE, description: HOSTILE, serverless: {} })
  stage = await consoleStage({ models: [hostile, ...many] })
})
after(() => stage.stop())

describe('the models page', () => {
  it('shows every model with its prices, finds one of 209, and keeps the filter in the address', async () => {
    const { page, context, go } = await stage.visitor()
    await go('/models')
    await page.getByText('209 models').waitFor()
    const card = page.getByRole('article').filter({ hasText: 'Test 8B' })
    for (const text of ['A$0.20', 'A$0.05', 'A$0.60', '/ 1M tokens', 'Ready']) {
      assert.ok((await card.textContent())?.includes(text), text)
    }
    await page.getByLabel('Search models').fill('number 17')
    await page.getByText('12 of 209').waitFor()
    await page.reload()
    await page.getByText('12 of 209').waitFor()
    await page.getByLabel('Search models').fill('nothing like this')
    await page.getByText('No model fits').waitFor()
    await page.getByLabel('Search models').fill('')
    await page.getByLabel('Category').selectOption('audio')
    await page.getByText('1 of 209').waitFor()
    await page.getByRole('button', { name: 'Table' }).click()
    await page.getByRole('row').filter({ hasText: 'Whisper Tiny' }).getByText('A$0.006').waitFor()
    await assertAccessible(page)
    await context.close()
  })

  it('leads to the page of a model with code to paste, and back', async () => {
    const { page, context, go } = await stage.visitor()
    await go('/models')
    await page.getByRole('link', { name: 'Test 8B' }).click()
    await page.getByRole('heading', { name: 'Test 8B' }).waitFor()
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Python' }).click()
    const code = await page.getByLabel('The request in Python').textContent()
    assert.ok(code?.includes(`base_url="${stage.weir.base}"`) && code.includes('"meta/test-8b"'))
    await page.getByRole('button', { name: 'Copy' }).click()
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), code)
    await page.goBack()
    await page.getByRole('heading', { name: 'Models' }).waitFor()
    await page.goForward()
    await page.getByRole('heading', { name: 'Test 8B' }).waitFor()
    await context.close()
  })

  it('shows the names of models as text', async () => {
    const { page, context, go } = await stage.visitor()
    for (const path of ['/models', '/models/evil/model']) {
      await go(path)
      await page.getByText(HOSTILE).first().waitFor()
      assert.equal(await page.evaluate('window.hacked'), undefined)
    }
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('works on a phone and in dark mode, without horizontal scrolling', async () => {
    const { page, context, go } = await stage.visitor({ phone: true, dark: true })
    for (const path of ['/models', '/models?view=table', '/models/meta/test-8b']) {
      await go(path)
      await page.getByText('Ready').first().waitFor()
      await assertAccessible(page)
      assert.equal(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true, path)
    }
    await context.close()
  })

  it('reports that the service is unreachable, or that a model or page does not exist', async () => {
    const { page, context, go } = await stage.visitor()
    await go('/models/none/such')
    await page.getByText("The model 'none/such' does not exist").waitFor()
    await go('/nothing')
    await page.getByText('There is no such page').waitFor()
    await go('/models')
    await page.getByRole('link', { name: 'Test 8B' }).first().waitFor()
    await context.setOffline(true)
    await page.getByRole('link', { name: 'Usage' }).click()
    await page.getByText('The service cannot be reached', { exact: true }).waitFor()
    assert.equal(await page.locator('.notice').count(), 1, 'it is said once')
    await assertAccessible(page)
    await context.setOffline(false)
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('heading', { name: 'This month' }).waitFor()
    await page.getByText('Nothing was used in this period').waitFor()
    assert.equal(await page.locator('.notice').count(), 0)
    await context.close()
  })
})
