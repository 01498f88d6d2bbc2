import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startService, type Service } from '../../src/compose.ts'
import { loadConfig } from '../../src/config.ts'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage } from '../support/console-stage.ts'
import { modelEntry } from '../support/weir.ts'

/** What open pages do when the service is restarted, and when their session has ended. */

/** Before the first request, and after one. */
const AT_REST = /Idle|0 of 8 in flight/
let stage: ConsoleStage
let running: Service

before(async () => {
  stage = await consoleStage()
  running = stage.weir.service
})
after(async () => {
  await running.stop()
  await stage.stop()
})

/** At the same addresses and on the same data. `between` runs while it is down. */
async function restart(between: () => void = () => {}): Promise<void> {
  const { service, adminUrl, configFile, dataDir, operatorToken } = stage.weir
  await running.stop()
  between()
  stage.weir.writeConfig({
    server: { port: Number(new URL(service.url).port), admin_port: Number(new URL(adminUrl).port) },
    models: [modelEntry([stage.engine.url])],
  })
  const config = loadConfig({ config: configFile, data: dataDir }, { WEIR_OPERATOR_TOKEN: operatorToken })
  running = await startService(config)
}

function endAllSessions(): void {
  const database = new DatabaseSync(join(stage.weir.dataDir, 'weir.db'))
  database.exec('DELETE FROM console_sessions')
  database.close()
}

describe('a restart', () => {
  it('leaves members and operators signed in, and their pages continue', async () => {
    const [member, operator] = [await stage.visitor(), await stage.operator()]
    await member.go('/models')
    await member.page.getByRole('article').filter({ hasText: 'Test 8B' }).getByText(AT_REST).waitFor()
    await operator.go('/queues')
    await operator.page.getByRole('row').filter({ hasText: 'meta/test-8b' }).getByText('0 / 8').waitFor()
    await restart()
    const held = Promise.withResolvers<void>()
    stage.engine.script = { tokens: ['a', 'b'], hold: { afterTokens: 1, until: held.promise } }
    const chat = stage.weir.chat({ stream: true }).then((response) => response.text())
    await member.page.getByText('1 of 8 in flight').waitFor()
    await operator.page.getByRole('row').filter({ hasText: 'meta/test-8b' }).getByText('1 / 8').waitFor()
    held.resolve()
    await chat
    for (const { page } of [member, operator]) {
      await page.getByRole('link', { name: 'Keys' }).click()
      await page.getByRole('region', { name: 'Keys' }).waitFor()
      assert.equal(await page.getByText('Your session has ended').count(), 0)
      assert.deepEqual(page.problems, [])
    }
    await member.context.close()
    await operator.context.close()
  })
})

describe('a page whose session has ended', () => {
  it('reports it, stops polling, and continues where it was after signing in', async () => {
    const { page, context, go } = await stage.visitor()
    await go('/models')
    await page.getByRole('article').filter({ hasText: 'Test 8B' }).getByText(AT_REST).waitFor()
    await restart(endAllSessions)
    await page.getByText('Your session has ended').waitFor()
    await assertAccessible(page)
    let asked = 0
    page.on('request', () => void asked++)
    // Longer than it used to take to ask again, twice.
    await sleep(7000)
    assert.equal(asked, 0)
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await page.getByLabel('API key').fill(stage.weir.key)
    await page.keyboard.press('Enter')
    await page.getByText('Your session has ended').waitFor({ state: 'detached' })
    await page.getByRole('article').filter({ hasText: 'Test 8B' }).getByText(AT_REST).waitFor()
    assert.equal(await page.getByText('out of date').count(), 0)
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('keeps what was typed, even in a dialog', async () => {
    const { page, context, go } = await stage.operator()
    const signIn = async (): Promise<void> => {
      await page.getByText('Your session has ended').waitFor()
      await page.getByLabel('Operator token').fill(stage.weir.operatorToken)
      await page.keyboard.press('Enter')
      await page.getByText('Your session has ended').waitFor({ state: 'detached' })
    }
    await go('/workspaces/default')
    await page.getByLabel('Buyer').fill('Typed before')
    await context.clearCookies()
    await page.getByRole('button', { name: 'Save' }).click()
    await signIn()
    assert.equal(await page.getByLabel('Buyer').inputValue(), 'Typed before')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()

    await go('/workspaces')
    await page.getByRole('button', { name: 'Create a workspace' }).click()
    await page.getByLabel('Name').fill('acme')
    await context.clearCookies()
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await signIn()
    assert.equal(await page.getByLabel('Name').inputValue(), 'acme')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('link', { name: 'acme' }).waitFor()
    assert.deepEqual(page.problems, [])
    await context.close()
  })
})
