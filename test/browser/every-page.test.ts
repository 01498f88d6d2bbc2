import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { chatLine } from '../support/batch-lines.ts'
import { sdkOf, submit } from '../support/batches.ts'
import { assertAccessible, assertFits } from '../support/browser.ts'
import { consoleStage, type ConsoleStage } from '../support/console-stage.ts'
import { freePort } from '../support/free-port.ts'
import { copyToLastMonth, lastMonth, useLastMonth } from '../support/last-month.ts'
import { modelEntry } from '../support/weir.ts'

/** Every page of the operator's console, with something on it, on all screens and in both colours. */

let stage: ConsoleStage
type Pages = readonly (readonly [path: string, text: string])[]
let pages: Readonly<Record<'operator' | 'visitor', Pages>>

before(async () => {
  const run = { command: [process.execPath, '-e', '0'], port: await freePort(), device: 'gpu0', memory: '20GiB' }
  const engineRun = { kind: 'llamacpp', model: 'm', run }
  stage = await consoleStage({
    devices: { gpu0: '80GiB' },
    models: [modelEntry([], { id: 'acme/on-demand', aliases: [], serverless: { engine: engineRun } })],
    seller: { name: 'Example Pty Ltd', abn: '51824753556' },
    alerts: { emails: [{ to: 'ops@example.com' }] },
    smtp: { host: '127.0.0.1', port: 9, from: 'weir@example.com' },
  })
  const { weir, engine } = stage
  engine.script = { promptTokens: 8000 }
  const answered = await weir.chat({})
  await answered.text()
  await (await weir.chat({ temperature: 9 })).text()
  await copyToLastMonth(weir, 5)
  await useLastMonth(weir, 'acme')
  const issued = await weir.admin('POST', '/admin/v1/invoices', { workspace: 'default', period: lastMonth.name })
  const { number } = (await issued.json()) as { number: string }
  await weir.admin('PUT', '/admin/v1/workspaces/default/prices/meta/test-8b', { input_per_million: '0.10' })
  const { id: batch } = await submit(sdkOf(weir), [chatLine(1)])
  const request = answered.headers.get('x-request-id')
  const operator: Pages = [
    ['', 'Live requests'],
    ['/queues', 'meta/vision'],
    ['/queues/meta/test-8b', 'Try other limits'],
    ['/batches', 'in.jsonl'],
    [`/batches/${batch}`, '1 of 1 lines'],
    ['/engines', 'acme/on-demand'],
    ['/models', 'Models'],
    ['/models/meta/test-8b', 'Whole request'],
    ['/replicas', 'Serving'],
    ['/catalog', 'Nothing would change'],
    ['/workspaces', 'acme'],
    ['/workspaces/default', 'Back to the list price'],
    ['/keys', 'Revoke'],
    ['/usage', 'Cached share'],
    ['/usage?by=model', 'meta/test-8b'],
    ['/requests', 'invalid_value'],
    [`/requests/${request}`, 'Timeline'],
    ['/requests/none', 'There is no request with this id'],
    ['/invoices', number],
    [`/invoices/${number}`, 'Total'],
    ['/invoices/drafts', 'acme'],
    ['/reconcile', 'Reconcile now'],
    ['/sessions', 'Sessions'],
    ['/alerts', 'ops@example.com'],
    ['/audit', 'acme'],
  ]
  const visitor: Pages = [
    ['', 'Newest requests'],
    ['/start', 'Take the code with you'],
    ['/models', 'Test 8B'],
    ['/models/meta/test-8b', 'Whole request'],
    ['/playground', 'Start a conversation'],
    ['/playground?model=baai/embed', 'Compare'],
    ['/playground?model=art/images', 'Description'],
    ['/batches', 'in.jsonl'],
    [`/batches/${batch}`, '1 of 1 lines'],
    ['/keys', 'Revoke'],
    ['/usage', 'Models that cost most'],
    ['/usage?by=key', 'Keys that cost most'],
    ['/requests', 'invalid_value'],
    [`/requests/${request}`, 'Timeline'],
    ['/requests/none', 'There is no request with this id'],
    ['/invoices', number],
    [`/invoices/${number}`, 'Amount due'],
    [`/invoices/${number}/1`, 'completed'],
    ['/sessions', 'this session'],
  ]
  pages = { operator, visitor }
})
after(() => stage.stop())

for (const [whose, who] of [
  ['the operator’s console', 'operator'],
  ['the console of a workspace', 'visitor'],
] as const) {
  describe(`every page of ${whose}`, () => {
    for (const [screen, phone] of [
      ['a desktop', false],
      ['a phone', true],
    ] as const) {
      it(`fits ${screen} with every action in sight, and axe finds nothing serious in light and dark`, async () => {
        const { page, context, go } = await stage[who]({ phone })
        const failures: string[] = []
        for (const [path, text] of pages[who]) {
          await go(path)
          try {
            await page.locator('main').getByText(text).filter({ visible: true }).first().waitFor()
            await page.locator('.skeleton').first().waitFor({ state: 'detached' })
            await assertFits(page)
            for (const colorScheme of ['dark', 'light'] as const) {
              await page.emulateMedia({ colorScheme })
              await assertAccessible(page)
            }
          } catch (error) {
            failures.push(`${path}: ${(error as Error).message}`)
          }
        }
        assert.deepEqual(failures, [])
        assert.deepEqual(page.problems, [])
        await context.close()
      })
    }
  })
}
