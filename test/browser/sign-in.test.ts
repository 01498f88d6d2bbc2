import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage } from '../support/console-stage.ts'

let stage: ConsoleStage

before(async () => {
  stage = await consoleStage()
})
after(() => stage.stop())

describe('the first page', () => {
  it('sends a first request with a live answer, and has the code for it', async () => {
    const { page, context, go } = await stage.visitor()
    stage.engine.script = { tokens: ['It ', 'is ', 'Paris.'] }
    await go('')
    await page.getByText('7 of 8 models are ready.').waitFor()
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('It is Paris.').waitFor()
    await page.getByLabel('What the request took').getByText('¢').waitFor()
    const code = await page.getByLabel('The request in curl').textContent()
    assert.ok(code?.includes('Name the capital of France.'))
    assert.deepEqual(page.problems, [])
    await context.close()
  })
})

describe('signing in to the console', () => {
  it('with a key shows the workspace, and stores the key nowhere in the browser', async () => {
    const { page, context, go } = await stage.visitor({ isSignedIn: false })
    await go('/models')
    await assertAccessible(page)
    await page.getByLabel('API key').fill('weir_wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('The API key is not valid').waitFor()
    await page.getByLabel('API key').fill(stage.weir.key)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Models' }).waitFor()
    const kept = JSON.stringify([
      await context.storageState(),
      await page.evaluate(
        'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, document.body.innerHTML])',
      ),
    ])
    assert.ok(!kept.includes(stage.weir.key))
    assert.equal(await page.evaluate('document.cookie'), '')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('API key').waitFor()
    await go('/models')
    await page.getByLabel('API key').waitFor()
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('with a one-time link works once, and the secret is removed from the address', async () => {
    const issued = await stage.weir.admin('POST', '/admin/v1/workspaces/default/console-links')
    const { path } = (await issued.json()) as { path: string }
    for (const heading of ['Overview', 'Weir']) {
      const { page, context } = await stage.visitor({ isSignedIn: false })
      await page.goto(stage.weir.service.url + path)
      await page.getByRole('heading', { name: heading, exact: true }).waitFor()
      assert.equal(new URL(page.url()).hash, '')
      // The second visitor reads why the link did not work.
      if (heading === 'Weir') await page.getByText('This link has been used or has expired.').waitFor()
      await context.close()
    }
  })

  it('is required again when the key is revoked', async () => {
    const made = (await (await stage.weir.admin('POST', '/admin/v1/keys', { workspace: 'default' })).json()) as {
      id: string
      key: string
    }
    const { page, context, go } = await stage.visitor({ isSignedIn: false })
    await go('')
    await page.getByLabel('API key').fill(made.key)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await stage.weir.admin('DELETE', `/admin/v1/keys/${made.id}`)
    const ended = page.getByText('Your session has ended').waitFor()
    // The live stream may have told the page already. Then there is nothing to click on.
    await Promise.race([
      ended,
      page
        .getByRole('link', { name: 'Usage' })
        .click()
        .catch(() => {}),
    ])
    await ended
    await assertAccessible(page)
    await context.close()
  })
})
