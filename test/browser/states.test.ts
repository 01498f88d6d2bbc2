import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { assertAccessible, assertFits } from '../support/browser.ts'
import { consoleStage, type ConsoleStage } from '../support/console-stage.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry } from '../support/weir.ts'

/** What every page does while it waits, when it may not or cannot show anything, and how it is reached. */

const LONG = 'averylongname'.repeat(14)
let stage: ConsoleStage

before(async () => {
  stage = await consoleStage({
    models: [modelEntry(['http://127.0.0.1:9/v1'], { id: `meta/${LONG.slice(0, 120)}`, aliases: [], name: LONG })],
  })
})
after(() => stage.stop())

const pages: readonly (readonly [path: string, heading: string])[] = [
  ['', 'Start'],
  ['/start', 'Start'],
  ['/models', 'Models'],
  ['/playground', 'Playground'],
  ['/keys', 'Keys'],
  ['/usage', 'Usage'],
  ['/batches', 'Batches'],
  ['/requests', 'Requests'],
  ['/sessions', 'Sessions'],
  ['/invoices', 'Invoices'],
]

describe('every page of the console', () => {
  it('is reached by its address, a reload, and back and forward', async () => {
    const { page, context, go } = await stage.visitor()
    for (const [path, heading] of pages) {
      await go(path)
      await page.getByRole('heading', { name: heading, level: 1 }).waitFor()
      await page.reload()
      await page.getByRole('heading', { name: heading, level: 1 }).waitFor()
    }
    await page.getByRole('link', { name: 'Keys' }).click()
    await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor()
    await page.goBack()
    await page.getByRole('heading', { name: 'Invoices', level: 1 }).waitFor()
    await page.goForward()
    await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor()
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('fits a phone in dark mode, even with long names, and axe finds nothing serious', async () => {
    const { page, context, go } = await stage.visitor({ phone: true, dark: true })
    for (const [path] of pages) {
      await go(path)
      await page.locator('.skeleton').first().waitFor({ state: 'detached' })
      await assertFits(page)
      await assertAccessible(page)
    }
    await context.close()
  })

  it('paints its frame before the script and the session are loaded', async () => {
    const { page, context } = await stage.visitor()
    const script = Promise.withResolvers<void>()
    const session = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    await page.route('**/console/assets/*.js*', async (route) => {
      await script.promise
      await route.continue()
    })
    await page.route('**/console/api/session', async (route) => {
      asked.resolve()
      await session.promise
      await route.continue()
    })
    await page.goto(`${stage.weir.service.url}/console`, { waitUntil: 'commit' })
    // The page forbids to evaluate text, which waitForFunction does.
    const isPainted = 'performance.getEntriesByName("first-contentful-paint").length === 1'
    await eventually('the first paint', async () => (await page.evaluate(isPainted)) === true)
    const frame = await page.locator('#app').innerHTML()
    assert.match(frame, /Weir/)
    script.resolve()
    await asked.promise
    assert.equal(await page.locator('#app').innerHTML(), frame)
    session.resolve()
    await page.getByRole('heading', { name: 'Start', level: 1 }).waitFor()
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('shows that it loads, why it failed, and that access is denied, and tries again', async () => {
    const { page, context, go } = await stage.visitor()
    const address = '**/console/api/keys*'
    const asked = Promise.withResolvers<void>()
    const held = Promise.withResolvers<void>()
    await page.route(address, async (route) => {
      asked.resolve()
      await held.promise
      await route.fulfill({ status: 500, json: { error: { code: 'internal_error', message: 'It broke.' } } })
    })
    await go('/keys')
    await asked.promise
    await page.getByText('Loading …').waitFor({ state: 'attached' })
    await assertAccessible(page)
    held.resolve()
    await page.getByRole('alert').getByText('It broke.').waitFor()
    await assertAccessible(page)
    await page.unroute(address)
    await page.route(address, (route) =>
      route.fulfill({ status: 403, json: { error: { code: 'model_access_denied', message: 'Not for you.' } } }),
    )
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('alert').getByText('You may not see this').waitFor()
    await assertAccessible(page)
    await page.unroute(address)
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('region', { name: 'Keys' }).waitFor()
    await context.close()
  })
})

describe('a session', () => {
  it('ends when the user signs out, also in other tabs', async () => {
    const { page, context, go } = await stage.visitor()
    await go('/keys')
    const other = await context.newPage()
    await other.goto(`${stage.weir.service.url}/console/usage`)
    await other.getByRole('heading', { name: 'Usage', level: 1 }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('API key').waitFor()
    await other.reload()
    await other.getByLabel('API key').waitFor()
    await context.close()
  })

  it('that has expired requires signing in again, and continues where it was', async () => {
    const { page, context, go } = await stage.visitor()
    await go('/keys')
    await page.getByRole('region', { name: 'Keys' }).waitFor()
    // The browser drops an expired cookie, and so does the service.
    await context.clearCookies()
    await page.getByRole('link', { name: 'Usage' }).click()
    await page.getByText('Your session has ended').waitFor()
    await assertAccessible(page)
    await page.getByLabel('API key').fill(stage.weir.key)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor()
    await context.close()
  })

  it('is of no use to a page of another site', async () => {
    const { page, context } = await stage.visitor()
    const other = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<h1>Other</h1>'))
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const keys = async (): Promise<number> =>
      ((await (await stage.weir.admin('GET', '/admin/v1/keys')).json()) as { data: object[] }).data.length
    const before = await keys()
    await page.goto(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`)
    const target = `${stage.weir.service.url}/console/api/keys`
    const outcome = await page.evaluate(async (url) => {
      const options = { method: 'POST', body: '{"name":"stolen"}', credentials: 'include' } as const
      const plain = await fetch(url, { ...options, mode: 'no-cors' }).then(
        (it) => it.type,
        () => 'refused',
      )
      const headers = { 'content-type': 'application/json', 'x-weir-console': '1' }
      const own = await fetch(url, { ...options, headers }).then(
        () => 'allowed',
        () => 'refused',
      )
      return [plain, own]
    }, target)
    assert.equal(outcome[1], 'refused', 'a preflight without an answer')
    assert.equal(await keys(), before)
    await new Promise((resolve) => other.close(resolve))
    await context.close()
  })
})

describe('a page without entries', () => {
  it('says what to do next, in both consoles', async () => {
    const { page, context, go } = await stage.visitor()
    const next: readonly (readonly [path: string, title: string, action: string])[] = [
      ['/requests', 'There are no requests yet', 'Send the first one'],
      ['/usage', 'Nothing was used in this period', 'Try a model'],
    ]
    for (const [path, title, action] of next) {
      await go(path)
      const empty = page.locator('.empty').filter({ hasText: title })
      await empty.getByRole('link', { name: action }).waitFor()
      await assertAccessible(page)
    }
    await page.goto(`${stage.weir.service.url}/console/requests`)
    await page.getByRole('link', { name: 'Send the first one' }).click()
    await page.getByRole('heading', { name: 'Start', level: 1 }).waitFor()
    await context.close()
    const operator = await stage.operator()
    await operator.go('/workspaces')
    await operator.page.getByLabel('Search workspaces').fill('no such workspace')
    await operator.page.getByRole('button', { name: 'Show all workspaces' }).click()
    await operator.page.getByRole('region', { name: 'Workspaces' }).getByText('default').waitFor()
    await assertAccessible(operator.page)
    await operator.context.close()
  })
})
