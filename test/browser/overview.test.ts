import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage, type Visitor } from '../support/console-stage.ts'
import { addPastUsage } from '../support/past-usage.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry } from '../support/weir.ts'

/** The first page of each console. */

let stage: ConsoleStage
let visitor: Visitor

before(async () => {
  stage = await consoleStage({
    models: [modelEntry(['http://127.0.0.1:9/v1'], { id: 'acme/down', aliases: [], name: 'Down' })],
  })
  visitor = await stage.visitor()
})
after(async () => {
  assert.deepEqual(visitor.page.problems, [])
  await stage.stop()
})

async function assertFits({ page }: Visitor): Promise<void> {
  const [width, shown] = await page.evaluate<[number, number]>('[document.body.scrollWidth, innerWidth]')
  assert.ok(width <= shown, `${page.url()} is ${width} wide`)
}

describe('the overview of a workspace', () => {
  it('leads to the first request while nothing was used', async () => {
    const { page, go } = visitor
    await go('')
    await page.waitForURL(/\/console\/start$/)
    await page.getByRole('heading', { name: 'Start', level: 1 }).waitFor()
    assert.deepEqual(await page.getByRole('navigation').locator('[aria-current=page]').allTextContents(), ['Start'])
  })

  it('shows spend, pace, limits, the newest requests as they are settled, and keys', async () => {
    await addPastUsage(stage.weir, { days: 12, rows: 1200 })
    await stage.weir.admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: '50.00' })
    await stage.weir.admin('POST', '/admin/v1/keys', { workspace: 'default', name: 'website' })
    const { page, go } = visitor
    await go('')
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await page.getByText('Pace, over 7 days').waitFor()
    await page.getByText('of the limit is spent.').waitFor()
    await page.locator('.figures').getByText('100,000 requests a minute').waitFor()
    for (const title of ['Cost', 'Requests']) await page.locator(`.chart[aria-label=${title}] canvas`).waitFor()
    const keys = page.getByRole('region', { name: 'Keys that cost most this month' })
    await keys.getByText('website').waitFor()
    await assertAccessible(page)

    stage.engine.script = { tokens: ['Yes'] }
    const chat = await stage.weir.chat({ stream: true })
    await chat.text()
    const newest = page.getByRole('region', { name: 'Newest requests' }).last()
    const id = chat.headers.get('x-request-id') ?? ''
    await newest.locator(`a[href="/console/requests/${id}"]`).waitFor()
    await page.getByRole('link', { name: 'All keys' }).click()
    await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor()
  })

  it('opens the usage of days that were dragged over', async () => {
    const { page, go } = visitor
    await go('')
    const over = page.locator('.chart[aria-label=Cost] .u-over')
    await over.scrollIntoViewIfNeeded()
    const box = await over.boundingBox()
    assert.ok(box)
    await page.mouse.move(box.x + box.width * 0.3, box.y + 40)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width * 0.7, box.y + 40, { steps: 4 })
    await page.mouse.up()
    await page.getByRole('button', { name: 'Show these days' }).first().click()
    await page.waitForURL(/\/console\/usage\?from=.*&to=/)
    await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor()
  })

  it('fits a phone in dark mode', async () => {
    const phone = await stage.visitor({ phone: true, dark: true })
    await phone.go('')
    await phone.page.locator('.chart[aria-label=Cost] canvas').waitFor()
    await assertFits(phone)
    await assertAccessible(phone.page)
    await phone.context.close()
  })
})

describe('the overview of the operator', () => {
  let operator: Visitor
  before(async () => {
    operator = await stage.operator()
  })
  after(() => assert.deepEqual(operator.page.problems, []))

  it('shows health, traffic, errors, spend, and what needs attention with the action for it', async () => {
    const { page, go } = operator
    await stage.weir.admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: '0.01', spend_limit_kind: 'soft' })
    await go('')
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    const health = page.locator('.health')
    for (const text of ['Engines', 'Replicas', '1 serving', 'Up', 'Not used', ' free']) {
      await health.getByText(text).first().waitFor()
    }
    const figures = page.locator('.figures')
    for (const label of [
      'In flight',
      'Waiting',
      'Requests today',
      'Refused today',
      'Failed today',
      'Cost this month',
    ]) {
      await figures.getByText(label, { exact: true }).waitFor()
    }
    for (const title of ['Load', 'Requests today']) await page.locator(`.chart[aria-label="${title}"] canvas`).waitFor()
    await page.getByRole('region', { name: 'Top models today' }).last().getByText('meta/test-8b').waitFor()
    await page.getByRole('region', { name: 'Top workspaces this month' }).last().getByText('default').waitFor()
    await assertAccessible(page)
    const attention = page.getByRole('region', { name: 'What needs attention' })
    await attention.getByText('default has reached its limit').waitFor()
    await attention.getByRole('link', { name: 'Change the limit' }).click()
    await page.waitForURL(/\/console\/workspaces\/default$/)
    await stage.weir.admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: null })
    // The engine is only known to be down when something asks for it.
    await stage.weir.chat({ model: 'acme/down' })
    await go('')
    await attention.getByText('acme/down is down').waitFor()
    await attention.getByRole('link', { name: 'See the engines' }).click()
    await page.getByRole('heading', { name: 'Engines', level: 1 }).waitFor()
  })

  it('lists requests as they are settled, of one workspace or model, or those that failed', async () => {
    const { page, go } = operator
    await go('')
    const rows = page.locator('table').filter({ hasText: 'Outcome' }).locator('tbody tr')
    await rows.first().waitFor()
    const chatWith = async (tokens: number): Promise<void> => {
      stage.engine.script = { tokens: Array.from({ length: tokens }, () => 'a '), promptTokens: 100 }
      await (await stage.weir.chat({ stream: true })).text()
    }
    const newestWith = (tokens: number) => rows.first().getByRole('cell', { name: String(100 + tokens), exact: true })
    await chatWith(7)
    await newestWith(7).waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    const today = page.locator('.figures > div').filter({ hasText: 'Requests today' })
    const before = await today.textContent()
    await chatWith(5)
    await eventually('the page is loaded again', async () => (await today.textContent()) !== before)
    assert.equal(await newestWith(7).count(), 1, 'while it is paused')
    await page.getByRole('button', { name: 'Go on' }).click()
    await newestWith(5).waitFor()
    await page.getByLabel('Only of model').selectOption('baai/embed')
    await page.locator('tbody .name-cell').getByText('meta/test-8b').first().waitFor({ state: 'detached' })
    assert.deepEqual([...new Set(await rows.locator('.name-cell').allTextContents())], ['baai/embed'])
    await page.getByLabel('Only of model').selectOption('')
    await page.getByLabel('Only those that failed').check()
    await rows.getByText('completed').first().waitFor({ state: 'detached' })
    assert.ok((await rows.count()) > 0)
    await page.getByLabel('Only of workspace').fill('none')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Only of workspace').fill('default')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await rows.first().getByRole('link', { name: 'default' }).waitFor()
    await page.getByLabel('Only those that failed').uncheck()
    await rows.getByText('completed').first().waitFor()
    await assertAccessible(page)
  })

  it('has the usage, limits, keys and invoices of a workspace on its page', async () => {
    const { page, go } = operator
    await go('/workspaces/default')
    await page.locator('.figures').getByText('Cost this month', { exact: true }).waitFor()
    for (const title of ['Cost', 'Requests']) await page.locator(`.chart[aria-label=${title}] canvas`).waitFor()
    await page.getByRole('region', { name: 'Keys' }).last().getByText('website').waitFor()
    await page.getByText('It has none yet.').waitFor()
    await page.getByRole('heading', { name: 'Reserved capacity' }).waitFor()
    await assertAccessible(page)
    await page.getByRole('link', { name: 'Its requests' }).click()
    await page.waitForURL(/requests\?workspace=default/)
  })

  it('fits a phone', async () => {
    const { page, go } = operator
    await page.setViewportSize({ width: 390, height: 844 })
    for (const path of ['', '/workspaces/default']) {
      await go(path)
      await page.locator('.chart canvas').first().waitFor()
      await assertFits(operator)
      await assertAccessible(page)
    }
  })
})
