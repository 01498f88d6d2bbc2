import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { assertAccessible, openBrowser, openPage } from '../support/browser.ts'
import { freePort } from '../support/free-port.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

const program = fileURLToPath(new URL('../support/engine-program.ts', import.meta.url))

async function onDemand(id: string, command: readonly string[]): Promise<object> {
  const run = { command, port: await freePort(), device: 'gpu0', memory: '20GiB', env: { NOTES: '/dev/null' } }
  return modelEntry([], { id, aliases: [], serverless: { engine: { kind: 'llamacpp', model: 'm', run } } })
}

describe('an engine that Weir starts', () => {
  let weir: TestWeir
  let browser: Browser
  let page: Page & { readonly problems: string[] }
  before(async () => {
    const works = await onDemand('acme/works', [process.execPath, program, '${PORT}'])
    const fails = await onDemand('acme/fails', [process.execPath, '-e', 'console.log("no such GPU"); process.exit(3)'])
    weir = await startWeir({ devices: { gpu0: '80GiB' }, models: [works, fails] })
    browser = await openBrowser()
    page = await openPage(await browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' }))
    await page.goto(await weir.service.operatorConsoleLink())
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.goto(`${weir.service.adminUrl}/console/engines`)
  })
  after(async () => {
    assert.deepEqual(page.problems, [])
    await browser.close()
    await weir.stop()
  })
  const row = (id: string) => page.getByRole('row').filter({ hasText: id })
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click()

  it('is started, pinned and stopped by an operator, who sees its memory and how long it took', async () => {
    await row('acme/works').getByText('Stopped', { exact: true }).waitFor()
    await row('acme/works').getByText('21.5 GB of 85.9 GB on gpu0 when it runs').waitFor()
    await press('Start acme/works')
    await row('acme/works').getByText('Up', { exact: true }).waitFor()
    await row('acme/works')
      .getByText(/^The last start took /)
      .waitFor()
    await press('Pin acme/works')
    await row('acme/works').getByText('Pinned: never swapped').waitFor()
    await assertAccessible(page)
    await press('Unpin acme/works')
    await press('Stop acme/works')
    await row('acme/works').getByText('Stopped', { exact: true }).waitFor()
  })

  it('shows why it could not start, and what it printed last', async () => {
    await press('Start acme/fails')
    await row('acme/fails').getByText('Failed', { exact: true }).waitFor()
    await row('acme/fails')
      .getByText(/^Last failure: .*3/)
      .waitFor()
    await row('acme/fails').getByText('What it printed last').click()
    await row('acme/fails').getByText('no such GPU').waitFor()
    await assertAccessible(page)
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByRole('button', { name: 'Start acme/fails' }).scrollIntoViewIfNeeded()
    await assertAccessible(page)
  })
})
