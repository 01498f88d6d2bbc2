import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { BrowserContext, Request } from 'playwright-core'
import { openPage } from '../support/browser.ts'
import { consoleStage, type ConsoleStage } from '../support/console-stage.ts'
import { eventually } from '../support/waiting.ts'

/** Before the first request, and after one. */
const AT_REST = /Idle|0 of 8 in flight/
let stage: ConsoleStage

before(async () => {
  stage = await consoleStage()
})
after(() => stage.stop())

describe('tabs of one browser', () => {
  const streams = (context: BrowserContext): { opened: number; open: number } => {
    const count = { opened: 0, open: 0 }
    const isLive = (request: Request): boolean => request.url().endsWith('/console/api/live')
    context.on('request', (request) => {
      if (!isLive(request)) return
      count.opened++
      count.open++
    })
    const ended = (request: Request): void => void (isLive(request) && count.open--)
    context.on('requestfinished', ended)
    context.on('requestfailed', ended)
    return count
  }

  it('share one stream, so the eighth is not blank, and continue when the tab that has it is closed', async () => {
    const { context } = await stage.visitor()
    const count = streams(context)
    const tabs = await Promise.all(Array.from({ length: 8 }, () => openPage(context)))
    const cards = tabs.map((tab) => tab.getByRole('article').filter({ hasText: 'Test 8B' }))
    for (const [index, tab] of tabs.entries()) {
      await tab.goto(`${stage.weir.service.url}/console/models`)
      await cards[index]?.getByText(AT_REST).waitFor()
    }
    assert.deepEqual(count, { opened: 1, open: 1 })
    const held = Promise.withResolvers<void>()
    stage.engine.script = { tokens: ['a', 'b'], hold: { afterTokens: 1, until: held.promise } }
    const chat = stage.weir.chat({ stream: true }).then((response) => response.text())
    for (const card of cards) await card.getByText('1 of 8 in flight').waitFor()
    await tabs[0]?.close()
    held.resolve()
    await chat
    for (const card of cards.slice(1)) await card.getByText(AT_REST).waitFor()
    assert.equal(count.opened, 2)
    for (const tab of tabs) assert.deepEqual(tab.problems, [])
    await context.close()
  })

  it('have no stream while they are hidden', async () => {
    const { page, context, go } = await stage.visitor()
    const count = streams(context)
    await go('/models')
    const card = page.getByRole('article').filter({ hasText: 'Test 8B' })
    await card.getByText(AT_REST).waitFor()
    const show = (state: 'hidden' | 'visible'): Promise<void> =>
      page.evaluate(`Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true })
        document.dispatchEvent(new Event('visibilitychange'))`)
    await show('hidden')
    await eventually('the stream is closed', () => count.open === 0)
    await show('visible')
    await eventually('there is a stream again', () => count.open === 1)
    await context.close()
  })
})
