import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage, type Visitor } from '../support/console-stage.ts'
import { addPastUsage } from '../support/past-usage.ts'

let stage: ConsoleStage
let visitor: Visitor

before(async () => {
  stage = await consoleStage()
  visitor = await stage.visitor()
})
after(async () => {
  assert.deepEqual(visitor.page.problems, [])
  await stage.stop()
})

describe('the usage page', () => {
  it('has an empty state while nothing was used', async () => {
    const { page, go } = visitor
    await go('/usage')
    await page.getByText('Nothing was used in this period').waitFor()
    await assertAccessible(page)
  })

  it('shows cost, tokens, times and failures over time, by model and by key, as charts and in numbers', async () => {
    await addPastUsage(stage.weir, { days: 20, rows: 3000 })
    await stage.weir.admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: '50.00' })
    const { page, go } = visitor
    await go('/usage')
    await page.getByText('3,000').first().waitFor()
    await page.getByText('of the limit is spent. At this pace the limit is').waitFor()
    await page.getByText('Pace, over 7 days').waitFor()
    await stage.weir.admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: '0.01', spend_limit_kind: 'soft' })
    await page.reload()
    await page.getByText('The limit is reached. It is a soft one, so requests go on.').waitFor()
    await stage.weir.admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: '50.00', spend_limit_kind: 'hard' })
    await page.reload()
    await page.getByRole('region', { name: 'Cost', exact: true }).locator('canvas').waitFor()
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Show numbers' }).first().click()
    await page.getByRole('columnheader', { name: 'Time in Sydney' }).waitFor()
    await page.getByText('From all 3,000 requests of this period.').waitFor()
    for (const title of ['First token', 'Whole request', 'Queue wait', 'Failed']) {
      const chart = page.getByRole('region', { name: title, exact: true })
      await chart.locator('canvas').waitFor()
      await chart.getByRole('button', { name: 'Show numbers' }).click()
      for (const model of ['meta/test-8b', 'baai/embed', 'all']) {
        await chart.getByRole('columnheader', { name: model, exact: true }).waitFor()
      }
    }
    await page.getByText('131 of these 3,000 did not complete.').waitFor()
    await page.getByRole('button', { name: 'Median' }).click()
    await page.getByText('Half of the requests take no longer.').first().waitFor()
    await page.getByRole('button', { name: 'By key' }).click()
    await page.waitForURL(/by=key/)
    await page.getByRole('row').filter({ hasText: 'weir_…' }).first().waitFor()
    await page.getByLabel('Only one model').selectOption('baai/embed')
    await page.waitForURL(/model=baai/)
    await page.getByText(/From all [1-9]\d\d requests of this period\./).waitFor()
    await page.reload()
    await page.getByText(/From all [1-9]\d\d requests of this period\./).waitFor()
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Today' }).click()
    await page.waitForURL(/days=1/)
    await page.reload()
    await page.locator('button[aria-pressed=true]').getByText('Today').waitFor()
    await assertAccessible(page)
  })

  it('lists and exports the requests of the period, of one model or one key alone if asked', async () => {
    const { page, go } = visitor
    await go('/usage')
    await page.getByRole('link', { name: 'List the requests' }).click()
    const requests = page.getByRole('region', { name: 'Requests', exact: true })
    const models = requests.getByRole('row').locator('.name-cell')
    await requests.getByRole('row').nth(25).waitFor()
    const first = await requests.getByRole('row').nth(1).textContent()
    await page.getByRole('button', { name: 'Older' }).first().click()
    await requests
      .getByRole('row')
      .nth(1)
      .filter({ hasNotText: first ?? '' })
      .waitFor()
    await page.getByRole('button', { name: 'Newer' }).first().click()
    await requests
      .getByRole('row')
      .nth(1)
      .filter({ hasText: first ?? '' })
      .waitFor()

    await go('/usage?by=key&model=baai%2Fembed')
    await page.getByRole('link', { name: 'List the requests' }).click()
    await page.waitForURL(/\/requests\?.*model=baai/)
    await requests.getByRole('row').nth(25).waitFor()
    assert.deepEqual([...new Set(await models.allTextContents())], ['baai/embed'])

    await go('/usage?by=key')
    await page.getByLabel('Only one model').selectOption('baai/embed')
    const exported = page.getByRole('link', { name: 'Export CSV' })
    await page.waitForURL(/model=baai/)
    const path = (await exported.getAttribute('href')) ?? ''
    const csv = await visitor.page.request.get(new URL(path, page.url()).href)
    const [, ...lines] = (await csv.text()).trimEnd().split('\n')
    assert.ok(lines.length > 100 && lines.every((line) => line.includes(',baai/embed,')), path)
  })

  it('finds a request by its id, with its whole timeline', async () => {
    stage.engine.script = { tokens: ['Yes'] }
    const chat = await stage.weir.chat({ stream: true })
    await chat.text()
    const id = chat.headers.get('x-request-id') ?? ''
    const { page, go } = visitor
    await go('/requests')
    await page.getByLabel('Find a request by its id').fill(id)
    await page.getByRole('button', { name: 'Find' }).click()
    for (const title of ['Arrived', 'Admitted', 'First token', 'Ended', 'Settled']) {
      await page.getByRole('listitem').getByText(title, { exact: true }).waitFor()
    }
    await page.getByText('price version').first().waitFor()
    await assertAccessible(page)
    await go('/requests/nothing')
    await page.getByText('There is no request with this id').waitFor()
  })
})

describe('the keys page', () => {
  it('creates a key that is shown once and works, and revokes it', async () => {
    const { page, go } = visitor
    const name = '<b>website</b>'
    await go('/keys')
    await page.getByRole('button', { name: 'Create a key' }).click()
    await assertAccessible(page)
    await page.getByLabel('What is it for?').fill(name)
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    const key = (await page.locator('.secret').textContent()) ?? ''
    assert.equal((await stage.weir.call('/models', { key })).status, 200)
    // Neither Escape, which browsers insist on at the second time, nor a click outside can lose it.
    for (let times = 0; times < 3; times++) await page.keyboard.press('Escape')
    await page.mouse.click(3, 3)
    assert.equal(await page.locator('.secret').textContent(), key)
    const setVariable = `export WEIR_API_KEY=${key}`
    await page.getByRole('region', { name: 'Sets the key' }).getByText(setVariable).waitFor()
    for (const language of ['curl', 'Python', 'TypeScript']) {
      await page.getByRole('button', { name: language }).click()
      await page
        .getByRole('region', { name: `The request in ${language}` })
        .getByText('WEIR_API_KEY')
        .waitFor()
    }
    await assertAccessible(page)
    await page.getByRole('button', { name: 'I have copied it' }).click()
    assert.equal(await page.getByText(key).count(), 0)
    const row = page.getByRole('row').filter({ hasText: name })
    await row.getByText('never').waitFor()
    await row.getByText(`weir_…${key.slice(-4)}`).waitFor()
    await row.getByRole('button', { name: `Revoke ${name}` }).click()
    await page.getByRole('button', { name: 'Revoke', exact: true }).last().click()
    await row.getByText('Revoked').waitFor()
    assert.equal((await stage.weir.call('/models', { key })).status, 401)
    await assertAccessible(page)
  })
})

describe('a key in the list', () => {
  it('is renamed, and gets a last day or loses it', async () => {
    const { page, go } = visitor
    const made = await stage.weir.admin('POST', '/admin/v1/keys', { workspace: 'default', name: 'old name' })
    const { key } = (await made.json()) as { key: string }
    await go('/keys')
    await page.getByRole('button', { name: 'Change old name' }).click()
    assert.equal(await page.getByRole('button', { name: 'Save' }).isDisabled(), true, 'nothing has changed')
    await page.getByLabel('Last day').fill('2020-01-01')
    await page.getByLabel('What is it for?').fill('new name')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.locator('.field-problem').getByText('in the future').waitFor()
    await page.getByLabel('Last day').fill('2099-06-30')
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Save' }).click()
    const row = page.getByRole('row').filter({ hasText: 'new name' })
    await row.getByText('Until 30 June 2099').waitFor()
    await page.getByRole('button', { name: 'Change new name' }).click()
    assert.equal(await page.getByLabel('Last day').inputValue(), '2099-06-30')
    await page.getByLabel('Last day').fill('')
    await page.getByRole('button', { name: 'Save' }).click()
    await row.getByText('Valid').waitFor()
    assert.equal((await stage.weir.call('/models', { key })).status, 200)
  })

  it('has its actions on the screen of a phone', async () => {
    const { page, go, context } = await stage.visitor({ phone: true })
    await go('/keys')
    for (const name of ['Change new name', 'Revoke new name']) {
      const box = await page.getByRole('button', { name }).boundingBox()
      assert.ok(box && box.x >= 0 && box.x + box.width <= 390, `${name}: ${JSON.stringify(box)}`)
    }
    await context.close()
  })

  it('cannot be lost while it is being created', async () => {
    const { page, go } = visitor
    await go('/keys')
    await page.getByRole('button', { name: 'Create a key' }).click()
    await page.getByLabel('What is it for?').fill('slow')
    const held = Promise.withResolvers<void>()
    await page.route('**/console/api/keys', async (route) => {
      await held.promise
      await route.continue()
    })
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    for (let times = 0; times < 3; times++) await page.keyboard.press('Escape')
    assert.equal(await page.getByRole('button', { name: 'Cancel' }).isDisabled(), true)
    held.resolve()
    await page.locator('.secret').waitFor()
    await page.unroute('**/console/api/keys')
    await page.getByRole('button', { name: 'I have copied it' }).click()
  })
})

describe('the invoices page', () => {
  it('has an empty state while there are none', async () => {
    const { page, go } = visitor
    await go('/invoices')
    await page.getByText('There are no invoices yet').waitFor()
    await assertAccessible(page)
    await go('/invoices/INV-000009')
    await page.getByRole('alert').waitFor()
  })
})
