import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage } from '../support/console-stage.ts'
import { eventually } from '../support/waiting.ts'

/** One field finds pages, models, keys, workspaces and requests. */

let stage: ConsoleStage
before(async () => {
  stage = await consoleStage()
  await stage.weir.admin('POST', '/admin/v1/keys', { workspace: 'default', name: 'website' })
  await stage.weir.admin('POST', '/admin/v1/workspaces', { name: 'acme' })
})
after(() => stage.stop())

describe('the palette', () => {
  it('opens pages, models, keys and requests with the keyboard alone', async () => {
    stage.engine.script = { tokens: ['Yes'] }
    const chat = await stage.weir.chat({ stream: true })
    await chat.text()
    const { page, context, go } = await stage.visitor()
    await go('/keys')
    const field = page.getByRole('combobox', { name: 'Find pages' })
    const options = page.getByRole('option')

    await page.keyboard.press('Control+k')
    await assertAccessible(page)
    const active = (): Promise<string | null> => field.getAttribute('aria-activedescendant')
    for (const [key, place] of [
      ['ArrowDown', 'place-1'],
      ['ArrowUp', 'place-0'],
      ['ArrowUp', 'place-9'],
      ['ArrowDown', 'place-0'],
    ] as const) {
      await eventually('ten are shown', async () => (await options.count()) === 10)
      await page.keyboard.press(key)
      assert.equal(await active(), place)
      assert.equal(await page.locator('[role=option][aria-selected=true]').getAttribute('id'), place)
    }
    await field.fill('ag')
    await options.getByText('Usage').waitFor()
    assert.equal(
      await options.getByText('Keys', { exact: true }).count(),
      0,
      'the word "Page" beside it does not count',
    )
    await field.fill('')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.type('us')
    await eventually('the first one is chosen again', async () => (await active()) === 'place-0')
    await options.getByText('Usage').waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor()
    assert.equal(await field.count(), 0)

    await page.keyboard.press('Control+k')
    await page.keyboard.type('vision')
    await options.getByText('Vision 3B').waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/console\/models\/meta\/vision$/)

    await page.keyboard.press('Control+k')
    await page.keyboard.type('website')
    await options.getByText('website').waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/console\/requests\?key=key_/)

    await page.keyboard.press('Control+k')
    await page.keyboard.type(chat.headers.get('x-request-id') ?? '')
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/console\/requests\/[\w-]+$/)
    await page.getByText('Admitted').waitFor()

    await page.keyboard.press('Control+k')
    await page.keyboard.type('nothing like this')
    await page.getByText('Nothing found').waitFor()
    await assertAccessible(page)
    await page.keyboard.press('Escape')
    await eventually('it is closed', async () => (await field.count()) === 0)
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('asks for a workspace once the text has settled, and shows at most ten', async () => {
    const { page, context, go } = await stage.operator()
    await go('/queues')
    const asked: string[] = []
    page.on('request', (request) => {
      if (request.url().includes('/workspaces?')) asked.push(new URL(request.url()).searchParams.get('search') ?? '')
    })
    await page.getByRole('button', { name: 'Jump to' }).click()
    await eventually('ten are shown', async () => (await page.getByRole('option').count()) === 10)
    // Four letters in one moment, however slow the machine is.
    await page.evaluate(`for (const text of ['a', 'ac', 'acm', 'acme']) {
      const field = document.querySelector('[role=combobox]')
      field.value = text
      field.dispatchEvent(new Event('input', { bubbles: true }))
    }`)
    await page.getByRole('option', { name: 'acme Workspace' }).waitFor()
    assert.deepEqual(asked, ['acme'])
    await page.getByRole('option', { name: 'acme Workspace' }).click()
    await page.waitForURL(/\/console\/workspaces\/acme$/)
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('works on a phone, and leaves a question in front of the page alone', async () => {
    const { page, context, go } = await stage.visitor({ phone: true, dark: true })
    await go('/keys')
    await page.getByRole('button', { name: 'Create a key' }).click()
    await page.keyboard.press('Control+k')
    assert.equal(await page.getByRole('combobox').count(), 0)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Jump to' }).click()
    await page.getByRole('option').first().waitFor()
    await assertAccessible(page)
    const [width, shown] = await page.evaluate<[number, number]>('[document.body.scrollWidth, innerWidth]')
    assert.ok(width <= shown)
    await page.getByRole('button', { name: 'Close' }).click()
    assert.equal(await page.getByRole('combobox').count(), 0)
    await context.close()
  })
})
