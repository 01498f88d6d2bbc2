import assert from 'node:assert/strict'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage } from '../support/console-stage.ts'
import { addPastUsage } from '../support/past-usage.ts'

let stage: ConsoleStage

before(async () => {
  stage = await consoleStage({ console: { models: 'public' } })
})
after(() => stage.stop())

/** A way to the service that can be cut. */
async function cuttableWay(target: string) {
  const { port } = new URL(target)
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer((socket) => {
    if (isCut) return void socket.destroy()
    const onward = connect(Number(port), '127.0.0.1')
    for (const it of [socket, onward]) {
      sockets.add(it)
      it.on('error', () => {}).once('close', () => sockets.delete(it))
    }
    socket.pipe(onward).pipe(socket)
    socket.once('close', () => onward.destroy())
    onward.once('close', () => socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut() {
      isCut = true
      for (const socket of sockets) socket.destroy()
    },
    mend: () => void (isCut = false),
    close: () => void server.close(),
  }
}

describe('a page that follows the service', () => {
  it('reports that its figures are old when the connection breaks, and continues by itself', async () => {
    const way = await cuttableWay(stage.weir.service.url)
    const { page, context } = await stage.visitor()
    await page.goto(`${way.url}/console/models`)
    const card = page.getByRole('article').filter({ hasText: 'Test 8B' })
    await card.getByText('Idle').waitFor()
    way.cut()
    const isOld = page.getByText('These figures are out of date')
    await isOld.waitFor()
    await assertAccessible(page)
    // A request that fails says more, in the place of this.
    await page.getByRole('link', { name: 'Usage' }).click()
    await page.getByText('The service cannot be reached', { exact: true }).waitFor()
    await page.goBack()
    await card.waitFor({ state: 'hidden' })
    assert.equal(await isOld.count(), 0)
    way.mend()
    await card.getByText('Idle').waitFor()
    way.cut()
    await isOld.waitFor()
    const held = Promise.withResolvers<void>()
    stage.engine.script = { tokens: ['a', 'b'], hold: { afterTokens: 1, until: held.promise } }
    const chat = stage.weir.chat({ stream: true }).then((response) => response.text())
    way.mend()
    await card.getByText('1 of 8 in flight').waitFor()
    assert.equal(await page.getByText('These figures are out of date').count(), 0)
    held.resolve()
    await chat
    await context.close()
    way.close()
  })
})

describe('the models for visitors', () => {
  it('are shown without signing in, if the operator allows it', async () => {
    const { page, context, go } = await stage.visitor({ isSignedIn: false })
    await go('')
    await page.getByText('8 models').waitFor()
    await assertAccessible(page)
    await page.getByRole('link', { name: 'Sign in' }).first().click()
    await page.getByLabel('API key').fill(stage.weir.key)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await context.close()
  })
})

describe('a million rows', () => {
  it('are summed up without a row missing, and paged through', async () => {
    const others = (await stage.weir.ledger()).length
    await addPastUsage(stage.weir, { days: 25, rows: 1_000_000 })
    const { page, context, go } = await stage.visitor()
    await go('/usage')
    await page.getByText(`${(1_000_000 + others).toLocaleString('en')} requests`).waitFor()
    await page.getByRole('link', { name: 'List the requests' }).click()
    await page.getByRole('button', { name: 'Older' }).click()
    await page.getByRole('region', { name: 'Requests', exact: true }).getByRole('row').nth(25).waitFor()
    await assertAccessible(page)
    await context.close()
  })
})
