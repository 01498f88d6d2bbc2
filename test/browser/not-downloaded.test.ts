import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { assertAccessible, openBrowser, openPage } from '../support/browser.ts'
import { PULLED_MODEL, startDefaultService, type DefaultService } from '../support/default-service.ts'

/** What both consoles say about models whose files are missing. */
describe('a model that is not downloaded', () => {
  let started: DefaultService
  let browser: Browser
  let page: Page & { readonly problems: string[] }
  before(async () => {
    started = await startDefaultService()
    browser = await openBrowser()
    page = await openPage(await browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' }))
  })
  after(async () => {
    assert.deepEqual(page.problems, [])
    await browser.close()
    await started.stop()
  })
  const command = `weir models pull ${PULLED_MODEL}`

  it('is marked in the console of a workspace, with its size and how to get it', async () => {
    await page.goto((await started.service.consoleLink()) ?? '')
    await page.getByText('A chat model is being downloaded').waitFor()
    await page.goto(`${started.service.url}/console/models`)
    const card = page.getByRole('article').filter({ hasText: PULLED_MODEL })
    await card.getByText('Not downloaded', { exact: true }).waitFor()
    await card.getByText(command).waitFor()
    await page
      .getByRole('article')
      .filter({ hasText: 'qwen2.5-coder-0.5b' })
      .getByText('Downloading', { exact: true })
      .waitFor()
    await card.getByRole('link').click()
    await page.getByText(`is not downloaded (5.0 GB). Download it on the server with: ${command}`).waitFor()
    await assertAccessible(page)
  })

  it('is marked the same way in the console of the operator', async () => {
    await page.goto(await started.service.operatorConsoleLink())
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.goto(`${started.service.adminUrl}/console/engines`)
    const row = page.getByRole('row').filter({ hasText: PULLED_MODEL })
    await row.getByText('Not downloaded', { exact: true }).waitFor()
    await row.getByText(command).waitFor()
    await page
      .getByRole('row')
      .filter({ hasText: 'qwen2.5-coder-0.5b' })
      .getByText(/^Download/)
      .waitFor()
    await assertAccessible(page)
  })
})
