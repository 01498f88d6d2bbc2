import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { openStore } from '../../src/store/open.ts'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage, type Visitor } from '../support/console-stage.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { addPastUsage } from '../support/past-usage.ts'

/** What charts tell: on hover, zoomed, of some models alone, and over any days. */

let stage: ConsoleStage
let visitor: Visitor
let page: Page

before(async () => {
  stage = await consoleStage()
  await addPastUsage(stage.weir, { days: 20, rows: 3000 })
  visitor = await stage.visitor()
  page = visitor.page
})
after(async () => {
  assert.deepEqual(visitor.page.problems, [])
  await stage.stop()
})

const chartOf = (title: string, on = page): Locator => on.locator(`.chart[aria-label="${title}"]`)
const legendOf = (title: string, name: string, on = page): Locator =>
  chartOf(title, on).getByRole('button', { name, exact: true })

/** The part of a chart that has the values, in pixels of the page. */
async function areaOf(title: string): Promise<{ x: number; y: number; width: number; height: number }> {
  const over = chartOf(title).locator('.u-over')
  await over.scrollIntoViewIfNeeded()
  const box = await over.boundingBox()
  assert.ok(box)
  return box
}

async function point(title: string, share: number): Promise<void> {
  const { x, y, width, height } = await areaOf(title)
  await page.mouse.move(x + width * share, y + height / 2)
}

async function drag(title: string, from: number, to: number): Promise<void> {
  await point(title, from)
  await page.mouse.down()
  await point(title, (from + to) / 2)
  await point(title, to)
  await page.mouse.up()
}

/** The numbers of a chart: a row for each time, with its name first. */
async function numbersOf(title: string): Promise<readonly (readonly string[])[]> {
  const chart = chartOf(title)
  await chart.getByRole('button', { name: 'Show numbers' }).click()
  const rows = await chart.getByRole('row').all()
  const texts = await Promise.all(rows.map((row) => row.locator('th, td').allTextContents()))
  await chart.getByRole('button', { name: 'Show chart' }).click()
  return texts
}

describe('a chart', () => {
  it('shows the time and the exact values under the pointer, and with the arrow keys', async () => {
    await visitor.go('/usage')
    await chartOf('Cost').locator('canvas').waitFor()
    await point('Cost', 0.7)
    const readout = chartOf('Cost').locator('.readout')
    await readout.waitFor()
    assert.match((await readout.locator('strong').textContent()) ?? '', /^\w{3},? \d{1,2} \w+ 2\d{3}$/)
    const values = await readout.locator('dd').allTextContents()
    assert.ok(values.length > 3 && values.every((it) => /^A\$0\.\d{4,}$/.test(it)), values.join())
    const [total = 0, ...parts] = values.map((it) => Math.round(Number(it.slice(2)) * 1e12)).toReversed()
    assert.equal(
      parts.reduce((sum, it) => sum + it, 0),
      total,
    )
    await assertAccessible(page)
    await page.mouse.move(0, 0)
    await readout.waitFor({ state: 'detached' })

    const plot = chartOf('Requests').locator('.plot')
    const shown = chartOf('Requests').locator('.readout strong')
    await plot.focus()
    await page.keyboard.press('End')
    await shown.getByText('so far').waitFor()
    const last = await shown.textContent()
    await page.keyboard.press('ArrowLeft')
    await shown.getByText('so far').waitFor({ state: 'detached' })
    assert.notEqual(await shown.textContent(), last)
    await page.keyboard.press('Escape')
    await shown.waitFor({ state: 'detached' })
  })

  it('shows from how many requests a time was measured', async () => {
    await visitor.go('/usage')
    await point('Whole request', 0.7)
    await chartOf('Whole request')
      .locator('.readout')
      .getByText(/From \d+ requests\./)
      .waitFor()
  })

  it('zooms with a drag, together with the others, and then shows these days alone', async () => {
    await visitor.go('/usage')
    await chartOf('Requests').locator('canvas').waitFor()
    assert.equal((await numbersOf('Requests')).length, 31)
    await drag('Cost', 0.5, 0.8)
    await chartOf('Requests').getByRole('button', { name: 'Zoom out' }).waitFor()
    const zoomed = await numbersOf('Requests')
    assert.ok(zoomed.length > 6 && zoomed.length < 13, `${zoomed.length} rows`)
    assert.deepEqual(
      (await numbersOf('First token')).map(([at]) => at),
      zoomed.map(([at]) => at),
    )
    await chartOf('Requests').getByRole('button', { name: 'Zoom out' }).click()
    assert.equal((await numbersOf('Requests')).length, 31)

    await drag('Cost', 0.5, 0.8)
    await chartOf('Cost').getByRole('button', { name: 'Show these days' }).click()
    await page.waitForURL(/from=2\d{3}-\d\d-\d\d&to=2\d{3}-\d\d-\d\d/)
    await page.getByText('Nothing was used').waitFor({ state: 'detached' })
    await chartOf('Cost').getByRole('button', { name: 'Zoom out' }).waitFor({ state: 'detached' })
    assert.deepEqual(
      (await numbersOf('Requests')).map(([at]) => at),
      zoomed.map(([at]) => at),
    )
    await page.goBack()
    await page.getByText('3,000').first().waitFor()
  })

  it('shows some models alone after a click in the legend, in every chart of the page', async () => {
    await visitor.go('/usage')
    await legendOf('Cost', 'baai/embed').click()
    await legendOf('Requests', 'baai/embed').and(page.locator('[aria-pressed=true]')).waitFor()
    assert.deepEqual((await numbersOf('Requests'))[0], ['Time in Sydney', 'baai/embed'])
    assert.deepEqual((await numbersOf('First token'))[0], ['Time in Sydney', 'baai/embed'])
    assert.deepEqual((await numbersOf('Tokens'))[0]?.length, 4, 'it has no models')
    await assertAccessible(page)
    await legendOf('First token', 'meta/vision').press('Enter')
    assert.deepEqual((await numbersOf('Cost'))[0]?.slice(1).toSorted(), ['baai/embed', 'meta/vision'])
    await legendOf('Cost', 'baai/embed').click()
    await legendOf('Cost', 'meta/vision').click()
    assert.equal((await numbersOf('Cost'))[0]?.length, 5)
  })

  it('shows any days, from an address that can be shared', async () => {
    await visitor.go('/usage')
    await page.getByRole('button', { name: 'Own range' }).click()
    const day = (ago: number): string =>
      new Intl.DateTimeFormat('en-CA', { timeZone: 'Australia/Sydney' }).format(Date.now() - ago * 86_400_000)
    await page.getByLabel('From', { exact: true }).fill(day(2))
    await page.getByLabel('To', { exact: true }).fill(day(5))
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.locator('.field-problem').waitFor()
    await assertAccessible(page)
    await page.getByLabel('From', { exact: true }).fill(day(9))
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.waitForURL(new RegExp(`from=${day(9)}&to=${day(5)}`))
    await page.reload()
    await chartOf('Requests').locator('canvas').waitFor()
    assert.equal((await numbersOf('Requests')).length, 6)
    const exported = (await page.getByRole('link', { name: 'Export CSV' }).getAttribute('href')) ?? ''
    assert.match(exported, new RegExp(`from=${day(9)}&to=${day(5)}`))
    await page.getByRole('button', { name: '7 days' }).click()
    await page.waitForURL(/days=7/)
    await page.getByLabel('From', { exact: true }).waitFor({ state: 'detached' })
  })

  it('gives a model the same colour everywhere, whatever else is shown, and no two of them the same', async () => {
    const colourOf = (title: string, name: string, on = page): Promise<string | null> =>
      legendOf(title, name, on).locator('svg').getAttribute('style')
    const models = ['meta/test-8b', 'meta/vision', 'baai/embed', 'art/images']
    await visitor.go('/usage')
    const colours = await Promise.all(models.map((model) => colourOf('Cost', model)))
    assert.equal(new Set(colours).size, models.length)
    assert.deepEqual(await Promise.all(models.map((model) => colourOf('First token', model))), colours)
    await visitor.go('/usage?days=7')
    assert.deepEqual(await Promise.all(models.map((model) => colourOf('Cost', model))), colours)
    // Another browser meets them in another order: its names decide as well.
    const operator = await stage.operator()
    await operator.go('/usage?by=model&days=7')
    assert.equal(await colourOf('Cost', 'meta/test-8b', operator.page), colours[0])
    await operator.context.close()
  })

  it('writes small amounts in cents, with the exact amount on hover', async () => {
    const store = await openStore({ dataDir: stage.weir.dataDir, exclusive: false })
    const settledAt = Date.now() - 30 * 86_400_000
    const [workspace] = await store.workspaces()
    const one = { workspaceId: workspace?.id ?? '', model: 'baai/embed', amount: 35_600_000n, settledAt }
    await store.addRows([sampleRow('one-small-request', { ...one, startedAt: settledAt - 100, durationMs: 100 })])
    await store.close()
    const day = new Intl.DateTimeFormat('en-CA', { timeZone: 'Australia/Sydney' }).format(settledAt)
    await visitor.go(`/usage?from=${day}&to=${day}`)
    const cost = page.locator('.figures').getByText('0.00356¢', { exact: true })
    assert.equal(await cost.getAttribute('title'), 'A$0.0000356')
    await page.getByText('0.00356¢ in all.').waitFor()
    // One point: a bar, and a time that says from how much it was measured.
    await page.getByText('From the one request of this period.').waitFor()
    const numbers = (await numbersOf('Cost')).filter(([, value]) => value === '0.00356¢')
    assert.equal(numbers.length, 1)
    await assertAccessible(page)
  })
})
