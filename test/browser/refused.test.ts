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

async function refused(body: object, key?: string | null): Promise<string> {
  const response = await stage.weir.chat(body, key === undefined ? {} : { key })
  await response.text()
  return response.headers.get('x-request-id') ?? ''
}

describe('[X4, X5] why requests failed', () => {
  it('has an empty state while nothing was refused', async () => {
    await member.go('/usage')
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
    await go('/usage')
    const section = page.getByRole('region', { name: 'Refused requests', exact: true })
    await section.getByRole('region', { name: 'Refused', exact: true }).locator('canvas').waitFor()
    const newest = section.getByRole('region', { name: 'Newest refused requests' })
    const row = newest.getByRole('row').filter({ hasText: 'invalid_value' })
    await row.getByText('A field has a value that is not allowed').waitFor()
    await row.getByText('temperature').waitFor()
    await newest.getByRole('row').filter({ hasText: 'model_not_found' }).getByText('404').waitFor()
    assert.equal(await section.getByText('missing_api_key').count(), 0, 'without a key, it belongs to no workspace')
    assert.equal(await newest.getByRole('row').count(), 3)
    await assertAccessible(page)
  })

  it('finds a refused request by its id', async () => {
    const id = await refused({ max_tokens: 0 })
    const { page, go } = member
    await go('/usage')
    await page.getByLabel('Find a request by its id').fill(id)
    await page.getByRole('button', { name: 'Find' }).click()
    await page.getByRole('heading', { name: 'Refused', exact: true }).waitFor()
    await page.getByText('invalid_value').waitFor()
    await page.getByText('max_tokens').waitFor()
    await assertAccessible(page)
  })

  it('shows the status and the error code of a request that failed at the engine', async () => {
    const message = 'maximum context length is 10 tokens'
    stage.engine.script = { refuse: { status: 400, body: { error: { message } } } }
    const id = await refused({})
    const { page, go } = member
    await go('/usage')
    const requests = page.getByRole('region', { name: 'Requests', exact: true })
    await requests.getByText('400 context_length_exceeded').first().waitFor()
    await go(`/usage/${id}`)
    await page.getByText('400 context_length_exceeded').waitFor()
    await assertAccessible(page)
  })

  it('shows the operator those of all workspaces or one, and how the settled ones of a workspace ended', async () => {
    const { page, go } = operator
    await go('/requests')
    const newest = page.getByRole('region', { name: 'Newest refused requests' })
    await newest.getByRole('row').filter({ hasText: 'missing_api_key' }).getByText('no valid key').waitFor()
    await newest
      .getByRole('row')
      .filter({ hasText: 'model_not_found' })
      .getByRole('link', { name: 'default' })
      .waitFor()
    await assertAccessible(page)
    await page.getByLabel('Only of workspace').fill('default')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.waitForURL(/workspace=default/)
    await page.getByRole('heading', { name: 'Settled requests of default' }).waitFor()
    await page.getByText('400 context_length_exceeded').waitFor()
    await newest.getByText('missing_api_key').first().waitFor({ state: 'hidden' })
    await page.getByLabel('Only requests that did not complete').check()
    await page.getByText('engine failed').first().waitFor()
    await assertAccessible(page)
  })
})
