import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage } from '../support/console-stage.ts'

/** The first minute: what to do first, with ticks from what the service knows. */

let stage: ConsoleStage
before(async () => {
  stage = await consoleStage()
})
after(() => stage.stop())

describe('the start page', () => {
  it('ticks a key and a request from a terminal as they arrive, and code that was copied', async () => {
    const link = await stage.weir.admin('POST', '/admin/v1/workspaces', { name: 'fresh' })
    assert.equal(link.status, 201)
    const issued = await stage.weir.admin('POST', '/admin/v1/workspaces/fresh/console-links')
    const { path } = (await issued.json()) as { path: string }
    const { page, context } = await stage.visitor({ isSignedIn: false })
    await page.goto(stage.weir.service.url + path)
    await page.waitForURL(/\/console\/start$/)
    const step = (title: string) =>
      page.getByRole('list', { name: 'First steps' }).getByRole('listitem').filter({ hasText: title })
    await step('Make a key').and(page.locator('[aria-current=step]')).waitFor()
    assert.equal(await page.locator('.steps .done').count(), 0)
    await assertAccessible(page)

    await step('Make a key').getByRole('button', { name: 'Create a key' }).click()
    await page.getByLabel('What is it for?').fill('laptop')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    const key = (await page.locator('.secret').textContent()) ?? ''
    await page.getByRole('button', { name: 'I have copied it' }).click()
    await step('Make a key').getByText('(done)').waitFor({ state: 'attached' })
    await step('Send the first request').and(page.locator('[aria-current=step]')).waitFor()

    await page.getByText('Or paste it into a terminal').click()
    const command = (await page.getByLabel('The request for a terminal').textContent()) ?? ''
    assert.match(command, new RegExp(`^curl "${stage.weir.service.url}/api/v1/chat/completions"`))
    stage.engine.script = { tokens: ['It ', 'is ', 'Paris.'] }
    const response = await fetch(`${stage.weir.service.url}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: command.slice(command.indexOf("'") + 1, command.lastIndexOf("'")),
    })
    assert.equal(response.status, 200)
    await step('Send the first request').getByText('(done)').waitFor({ state: 'attached' })

    await step('Take the code').getByRole('button', { name: 'Python' }).click()
    await step('Take the code').getByRole('button', { name: 'Copy' }).click()
    await step('Take the code').getByText('(done)').waitFor({ state: 'attached' })
    await assertAccessible(page)
    await page.reload()
    await page.getByText('(done)').nth(2).waitFor({ state: 'attached' })

    await page.getByRole('link', { name: 'Go to the overview' }).click()
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await page.getByRole('link', { name: 'Start' }).click()
    await page.getByRole('heading', { name: 'Start', level: 1 }).waitFor()
    assert.deepEqual(page.problems, [])
    await context.close()
  })
})

describe('the overview of the operator of a new service', () => {
  let own: ConsoleStage
  before(async () => {
    own = await consoleStage()
  })
  after(() => own.stop())

  it('has the next steps until the first request is settled', async () => {
    const { page, go } = await own.operator()
    await go('')
    const steps = page.getByRole('list', { name: 'First steps' })
    await steps.getByText('The first request', { exact: true }).waitFor()
    assert.equal(await steps.locator('.done').count(), 3, 'the catalog, the first workspace and its key')
    await steps.getByText('npx weir console --workspace default').waitFor()
    await assertAccessible(page)
    own.engine.script = { tokens: ['Yes'] }
    await (await own.weir.chat({ stream: true })).text()
    await steps.waitFor({ state: 'detached' })
    await page.getByText('Nothing needs attention').waitFor()
    assert.deepEqual(page.problems, [])
  })
})
