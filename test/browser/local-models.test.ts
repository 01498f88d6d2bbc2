import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { fileServer, type FileServer } from '../local-models/file-server.ts'
import { assertAccessible, openBrowser, openPage } from '../support/browser.ts'
import { startDefaultService, type DefaultService } from '../support/default-service.ts'

const MODEL = 'qwen/qwen3-embedding-0.6b'
const weights = randomBytes(8_000_000)
const hash = createHash('sha256').update(weights).digest('hex')

/** The downloads of a machine, in the console of its operator, from a hub that the test slows down. */
describe('the models of this machine', () => {
  let hub: FileServer
  let started: DefaultService
  let browser: Browser
  let page: Page & { readonly problems: string[] }
  before(async () => {
    const path = '/Qwen/Qwen3-Embedding-0.6B-GGUF/resolve/main/Qwen3-Embedding-0.6B-Q8_0.gguf'
    hub = await fileServer({ [path]: { content: weights, headers: { 'x-linked-etag': `"${hash}"` } } }, 100)
    started = await startDefaultService({ HF_ENDPOINT: hub.url })
    browser = await openBrowser()
    page = await openPage(await browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' }))
    await page.goto(await started.service.operatorConsoleLink())
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.getByRole('navigation').getByRole('link', { name: 'Models' }).click()
  })
  after(async () => {
    assert.deepEqual(page.problems, [])
    await browser.close()
    await started.stop()
    await hub.close()
  })
  const row = () => page.getByRole('article', { name: MODEL, exact: true })

  it('show which machine it is, what it has left, and whether a model fits', async () => {
    await page.getByText(`in ${started.folder}/models`).waitFor()
    await page.getByText('a model loads with its first request').waitFor()
    await row().getByText('Not downloaded').waitFor()
    await row().getByText('embedding, 639 MB').waitFor()
    await row().getByText('needs 1.8 GB').waitFor()
    await page.getByRole('article', { name: 'weir/starter-vision' }).getByText('Part of Weir').waitFor()
    await assertAccessible(page)
  })

  it('are downloaded with progress, paused, and resumed from where they stopped', async () => {
    await row()
      .getByRole('button', { name: `Download ${MODEL}` })
      .click()
    await row()
      .getByText(/^Downloading, /)
      .waitFor()
    await row()
      .getByText(/ of 639 MB, .*\/s, .* left$/)
      .waitFor()
    assert.equal(await row().getByRole('progressbar').count(), 1)
    await assertAccessible(page)
    await row()
      .getByRole('button', { name: `Pause ${MODEL}` })
      .click()
    await row()
      .getByText(/^Paused, /)
      .waitFor()
    await row()
      .getByText(/ of 639 MB are kept$/)
      .waitFor()
    await assertAccessible(page)
    await page.reload()
    await row()
      .getByText(/^Paused, /)
      .waitFor()
    const asked = hub.requests.length
    hub.setDelay(0)
    await row()
      .getByRole('button', { name: `Resume ${MODEL}` })
      .click()
    await row().getByText('Ready', { exact: true }).waitFor()
    assert.match(hub.requests[asked]?.range ?? '', /^bytes=[1-9]\d+-$/)
  })

  it('are removed after a confirmation that says how much, and stay removed', async () => {
    await row()
      .getByRole('button', { name: `Remove ${MODEL}` })
      .click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText(`Requests to ${MODEL} are then refused with model_not_configured.`).waitFor()
    await assertAccessible(page)
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await row().getByText('Ready', { exact: true }).waitFor()
    await row()
      .getByRole('button', { name: `Remove ${MODEL}` })
      .click()
    await dialog.getByRole('button', { name: 'Remove 639 MB' }).click()
    await page.getByText(`${MODEL} has been removed. 8.0 MB of the disk are free again.`).waitFor()
    await row().getByText('Not downloaded').waitFor()
  })

  it('show why a download fails', async () => {
    const failed = page.getByRole('article', { name: 'openai/whisper-tiny' })
    await failed.getByText('Failed', { exact: true }).waitFor()
    await failed.getByText('Tried again by itself. Reason').click()
    await failed.getByText(/ECONNREFUSED/).waitFor()
    await failed.getByRole('button', { name: 'Try again' }).waitFor()
  })

  it('have every action in sight on a phone', async () => {
    await page.setViewportSize({ width: 390, height: 800 })
    const button = row().getByRole('button', { name: `Download ${MODEL}` })
    const box = (await button.boundingBox()) ?? assert.fail('it is not shown')
    assert.ok(box.x >= 0 && box.x + box.width <= 390)
    await assertAccessible(page)
    await page.setViewportSize({ width: 1280, height: 860 })
  })
})
