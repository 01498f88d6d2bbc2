import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage, type Visitor } from '../support/console-stage.ts'
import { addPastUsage } from '../support/past-usage.ts'
import { eventually } from '../support/waiting.ts'

/** The mark, light and dark, and the frame of both consoles. */

const DARK = 'rgb(13, 19, 22)'
const LIGHT = 'rgb(246, 248, 249)'
let stage: ConsoleStage

before(async () => {
  stage = await consoleStage()
  await addPastUsage(stage.weir, { days: 3, rows: 60 })
})
after(() => stage.stop())

const groundOf = ({ page }: Visitor): Promise<string> =>
  page.evaluate('getComputedStyle(document.body).backgroundColor')

describe('light and dark', () => {
  it('are chosen by hand in both consoles, survive a reload, and follow the system again', async () => {
    for (const visitor of [await stage.visitor(), await stage.operator()]) {
      const { page, context, go } = visitor
      await go('/usage')
      assert.equal(await groundOf(visitor), LIGHT)
      const colours = page.getByRole('group', { name: 'Colours' })
      await colours.getByRole('button', { name: 'Dark' }).click()
      assert.equal(await groundOf(visitor), DARK)
      await assertAccessible(page)
      await page.reload()
      await page.locator('h1').waitFor()
      assert.equal(await groundOf(visitor), DARK)
      assert.equal(await colours.locator('[aria-pressed=true]').getAttribute('value'), 'dark')
      await colours.getByRole('button', { name: 'As the system' }).click()
      assert.equal(await groundOf(visitor), LIGHT)
      await page.emulateMedia({ colorScheme: 'dark' })
      assert.equal(await groundOf(visitor), DARK)
      await colours.getByRole('button', { name: 'Light' }).click()
      assert.equal(await groundOf(visitor), LIGHT)
      await assertAccessible(page)
      assert.deepEqual(page.problems, [])
      await context.close()
    }
  })

  it('are applied before the script of the console has loaded', async () => {
    const visitor = await stage.visitor()
    const { page, context, go } = visitor
    await go('/keys')
    await page.getByRole('button', { name: 'Dark' }).click()
    const held = Promise.withResolvers<void>()
    await page.route('**/console/assets/*.js*', async (route) => {
      await held.promise
      await route.continue()
    })
    await page.goto(`${stage.weir.service.url}/console`, { waitUntil: 'commit' })
    const isPainted = 'performance.getEntriesByName("first-contentful-paint").length === 1'
    await eventually('the first paint', async () => (await page.evaluate(isPainted)) === true)
    assert.equal(await groundOf(visitor), DARK)
    held.resolve()
    await context.close()
  })

  it('change in all tabs, and in charts', async () => {
    const visitor = await stage.visitor()
    const { page, context, go } = visitor
    await go('/usage')
    await page.locator('.chart canvas').first().waitFor()
    const picture = (): Promise<string> => page.evaluate('document.querySelector(".chart canvas").toDataURL()')
    const before = await picture()
    const other = await context.newPage()
    await other.goto(`${stage.weir.service.url}/docs`)
    await other.getByRole('button', { name: 'Dark' }).click()
    await eventually('the other tab is dark', async () => (await groundOf(visitor)) === DARK)
    await eventually('the chart is drawn again', async () => (await picture()) !== before)
    await other.reload()
    assert.equal(await other.evaluate('getComputedStyle(document.body).colorScheme'), 'dark')
    assert.equal(await other.locator('scheme-switch [aria-pressed=true]').textContent(), 'Dark')
    assert.deepEqual(page.problems, [])
    await context.close()
  })
})

describe('the frame', () => {
  it('has the mark in the tab, in the bar, in front of the console and on the docs page', async () => {
    const { page, context } = await stage.visitor({ isSignedIn: false })
    for (const url of [stage.weir.service.url, stage.weir.adminUrl]) {
      for (const path of ['/console', '/docs']) {
        await page.goto(url + path)
        await page.locator('img.mark').last().waitFor()
        assert.ok(await page.evaluate('document.querySelector("img.mark").decode().then(() => true)'))
        const icon = await page.locator('link[rel=icon]').getAttribute('href')
        const loaded = await context.request.get(url + icon)
        assert.equal(loaded.headers()['content-type'], 'image/svg+xml')
      }
    }
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('opens the pages with a button on a phone', async () => {
    const { page, context, go } = await stage.visitor({ phone: true })
    await go('/keys')
    const link = page.getByRole('link', { name: 'Usage', exact: true })
    assert.equal(await link.isVisible(), false)
    await page.getByRole('button', { name: 'Menu' }).click()
    await assertAccessible(page)
    await link.click()
    await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor()
    assert.equal(await link.isVisible(), false, 'the page is in view again')
    await context.close()
  })
})

describe('the first load', () => {
  const MAX_BYTES = 130 * 1024

  it(`of a console has at most ${MAX_BYTES} bytes of compressed script`, async () => {
    for (const { page, context, go } of [await stage.visitor(), await stage.operator()]) {
      const scripts: Promise<number>[] = []
      page.on('requestfinished', (request) => {
        if (request.resourceType() !== 'script') return
        scripts.push(request.sizes().then(({ responseBodySize }) => responseBodySize))
      })
      await go('/usage')
      await page.locator('.chart canvas').first().waitFor()
      const bytes = (await Promise.all(scripts)).reduce((sum, it) => sum + it, 0)
      assert.ok(bytes > 30_000 && bytes <= MAX_BYTES, `${page.url()} loads ${bytes} bytes of script`)
      await context.close()
    }
  })
})
