import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser } from 'playwright-core'
import { startService, type ModelService } from '../models/service.ts'
import { assertAccessible, openBrowser, openPage } from '../support/browser.ts'

/** The first minute of a new user, with a real model. Its weights are fetched once. */
describe('the console in front of an embedded model', () => {
  let service: ModelService
  let browser: Browser
  before(async () => {
    service = await startService('huggingfacetb/smollm2-135m-instruct')
    browser = await openBrowser()
  })
  after(async () => {
    await browser.close()
    await service.close()
  })

  it('sends a first request and streams the answer of the model, with what it cost', async () => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' })
    const page = await openPage(context)
    await page.goto(service.weir.base.replace('/api/v1', '/console'))
    await page.getByLabel('API key').fill(service.weir.key)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Start', level: 1 }).waitFor()
    await page.getByLabel(/^Ask /).fill('What is the capital of Australia?')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText(/Canberra/).waitFor({ timeout: 300_000 })
    const outcome = page.getByLabel('What the request took')
    for (const text of ['Queue wait', 'First token', /¢|A\$/]) await outcome.getByText(text).first().waitFor()
    await assertAccessible(page)
    assert.deepEqual(page.problems, [])
    await context.close()
  })
})
