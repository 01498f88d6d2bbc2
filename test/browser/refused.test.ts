import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage, type Visitor } from '../support/console-stage.ts'

let stage: ConsoleStage
let member: Visitor
let operator: Visitor

before(async () => {
  stage = await consoleStage()
  member = await stage.visitor()
  operator = await stage.operator()
})
after(async () => {
  assert.deepEqual([member.page.problems, operator.page.problems], [[], []])
  await stage.stop()
})

/** A day and a minute in Sydney, as fields take them: so many minutes from now. */
const sydneyIn = (minutes: number): string =>
  new Date(Date.now() + minutes * 60_000).toLocaleString('sv-SE', {
    timeZone: 'Australia/Sydney',
    dateStyle: 'short',
    timeStyle: 'short',
  })

async function refused(body: object, key?: string | null): Promise<string> {
  const response = await stage.weir.chat(body, key === undefined ? {} : { key })
  await response.text()
  return response.headers.get('x-request-id') ?? ''
}

describe('[X4, X5] why requests failed', () => {
  it('has an empty state while nothing was refused', async () => {
    await member.go('/requests')
    await member.page.getByText('Nothing was refused in this period').waitFor()
    await operator.go('/requests')
    await operator.page.getByText('Nothing was refused in this period').waitFor()
    await assertAccessible(operator.page)
  })

  it('shows members the refused requests of their workspace, by code and key over time, and the newest with the reason', async () => {
    await refused({ temperature: 9 })
    await refused({ model: 'none/such' })
    await refused({}, null)
    const { page, go } = member
    await go('/requests')
    const section = page.getByRole('region', { name: 'Refused requests', exact: true })
    await section.getByRole('region', { name: 'Refused', exact: true }).locator('canvas').waitFor()
    const newest = section.getByRole('region', { name: 'Newest refused requests' })
    const row = newest.getByRole('row').filter({ hasText: 'invalid_value' })
    await row.getByText('A field has a value that is not allowed').waitFor()
    await row.getByText('temperature').waitFor()
    await newest.getByRole('row').filter({ hasText: 'model_not_found' }).getByText('404 model_not_found').waitFor()
    assert.equal(await section.getByText('missing_api_key').count(), 0, 'without a key, it belongs to no workspace')
    assert.equal(await newest.getByRole('row').count(), 3)
    await assertAccessible(page)
  })

  it('finds a refused request by its id', async () => {
    const id = await refused({ max_tokens: 0 })
    const { page, go } = member
    await go('/requests')
    await page.getByLabel('Find a request by its id').fill(id)
    await page.getByRole('button', { name: 'Find' }).click()
    await page.getByRole('heading', { name: 'Refused', exact: true }).waitFor()
    await page.getByText('invalid_value').waitFor()
    await page.getByText('max_tokens').waitFor()
    await assertAccessible(page)
    await operator.go('/requests')
    await operator.page.getByLabel('Find a request by its id').fill(id)
    await operator.page.getByRole('button', { name: 'Find' }).click()
    await operator.page.getByRole('heading', { name: 'Refused', exact: true }).waitFor()
    await operator.page.getByRole('link', { name: 'default' }).waitFor()
    await assertAccessible(operator.page)
    const anonymous = await refused({}, null)
    await operator.go(`/requests/${anonymous}`)
    await operator.page.getByText('no valid key').waitFor()
  })

  it('links the error of a request in the playground to its page', async () => {
    const { page, go } = member
    stage.engine.script = {
      refuse: { status: 500, body: { error: { message: 'out of memory' } } },
    }
    await go('/playground?model=baai/embed')
    await page.getByRole('textbox').first().fill('Too long')
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByRole('alert').getByRole('link', { name: 'See the request' }).click()
    await page.waitForURL(/\/console\/requests\/\w+/)
    await page.getByText('502 upstream_error').waitFor()
  })

  it('shows the status and the error code of a request that failed at the engine', async () => {
    const message = 'maximum context length is 10 tokens'
    stage.engine.script = { refuse: { status: 400, body: { error: { message } } } }
    const id = await refused({})
    const { page, go } = member
    await go('/requests')
    const requests = page.getByRole('region', { name: 'Requests', exact: true })
    await requests.getByText('400 context_length_exceeded').first().waitFor()
    await go(`/requests/${id}`)
    await page.getByText('400 context_length_exceeded').waitFor()
    await assertAccessible(page)
  })

  it('shows the operator those of all workspaces or one, and how the settled ones of a workspace ended', async () => {
    const { page, go } = operator
    await go('/requests')
    const newest = page.getByRole('region', { name: 'Newest refused requests' })
    await newest.getByRole('row').filter({ hasText: 'missing_api_key' }).getByText('no valid key').first().waitFor()
    await newest
      .getByRole('row')
      .filter({ hasText: 'model_not_found' })
      .getByRole('link', { name: 'default' })
      .waitFor()
    await assertAccessible(page)
    const settled = page.getByRole('region', { name: 'Settled requests' })
    await settled.getByRole('row').filter({ hasText: 'context_length_exceeded' }).first().waitFor()
    await page.getByLabel('Workspace', { exact: true }).fill('default')
    await page.getByRole('button', { name: 'Search', exact: true }).click()
    await page.waitForURL(/workspace=default/)
    await newest.getByText('missing_api_key').first().waitFor({ state: 'hidden' })
    await page.getByLabel('Error code').selectOption('context_length_exceeded')
    await page.getByLabel('Status').fill('400')
    await page.getByRole('button', { name: 'Search', exact: true }).click()
    await page.waitForURL(/code=context_length_exceeded/)
    await settled.getByRole('link').first().click()
    await page.getByText('400 context_length_exceeded').waitFor()
    await page.getByRole('link', { name: 'default' }).waitFor()
    await assertAccessible(page)
  })

  it('finds requests by key, model, status, error code and time, settled and refused', async () => {
    stage.engine.script = { tokens: ['fine'] }
    await (await stage.weir.chat({})).text()
    await refused({ temperature: 9 })
    const { page, go } = member
    await go('/requests')
    const settled = page.getByRole('region', { name: 'Requests', exact: true })
    await settled.getByText('completed', { exact: true }).first().waitFor()
    const newest = page.getByRole('region', { name: 'Newest refused requests' })
    await newest.getByText('invalid_value').first().waitFor()
    await assertAccessible(page)
    const search = async (): Promise<void> => page.getByRole('button', { name: 'Search', exact: true }).click()
    await page.getByLabel('Outcome').selectOption('any but completed')
    await search()
    await settled.getByText('completed', { exact: true }).first().waitFor({ state: 'hidden' })
    await settled.getByText('engine failed').first().waitFor()
    await page.getByLabel('Error code').selectOption('invalid_value')
    await search()
    await page.getByText('No request fits').waitFor()
    await newest.getByText('model_not_found').first().waitFor({ state: 'hidden' })
    await newest.getByRole('link').first().click()
    await page.getByRole('heading', { name: 'Refused', exact: true }).waitFor()
    await page.goBack()
    assert.equal(await page.getByLabel('Error code').inputValue(), 'invalid_value', 'the search is in the address')
    await page.getByRole('button', { name: 'Clear' }).click()
    await page.getByRole('combobox', { name: 'Model' }).fill('none/such')
    await page.getByLabel('From', { exact: true }).fill('2026-01-01')
    await search()
    await page.getByText('No request fits').waitFor()
    await page.getByText(/Nothing was refused in this period|No refused request fits/).waitFor()
    await assertAccessible(page)
  })

  it('searches all workspaces of an operator by time of day, and links the failures of today to the search', async () => {
    stage.engine.script = { tokens: ['fine'] }
    await (await stage.weir.chat({})).text()
    const { page, go } = operator
    await go('/requests')
    const settled = page.getByRole('region', { name: 'Settled requests' })
    await settled.getByText('completed', { exact: true }).first().waitFor()
    const search = async (fromMinutes: number, toMinutes: number): Promise<void> => {
      for (const [field, minutes] of [
        ['From', fromMinutes],
        ['To', toMinutes],
      ] as const) {
        const [day = '', time = ''] = sydneyIn(minutes).split(' ')
        await page.getByLabel(field, { exact: true }).fill(day)
        await page.getByLabel(`${field} time`).fill(time)
      }
      await page.getByRole('button', { name: 'Search', exact: true }).click()
    }
    await search(-30, 1)
    await page.waitForURL(/to_time=/)
    await settled.getByText('completed', { exact: true }).first().waitFor()
    await search(-12 * 60, -12 * 60 + 1)
    await settled.getByText('No request fits').waitFor()
    await page.getByText(/Nothing was refused in this period|No refused request fits/).waitFor()
    await assertAccessible(page)
    await go('')
    await page.getByText('Failed today').waitFor()
    await page.locator('a[href*="outcome=failed"]').click()
    await page.waitForURL(/outcome=failed/)
    await settled.getByText('engine failed').first().waitFor()
    assert.equal(await settled.getByText('completed', { exact: true }).count(), 0)
  })
})
