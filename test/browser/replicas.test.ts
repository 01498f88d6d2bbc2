import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser } from 'playwright-core'
import { keptOperatorToken } from '../../src/workspaces/sessions/operator-token.ts'
import { assertAccessible, openBrowser, openPage } from '../support/browser.ts'
import { stageConfig } from '../support/chat-stage.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually, gate } from '../support/waiting.ts'
import { weirProcess, type WeirProcess } from '../support/weir-process.ts'

let redis: RedisServer
let engine: ScriptedEngine
let browser: Browser
let services: [asked: WeirProcess, leaving: WeirProcess]

before(async () => {
  redis = await startRedis()
  engine = await scriptedEngine()
  const config = stageConfig([engine.url], {
    config: { coordination: redis.url, server: { port: 0, admin_port: 0, drain_ms: 60_000 } },
  })
  services = await Promise.all([weirProcess(config), weirProcess(config)])
  browser = await openBrowser()
})
after(async () => {
  await browser.close()
  for (const service of services) await service.remove()
  await engine.close()
  await redis.remove()
})

describe('the replicas in the console of the operator', () => {
  it('are drained after a confirmation: running requests finish, then the replica disappears from the page', async () => {
    const [asked, leaving] = services
    const page = await openPage(await browser.newContext({ reducedMotion: 'reduce' }))
    await page.goto(`${asked.adminUrl}/console/replicas`)
    await page.getByLabel('Operator token').fill(keptOperatorToken(asked.dataDir))
    await page.keyboard.press('Enter')
    await page.getByText('The replicas share their lanes through Redis.').waitFor()
    const row = page.getByRole('row').filter({ hasText: `-${leaving.pid}-` })
    await row.getByText('Serving').waitFor()
    await assertAccessible(page)

    const go = gate()
    engine.script = { tokens: ['a', 'b'], hold: { afterTokens: 1, until: go.opened } }
    const running = await leaving.chat({ max_tokens: 4, stream: true })
    await eventually('it runs', () => engine.running === 1)
    await row.getByRole('button', { name: 'Drain' }).click()
    await page.getByText('It takes no new work').waitFor()
    await assertAccessible(page)
    await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click()
    await row.getByText('Draining').waitFor()
    assert.equal(await row.getByRole('button').count(), 0)
    assert.equal((await leaving.chat({ max_tokens: 4 })).status, 503)

    go.open()
    assert.match(await running.text(), /\[DONE\]/)
    await row.waitFor({ state: 'detached' })
    assert.equal((await asked.chat({ max_tokens: 4 })).status, 200)
    await page.goto(`${asked.adminUrl}/console/audit`)
    await page.getByRole('row').filter({ hasText: 'Drain a replica' }).getByText('done').waitFor()
    assert.deepEqual(page.problems, [])
  })
})
