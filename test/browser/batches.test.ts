import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import { chatLine } from '../support/batch-lines.ts'
import { reached, sdkOf, submit } from '../support/batches.ts'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage, type Visitor } from '../support/console-stage.ts'
import { gate } from '../support/waiting.ts'

/** Batches in both consoles, from the file that is dropped to the answers that are downloaded. */

let stage: ConsoleStage
before(async () => {
  stage = await consoleStage()
})
after(() => stage.stop())

const textOf = (lines: readonly (object | string)[]): string =>
  lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')

/** As if the file came from the desktop. */
async function drop({ page }: Pick<Visitor, 'page'>, name: string, text: string): Promise<void> {
  const file = `new File([${JSON.stringify(text)}], ${JSON.stringify(name)})`
  const dataTransfer = await page.evaluateHandle(
    `(() => { const it = new DataTransfer(); it.items.add(${file}); return it })()`,
  )
  const field = page.locator('label', { hasText: 'Drop a JSONL file' })
  await field.dispatchEvent('dragover', { dataTransfer })
  await field.dispatchEvent('drop', { dataTransfer })
}

describe('a member', () => {
  it('sees what to do first, drops a file, watches it complete and downloads answers and errors', async () => {
    stage.engine.script = ({ rawBody }) =>
      rawBody.includes('Question bad')
        ? { refuse: { status: 400, body: { error: { message: 'The engine refuses that.' } } } }
        : { tokens: ['Yes'] }
    const visitor = await stage.visitor()
    const { page, context, go } = visitor
    await go('/batches')
    await page.getByText('There are no batches yet').waitFor()
    await page.getByText('weir batch submit questions.jsonl --wait').waitFor()
    await assertAccessible(page)

    await drop(visitor, 'questions.jsonl', textOf([chatLine('a'), chatLine('bad'), chatLine('c')]))
    await page.getByRole('heading', { name: 'questions.jsonl', level: 1 }).waitFor()
    await page.getByText('3 of 3 lines').waitFor()
    await page.locator('.state', { hasText: 'completed' }).waitFor()
    const failures = page.getByRole('region', { name: 'Failed lines by error' })
    await failures.getByRole('row', { name: 'invalid_value 1 Line 2, bad: The engine refuses that.' }).waitFor()
    await assertAccessible(page)

    for (const [link, ids] of [
      ['Download the answers', ['a', 'c']],
      ['Download the errors', ['bad']],
    ] as const) {
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('link', { name: link }).click(),
      ])
      assert.match(download.suggestedFilename(), /^batch_[0-9a-f]{24}_(output|error)\.jsonl$/)
      const lines = (await readFile(await download.path(), 'utf8')).trim().split('\n')
      assert.deepEqual(
        lines.map((line) => (JSON.parse(line) as { custom_id: string }).custom_id),
        ids,
      )
    }
    await page.getByRole('main').getByRole('link', { name: 'Batches' }).click()
    await page.getByRole('row', { name: /questions\.jsonl completed 3 \/ 3, 1 failed/ }).waitFor()
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('reads which lines of a chosen file are wrong, and where', async () => {
    const { page, context, go } = await stage.visitor()
    await go('/batches')
    const choose = (text: string): Promise<void> =>
      page.getByLabel('JSONL file').setInputFiles({ name: 'wrong.jsonl', mimeType: '', buffer: Buffer.from(text) })
    await choose('{"custom_id": ')
    await page.getByRole('alert').getByText("The first line must be a JSON object with the field 'url'").waitFor()
    await choose('\n\n')
    await page.getByRole('alert').getByText('The file has no lines.').waitFor()
    await choose(textOf([{ ...chatLine('a'), url: '/v1/images' }]))
    await page.getByRole('alert').getByText("'endpoint' must be one of").waitFor()
    const { data: files } = await sdkOf(stage.weir).files.list()
    assert.ok(!files.some(({ filename }) => filename === 'wrong.jsonl'), 'the file of a refused batch is deleted')
    await assertAccessible(page)
    await choose(textOf([chatLine('a'), '{"x', chatLine('c', { temperature: 9 })]))
    const wrong = page.getByRole('region', { name: 'Wrong lines' })
    await wrong.getByRole('row', { name: /^2 the whole line The body is not valid JSON/ }).waitFor()
    await wrong.getByRole('row', { name: /^3 body\.temperature / }).waitFor()
    await page.getByText('2 lines are wrong. Nothing was run').waitFor()
    await assertAccessible(page)
    await context.close()
  })

  it('cancels a batch after a question, also on a phone', async () => {
    const held = gate()
    stage.engine.script = { hold: { afterTokens: 0, until: held.opened } }
    const client = sdkOf(stage.weir)
    const { id } = await submit(
      client,
      Array.from({ length: 40 }, (_, index) => chatLine(index)),
    )
    await stage.engine.arrived(1)
    const { page, context, go } = await stage.visitor({ phone: true, dark: true })
    await go(`/batches/${id}`)
    await page.getByText('0 of 40 lines').waitFor()
    await page.getByText('too few lines in the last minutes; they wait while their models are busy').waitFor()
    const [width, shown] = await page.evaluate<[number, number]>('[document.body.scrollWidth, innerWidth]')
    assert.ok(width <= shown)
    await page.getByRole('button', { name: 'Cancel the batch' }).click()
    const question = page.getByRole('dialog', { name: 'Cancel the batch?' })
    await assertAccessible(page)
    await question.getByRole('button', { name: 'Cancel', exact: true }).click()
    assert.equal((await client.batches.retrieve(id)).status, 'in_progress')
    await page.getByRole('button', { name: 'Cancel the batch' }).click()
    await question.getByRole('button', { name: 'Cancel the batch' }).click()
    await page.locator('.state', { hasText: 'cancelling' }).waitFor()
    held.open()
    await page.locator('.state', { hasText: 'cancelled' }).waitFor()
    await page.getByRole('row', { name: /^batch_cancelled / }).waitFor()
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('reads why a batch is paused, and when it expires', async () => {
    const held = gate()
    stage.engine.script = { hold: { afterTokens: 0, until: held.opened } }
    const client = sdkOf(stage.weir)
    const { id } = await submit(
      client,
      Array.from({ length: 40 }, (_, index) => chatLine(index)),
    )
    await stage.engine.arrived(1)
    await stage.weir.admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: '0.000001' })
    held.open()
    const { page, context, go } = await stage.visitor()
    await go(`/batches/${id}`)
    await page.getByText('Paused since').waitFor()
    await page.getByText('Ask for a higher limit').waitFor()
    await assertAccessible(page)
    await stage.weir.admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: null })
    await page.getByText('40 of 40 lines').waitFor()
    await page.locator('.state', { hasText: 'completed' }).waitFor()
    await context.close()
  })

  it('finds the page in the palette', async () => {
    const { page, context, go } = await stage.visitor()
    await go('/keys')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('batch')
    await page.getByRole('option').getByText('Batches').waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Batches', level: 1 }).waitFor()
    await context.close()
  })
})

describe('an operator', () => {
  it('sees the batches of all workspaces and cancels one; the queue page shows batch work, and fits', async () => {
    const held = gate()
    stage.engine.script = { hold: { afterTokens: 0, until: held.opened } }
    const client = sdkOf(stage.weir)
    const { id } = await submit(
      client,
      Array.from({ length: 40 }, (_, index) => chatLine(index)),
    )
    await stage.engine.arrived(1)
    const { page, context, go } = await stage.operator()
    await go('/queues')
    const queues = page.getByRole('region', { name: 'Queues' })
    await queues.getByText(/\d in flight\d+ waiting/).waitFor()
    const [width, shown] = await queues.evaluate((it) => [it.scrollWidth, it.clientWidth])
    assert.ok(width <= shown, `the table is ${width} wide in ${shown}`)
    await assertAccessible(page)
    await page.getByRole('link', { name: 'Batches' }).click()
    await page
      .getByRole('row', { name: /in\.jsonl default in progress 0 \/ 40/ })
      .getByRole('link', { name: 'in.jsonl' })
      .click()
    await page.getByText('0 of 40 lines').waitFor()
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Cancel the batch' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the batch' }).click()
    held.open()
    await page.locator('.state', { hasText: 'cancelled' }).waitFor()
    await reached(client, id, 'cancelled')
    await go('/audit')
    await page.getByText('Cancel a batch').first().waitFor()
    assert.deepEqual(page.problems, [])
    await context.close()
  })
})
