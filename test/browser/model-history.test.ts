import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assertAccessible, openPage } from '../support/browser.ts'
import { consoleStage, type ConsoleStage } from '../support/console-stage.ts'
import { addPastUsage } from '../support/past-usage.ts'

/** What the page of a model shows of its past, in both consoles. */
describe('the page of a model', () => {
  let stage: ConsoleStage
  before(async () => {
    stage = await consoleStage()
    await addPastUsage(stage.weir, { days: 20, rows: 400 })
  })
  after(() => stage.stop())

  const charts = ['Requests', 'Cost', 'First token', 'Whole request', 'Queue wait', 'Speed', 'Failed']

  it('has limits, prices, and the history of its requests for a workspace', async () => {
    const { page, context, go } = await stage.visitor()
    await go('/models/meta/test-8b')
    await page.getByText(/requests a minute, all models together/).waitFor()
    for (const title of charts) await page.getByRole('region', { name: title, exact: true }).waitFor()
    await page.getByText(/^From (all )?[\d,]+ /).waitFor()
    await assertAccessible(page)
    await page.getByRole('region', { name: 'Queue wait' }).getByRole('button', { name: 'Show numbers' }).click()
    await page.getByRole('region', { name: 'Queue wait, in numbers' }).getByText(/ ms$/).first().waitFor()
    await page.getByRole('region', { name: 'Speed' }).getByRole('button', { name: 'Show numbers' }).click()
    await page
      .getByRole('region', { name: 'Speed, in numbers' })
      .getByText(/^[\d,.]+ tokens\/s$/)
      .first()
      .waitFor()
    await page.getByRole('button', { name: '7 days' }).click()
    await page.waitForURL(/models\/meta\/test-8b\?days=7/)
    await page.getByRole('region', { name: 'Queue wait', exact: true }).waitFor()
    await context.close()
  })

  it('has them over all workspaces for the operator, and is linked from its queue', async () => {
    const context = await stage.browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' })
    const page = await openPage(context)
    await page.goto(`${stage.weir.adminUrl}/console/queues/meta/test-8b`)
    await page.getByLabel('Operator token').fill(stage.weir.operatorToken)
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Waits and times of earlier days' }).click()
    await page.getByRole('heading', { name: 'meta/test-8b', level: 1 }).waitFor()
    const facts = page.getByRole('region', { name: 'In the catalog' })
    await facts.getByText('A$0.20 / 1M tokens').waitFor()
    await facts.getByText('8,192 tokens').waitFor()
    await page.getByRole('region', { name: 'meta/test-8b' }).getByText('100,000 tokens').waitFor()
    for (const title of charts) await page.getByRole('region', { name: title, exact: true }).waitFor()
    await page
      .getByText(/ in all\.$/)
      .first()
      .waitFor()
    await assertAccessible(page)
    await page.goto(`${stage.weir.adminUrl}/console/models/no/such`)
    await page.getByText('The catalog has no model "no/such".').waitFor()
    assert.deepEqual(page.problems, [])
    await context.close()
  })
})
