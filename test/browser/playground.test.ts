import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage, type Visitor } from '../support/console-stage.ts'
import { picture } from '../support/image-samples.ts'
import type { Script } from '../support/scripted-engine.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry } from '../support/weir.ts'

let stage: ConsoleStage
let visitor: Visitor
const HOSTILE = '<img src=x onerror="window.hacked=1">'

before(async () => {
  stage = await consoleStage()
  visitor = await stage.visitor()
})
after(async () => {
  assert.deepEqual(visitor.page.problems, [])
  await stage.stop()
})

const answers = (body: object): Script => ({
  handle: (_call, response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body)),
})

describe('a request that waits in the queue', () => {
  it('shows how many are ahead and how long it may take, and the operator sees the oldest wait', async () => {
    const limits = { token_budget: 100_000, max_concurrent_requests: 1, max_queue_depth: 64, max_wait_ms: 600_000 }
    const busy = await consoleStage({
      models: [
        modelEntry([], {
          id: 'meta/busy',
          aliases: [],
          name: 'Busy 8B',
          serverless: { engine: { kind: 'openai', urls: [stage.engine.url], model: 'engine-name' }, limits },
        }),
      ],
    })
    try {
      const held = Promise.withResolvers<void>()
      stage.engine.script = { tokens: ['a', 'b'], hold: { afterTokens: 1, until: held.promise } }
      const chats = Array.from({ length: 28 }, () =>
        busy.weir.chat({ model: 'meta/busy', stream: true }).then((response) => response.text()),
      )
      const operator = await busy.operator()
      await operator.go('/queues')
      const row = operator.page.getByRole('row').filter({ hasText: 'meta/busy' })
      await row.getByText('27 / 64').waitFor()
      await row
        .getByText(/^\d+(\.\d+)? (s|min)/)
        .first()
        .waitFor()
      await assertAccessible(operator.page)
      await operator.page.getByRole('link', { name: 'meta/busy' }).click()
      await operator.page.getByText(/1 in flight of 1, 27 waiting\. The oldest has waited \d/).waitFor()
      await operator.page.getByText('Of the requests admitted in the last five minutes, half waited').waitFor()

      const { page, go } = await busy.visitor()
      await go('/playground?model=meta/busy')
      await page.getByLabel('Message').fill('Hi')
      await page.getByRole('button', { name: 'Send' }).click()
      const ahead = page.getByText(
        /about 27 requests are ahead of yours\. At the pace of the last minutes, that takes about/,
      )
      await ahead.waitFor()
      await assertAccessible(page)
      held.resolve()
      await Promise.all(chats)
      await page.getByLabel('What the request took').waitFor()
      assert.equal(await page.getByText('ahead of yours').count(), 0)
      assert.deepEqual([...page.problems, ...operator.page.problems], [])
    } finally {
      await busy.stop()
    }
  })
})

describe('the playground of other models', () => {
  it('compares embeddings', async () => {
    const { page, go } = visitor
    stage.engine.script = answers({
      data: [0, 1, 2].map((index) => ({ index, embedding: [1, index, 0] })),
      usage: { prompt_tokens: 12 },
    })
    await go('/playground?model=baai/embed')
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByText('3 vectors of 3 dimensions').waitFor()
    await page.getByRole('cell', { name: '0.45' }).first().waitFor()
    await assertAccessible(page)
  })

  it('ranks documents with either endpoint, and shows where each has moved', async () => {
    const { page, go } = visitor
    stage.engine.script = answers({
      results: [2, 0, 1].map((index, place) => ({ index, relevance_score: 0.9 - place / 10 })),
      usage: { total_tokens: 12 },
    })
    await go('/playground?model=baai/rerank')
    await page.getByRole('button', { name: 'Rank' }).click()
    await page.getByRole('row').filter({ hasText: 'Sydney is' }).getByText('↑ 2').waitFor()
    await assertAccessible(page)
    stage.engine.script = answers({
      rankings: [1, 0, 2].map((index, place) => ({ index, logit: 5 - place })),
      usage: { prompt_tokens: 12 },
    })
    await go('/playground?model=nvidia/passages')
    await page.getByRole('button', { name: 'Rank' }).click()
    await page.getByRole('row').filter({ hasText: 'low dam' }).getByText('↑ 1').waitFor()
  })

  it('generates images, shows them at their real size, and keeps them in a gallery', async () => {
    const { page, go } = visitor
    const images = [picture(640, 360), picture(300, 200)].map((it) => ({ b64_json: it.toString('base64') }))
    stage.engine.script = { images: () => images }
    await go('/playground?model=art/images')
    await page.getByText('No images yet').waitFor()
    await page.getByLabel('Images', { exact: true }).fill('2')
    await page.getByRole('button', { name: 'Make' }).click()
    await page.getByLabel('What the request took').getByText('8.00¢').waitFor()
    await assertAccessible(page)
    const gallery = page.getByRole('region', { name: 'Gallery' })
    await page.reload()
    await gallery.getByRole('img').nth(1).waitFor()
    await gallery.getByRole('button', { name: 'A red apple' }).first().click()
    const viewer = page.getByRole('dialog', { name: 'Image' })
    await viewer.getByText('640 × 360').waitFor()
    const shown = await viewer.getByRole('img').boundingBox()
    assert.deepEqual([shown?.width, shown?.height], [640, 360])
    await assertAccessible(page)
    const downloading = page.waitForEvent('download')
    await viewer.getByRole('link', { name: 'Download' }).click()
    const download = await downloading
    assert.equal(download.suggestedFilename(), 'a-red-apple-on-a-table.png')
    assert.deepEqual(readFileSync(await download.path()), picture(640, 360))
    await viewer.getByRole('button', { name: 'Delete' }).click()
    await eventually('one is left', async () => (await gallery.getByRole('img').count()) === 1)
    await gallery.getByRole('button', { name: 'Delete all' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete all' }).click()
    await page.getByText('No images yet').waitFor()
  })

  it('records speech', async () => {
    const { page, go } = visitor
    await go('/playground?model=openai/whisper')
    await page.getByRole('button', { name: 'Record', exact: true }).click()
    await page.getByText('Recording …').waitFor()
    await page.getByRole('button', { name: 'Stop recording' }).click()
    await page.getByText('recording.webm').waitFor()
    await assertAccessible(page)
  })

  it('transcribes a file into text that links to its place in the recording', async () => {
    const { page, go } = visitor
    await go('/playground?model=openai/whisper')
    const buffer = readFileSync(new URL('../fixtures/audio/plain.wav', import.meta.url))
    await page
      .getByLabel('Recording', { exact: true })
      .setInputFiles({ name: `${HOSTILE}.wav`, mimeType: 'audio/wav', buffer })
    await page.getByRole('button', { name: 'Transcribe' }).click()
    await page.getByRole('button', { name: 'at the rate the bed below can take.' }).click()
    await page.locator('button[aria-current=true]').getByText('at the rate').waitFor()
    await page.getByRole('link', { name: 'Subtitles' }).waitFor()
    await page.getByLabel('What the request took').getByText('Audio').waitFor()
    assert.equal(await page.evaluate('window.hacked'), undefined)
    await assertAccessible(page)
  })
})
