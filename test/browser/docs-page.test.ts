import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage, type Visitor } from '../support/console-stage.ts'

let stage: ConsoleStage

before(async () => {
  stage = await consoleStage()
})
after(() => stage.stop())

async function reader(options: Parameters<ConsoleStage['visitor']>[0] = {}): Promise<Visitor['page']> {
  const { page } = await stage.visitor({ isSignedIn: false, ...options })
  await page.goto(`${stage.weir.service.url}/docs`)
  return page
}

describe('the docs page', () => {
  it('finds operations, fields and errors, with the keyboard alone', async () => {
    const page = await reader()
    await page.keyboard.press('/')
    await page.keyboard.type('max_tokens messages')
    await page.getByText('1 found').waitFor()
    await page.keyboard.press('Enter')
    const field = page.locator('dl > :target')
    assert.equal(await field.getAttribute('id'), 'messages.request.max_tokens')
    assert.ok(await field.isVisible())
    await page.getByRole('searchbox').fill('queue_full')
    await page.locator('#found a', { hasText: /^queue_full/ }).click()
    assert.match(await page.locator('dl > :target').innerText(), /queue_full.*429.*Wait for Retry-After/s)
    await page.getByRole('searchbox').fill('no such thing')
    await page.getByText('0 found').waitFor()
    await page.keyboard.press('Escape')
    assert.ok(
      await page.locator('nav').getByRole('link', { name: 'POST /embeddings' }).isVisible(),
      'all operations again',
    )
    assert.deepEqual(page.problems, [])
  })

  it('shows one language in all samples, with the SDK where it has the call', async () => {
    const page = await reader()
    const tabs = page.getByRole('radiogroup', { name: 'Language' })
    await tabs.first().getByText('Python').click()
    const shown = await page.locator('.samples > pre:visible').allInnerTexts()
    assert.equal(shown.length, await tabs.count())
    assert.ok(shown.every((it) => it.includes('import ') && !it.startsWith('curl')))
    assert.match(shown[0] ?? '', /from openai import OpenAI.*client\.chat\.completions\.create\(/s)
    await page.keyboard.press('ArrowRight')
    assert.match(await page.locator('.samples > pre:visible').first().innerText(), /^import OpenAI from 'openai'/)
    assert.deepEqual(page.problems, [])
  })

  it('copies a sample with the address of the service', async () => {
    const page = await reader()
    await page.locator('.samples > pre:visible').first().getByRole('button', { name: 'Copy' }).click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    const copied = await page.evaluate('navigator.clipboard.readText()')
    assert.match(String(copied), new RegExp(`^curl "${stage.weir.service.url}/api/v1/chat/completions" .*}'$`, 's'))
  })

  it('leads from an operation to the errors that it may give, and to the console', async () => {
    const page = await reader()
    await page.locator('#chatCompletions').getByRole('link', { name: 'context_length_exceeded' }).click()
    assert.match(await page.locator('dl > :target').innerText(), /Shorten the input or lower max_tokens/)
    await page.getByRole('link', { name: 'Console' }).click()
    await page.waitForURL(/\/console/)
  })

  it('explains the error of a request, one click from the console', async () => {
    const { 'x-request-id': id = '' } = Object.fromEntries((await stage.weir.chat({ model: 'no/model' })).headers)
    const { page, go } = await stage.visitor()
    await go(`/requests/${id}`)
    await page.getByRole('link', { name: 'model_not_found' }).click()
    await page.waitForURL(/\/docs#error-model_not_found$/)
    assert.match(await page.locator('dl > :target').innerText(), /Take an id or alias from GET \/models/)
  })

  it('is accessible, and fits on a phone', async () => {
    for (const options of [{}, { dark: true }, { phone: true }]) {
      const page = await reader(options)
      await assertAccessible(page)
      assert.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), 'nothing is off-screen')
      assert.deepEqual(page.problems, [])
    }
  })
})
