// node_modules/.bin/node scripts/pictures.mjs [FOLDER [NAME …]]: takes the pictures of docs/images anew, from a service with made-up usage.
// With a folder, it takes every page of both consoles instead, or those that are named, as "member-keys": wide and narrow, light and dark.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openStoreHere } from '../src/store/open.ts'
import { openBrowser } from '../test/support/browser.ts'
import { sampleRow } from '../test/support/ledger-samples.ts'
import { chatLine, sdkOf, submit } from '../test/support/batches.ts'
import { scriptedEngine } from '../test/support/scripted-engine.ts'
import { modelEntry, startWeir } from '../test/support/weir.ts'
import { root } from './bootstrap.mjs'
import { ensureConsole } from './build-console.mjs'

const DAY_MS = 86_400_000
const DAYS = 35
const ROWS = 9000
const WIDE = { width: 1280, height: 860 }
const NARROW = { width: 390, height: 844 }

const limits = { token_budget: 65_536, max_concurrent_requests: 16, max_queue_depth: 64, max_wait_ms: 60_000 }
const models = [
  ['meta/llama-3.3-70b-instruct', 'Llama 3.3 70B', { input_per_million: '0.90', output_per_million: '0.90' }],
  ['qwen/qwen3-32b', 'Qwen3 32B', { input_per_million: '0.35', output_per_million: '0.70' }],
  ['mistralai/mistral-small-24b', 'Mistral Small 24B', { input_per_million: '0.15', output_per_million: '0.45' }],
  ['google/gemma-3-12b-it', 'Gemma 3 12B', { input_per_million: '0.08', output_per_million: '0.16' }],
]
const workspaces = ['acme', 'harbour-studio', 'northwind', 'kookaburra-labs']
const keyNames = ['website', 'support bot', 'nightly batch']

/** Name in docs/images, whose console, which page. */
const best = [
  ['console-start', 'member', 'start'],
  ['console-overview', 'member', 'overview'],
  ['console-models', 'member', 'models'],
  ['console-usage', 'member', 'usage'],
  ['console-request', 'member', 'request'],
  ['console-queues', 'operator', 'queues'],
  ['operator-overview', 'operator', 'overview'],
]

const ANSWER = `Race it against a timer, and **always** clear the timer:

\`\`\`ts
async function withLimit<T>(work: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error('too late')), ms)
  return Promise.race([work, late.promise]).finally(() => clearTimeout(timer))
}
\`\`\`

| Approach | Stops the work |
| --- | --- |
| A race | no |
| An \`AbortSignal\` | yes |

1. Use a signal if the work takes one.
2. Otherwise, use the race.
`

ensureConsole()
const engine = await scriptedEngine()
const weir = await startWeir({
  rate_limit: { requests_per_minute: 6000, unauthenticated_per_minute: 1000 },
  seller: { name: 'Example Pty Ltd', abn: '51 824 753 556', address: '1 Lock Street, Sydney NSW 2000' },
  models: models.map(([id, name, pricing]) =>
    modelEntry([engine.url], {
      id,
      name,
      pricing,
      aliases: [],
      serverless: { engine: { kind: 'openai', urls: [engine.url], model: id }, limits },
    }),
  ),
})
const browser = await openBrowser()
try {
  const pages = pagesOf(await use())
  const [, , folder, ...names] = process.argv
  if (folder === undefined) await takeBest(pages)
  else await takeAll(pages, folder, names)
} finally {
  await browser.close()
  await weir.stop()
  await engine.close()
}

/** Workspaces, keys, and five weeks of requests: more on weekdays and by day, few of them failed. */
async function use() {
  for (const name of workspaces) {
    await weir.admin('POST', '/admin/v1/workspaces', { name })
    for (const key of keyNames) await weir.admin('POST', '/admin/v1/keys', { workspace: name, name: key })
  }
  for (const name of keyNames) await weir.admin('POST', '/admin/v1/keys', { workspace: 'default', name })
  await weir.admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: '250.00' })
  const store = await openStoreHere({ dataDir: weir.dataDir, exclusive: false })
  const owners = await store.workspaces()
  const keys = await store.keys({ limit: 100 })
  const now = Date.now()
  const current = await store.priceVersions()
  const earlier = models.map(([id]) => {
    const list = current.find(({ model }) => model === id)
    return { ...list, effectiveFrom: now - 2 * DAYS * DAY_MS, latest: list.id }
  })
  const prices = new Map((await store.addPriceVersions(earlier)).map((version, index) => [models[index][0], version]))
  const rows = Array.from({ length: ROWS }, (_, index) => rowOf(index, now, owners, keys, prices))
  for (let from = 0; from < ROWS; from += 3000) await store.addRows(rows.slice(from, from + 3000))
  await store.close()
  engine.script = { tokens: ['Water ', 'flows ', 'over ', 'the ', 'weir.'], promptTokens: 420 }
  for (let count = 0; count < 6; count++) await (await weir.chat({ model: models[count % 4][0] })).text()
  for (const body of [{ temperature: 9 }, { model: 'none/such' }])
    await (await weir.chat({ model: models[0][0], ...body })).text()
  const found = rows.findLast(
    (it) => it.workspaceId === owners[0]?.id && it.outcome === 'completed' && it.queueWaitMs > 0,
  )
  const issued = await weir.admin('POST', '/admin/v1/invoices', { workspace: 'default', period: monthBefore(now) })
  const answer = await issued.json()
  if (answer.number === undefined) throw new Error(JSON.stringify(answer))
  return { requestId: found.requestId, model: models[0][0], invoice: answer.number, batch: await submitBatch() }
}

function monthBefore(now) {
  return new Date(now - new Date(now).getUTCDate() * DAY_MS).toISOString().slice(0, 7)
}

async function submitBatch() {
  const client = sdkOf(weir)
  const lines = Array.from({ length: 12 }, (_, index) => chatLine(index + 1, { model: models[0][0] }))
  return (await submit(client, lines)).id
}

function press(name) {
  return (page) => page.getByRole('button', { name, exact: true }).first().click()
}

/** Asks these models a question. */
function chatWith(names) {
  return async (page) => {
    for (const [index, name] of names.entries()) {
      if (index > 0) await page.getByRole('button', { name: 'Compare' }).click()
      await page.locator('.model-choice select').nth(index).selectOption({ label: name })
    }
    engine.script = { tokens: ANSWER.split(/(?<= )/), reasoning: ['A short example is enough.'], promptTokens: 42 }
    await page.getByLabel('Message').fill('How do I wait for a promise with a time limit?')
    await page.keyboard.press('Enter')
  }
}

function rowOf(index, now, owners, keys, prices) {
  const settledAt = now - Math.floor(((ROWS - index) / ROWS) * DAYS * DAY_MS)
  const draw = (index * 7907) % 1000
  const owner = owners[draw < 600 ? 0 : draw % owners.length]
  const own = keys.filter(({ workspaceId }) => workspaceId === owner.id)
  const [model, , pricing] = models[draw % 10 < 5 ? 0 : draw % 10 < 8 ? 1 : draw % 4]
  const wave = 1 + Math.sin((settledAt / DAY_MS) * 2 * Math.PI) * 0.4 + Math.sin(index / 700) * 0.3
  const outputTokens = Math.round(240 * wave + (draw % 90))
  const inputTokens = Math.round(7600 * wave)
  // A$1 for a million tokens is a million pico-AUD for one.
  const amount = inputTokens * pricing.input_per_million + outputTokens * pricing.output_per_million
  const durationMs = Math.round(500 + outputTokens * (12 + (draw % 7)))
  const failed = draw % 61 === 0 ? { outcome: 'engine_failed', httpStatus: 502, errorCode: 'upstream_error' } : {}
  return sampleRow(`0mgx${settledAt.toString(36)}${String(index).padStart(20, '0')}`, {
    workspaceId: owner.id,
    keyId: own[draw % own.length]?.id ?? 'key_1',
    model,
    lane: model,
    priceVersion: prices.get(model),
    startedAt: settledAt - durationMs,
    settledAt,
    inputTokens,
    cachedInputTokens: Math.round(2800 * wave),
    outputTokens,
    maxTokens: 2048,
    amount: BigInt(Math.round(amount * 1e6)),
    queueWaitMs: index % 9 === 0 ? Math.round(420 * wave) : 0,
    firstTokenMs: Math.round(120 + 90 * wave),
    durationMs,
    ...failed,
  })
}

/** Each with what has to be shown before the picture is taken. */
function pagesOf({ requestId, model, batch, invoice }) {
  return {
    member: {
      overview: ['', 'Newest requests'],
      start: ['/start', 'Take the code with you'],
      playground: ['/playground', 'Send'],
      chat: ['/playground', 'Cost', chatWith(['Qwen3 32B'])],
      compare: ['/playground', 'Cost', chatWith(['Qwen3 32B', 'Gemma 3 12B'])],
      settings: ['/playground', 'Top p', press('Settings')],
      code: ['/playground', 'curl', press('Show code')],
      palette: [
        '/usage',
        'Gemma',
        async (page) => {
          await page.keyboard.press('Control+k')
          await page.keyboard.type('ge')
        },
      ],
      'new-key': ['/keys', 'What is it for?', press('Create a key')],
      batches: ['/batches', 'Batches'],
      batch: [`/batches/${batch}`, 'completed'],
      docs: ['/docs', 'Chat'],
      'no-such-request': ['/requests/none', 'none'],
      models: ['/models', 'Llama 3.3 70B'],
      model: [`/models/${model}`, 'Speed'],
      keys: ['/keys', 'website'],
      usage: ['/usage', 'Refused requests'],
      requests: ['/requests', 'Refused requests'],
      request: [`/requests/${requestId}`, 'Timeline'],
      invoices: ['/invoices', 'Invoices'],
      invoice: [`/invoices/${invoice}`, invoice],
      sessions: ['/sessions', 'Sessions'],
    },
    operator: {
      overview: ['', 'Live requests'],
      requests: ['/requests', 'Refused requests'],
      queues: ['/queues', model],
      queue: [`/queues/${model}`, model],
      engines: ['/engines', model],
      model: [`/models/${model}`, 'Speed'],
      catalog: ['/catalog', 'Catalog'],
      'local-models': ['/models', 'Models'],
      workspaces: ['/workspaces', 'acme'],
      workspace: ['/workspaces/default', 'default'],
      keys: ['/keys', 'website'],
      usage: ['/usage', 'Usage'],
      invoices: ['/invoices', 'Invoices'],
      'new-key': ['/keys', 'What is it for?', press('Create a key')],
      batches: ['/batches', 'Batches'],
      invoice: [`/invoices/${invoice}`, invoice],
      drafts: ['/invoices/drafts', 'Drafts'],
      reconcile: ['/reconcile', 'Reconcile'],
      replicas: ['/replicas', 'Replicas'],
      alerts: ['/alerts', 'Alerts'],
      sessions: ['/sessions', 'Sessions'],
      audit: ['/audit', 'Audit'],
    },
  }
}

async function takeBest(pages) {
  for (const [name, who, which] of best) {
    const page = await signedIn(who, { viewport: WIDE })
    await show(page, who, pages[who][which])
    await page.screenshot({ path: join(root, 'docs', 'images', `${name}.png`) })
    await page.context().close()
  }
  const page = await browser.newPage({ viewport: WIDE, reducedMotion: 'reduce' })
  await page.goto(`${weir.service.url}/docs`)
  await page.locator('h1').first().waitFor()
  await page.screenshot({ path: join(root, 'docs', 'images', 'docs-page.png') })
}

async function takeAll(pages, folder, names) {
  mkdirSync(folder, { recursive: true })
  for (const who of ['member', 'operator']) {
    const places = Object.entries(pages[who]).filter(([name]) => names.length === 0 || names.includes(`${who}-${name}`))
    for (const [size, viewport] of places.length === 0 ? [] : Object.entries({ wide: WIDE, narrow: NARROW })) {
      for (const colorScheme of ['light', 'dark']) {
        const page = await signedIn(who, { viewport, colorScheme })
        for (const [name, place] of places) {
          try {
            await show(page, who, place)
          } catch (error) {
            console.error(`${who} ${name}: ${error.message.split('\n')[0]}`)
          }
          await page.screenshot({
            path: join(folder, `${who}-${name}-${size}-${colorScheme}.png`),
            fullPage: place[0] !== '/docs',
          })
        }
        await page.context().close()
      }
    }
  }
}

async function signedIn(who, options) {
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options })
  const data = who === 'member' ? { key: weir.key } : { token: weir.operatorToken }
  await context.request.post(`${addressOf(who)}/console/api/session`, { data, headers: { 'x-weir-console': '1' } })
  return context.newPage()
}

function addressOf(who) {
  return who === 'member' ? weir.service.url : weir.adminUrl
}

async function show(page, who, [path, text, act]) {
  await page.goto(`${addressOf(who)}${path.startsWith('/docs') ? '' : '/console'}${path}`)
  await page.locator('h1').first().waitFor()
  await act?.(page)
  await page.getByText(text).filter({ visible: true }).first().waitFor({ timeout: 15_000 })
  await page.locator('.skeleton').first().waitFor({ state: 'detached', timeout: 15_000 })
}
