// node_modules/.bin/node scripts/pictures.mjs [FOLDER [NAME …]]: takes the pictures of docs/images anew, from a service with made-up usage.
// With a folder, it takes every page of both consoles instead, or those that are named, as "member-keys": wide and narrow, light and dark.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openStoreHere } from '../src/store/open.ts'
import { openBrowser } from '../test/support/browser.ts'
import { sampleRow } from '../test/support/ledger-samples.ts'
import { chatLine } from '../test/support/batch-lines.ts'
import { sdkOf, submit } from '../test/support/batches.ts'
import { scriptedEngine } from '../test/support/scripted-engine.ts'
import { modelEntry, startWeir } from '../test/support/weir.ts'
import { root } from './bootstrap.mjs'
import { ensureConsole } from './build-console.mjs'

const DAY_MS = 86_400_000
const DAYS = 35
const ROWS = 9000
const WIDE = { width: 1280, height: 860 }
const NARROW = { width: 390, height: 844 }

const limits = { token_budget: 65_536, max_concurrent_requests: 8, max_queue_depth: 64, max_wait_ms: 60_000 }
const models = [
  ['meta/llama-3.3-70b-instruct', 'Llama 3.3 70B', { input_per_million: '0.90', output_per_million: '0.90' }, 131_072],
  ['qwen/qwen3-32b', 'Qwen3 32B', { input_per_million: '0.35', output_per_million: '0.70' }, 40_960],
  [
    'mistralai/mistral-small-24b',
    'Mistral Small 24B',
    { input_per_million: '0.15', output_per_million: '0.45' },
    32_768,
  ],
  ['google/gemma-3-12b-it', 'Gemma 3 12B', { input_per_million: '0.08', output_per_million: '0.16' }, 65_536],
]
const CALLERS = 16
const workspaces = ['acme', 'harbour-studio', 'northwind', 'kookaburra-labs']
const keyNames = ['website', 'support bot', 'nightly batch']

/** Name in docs/images, whose console, which page. */
const best = [
  ['console-start', 'member', 'start'],
  ['console-overview', 'member', 'overview'],
  ['console-playground', 'member', 'compare'],
  ['console-usage', 'member', 'usage'],
  ['console-request', 'member', 'request'],
  ['console-queues', 'operator', 'queues'],
  ['operator-overview', 'operator', 'overview'],
]

const QUESTION = 'How do I wait for a promise with a time limit?'
const THOUGHT = 'A short example is enough.'
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
  models: models.map(([id, name, pricing, context]) =>
    modelEntry([engine.url], {
      id,
      name,
      pricing,
      context_length: context,
      aliases: [],
      serverless: { engine: { kind: 'openai', urls: [engine.url], model: id }, limits },
    }),
  ),
})
const browser = await openBrowser()
const callers = new AbortController()
try {
  const pages = pagesOf(await use())
  const [, , folder, ...names] = process.argv
  if (folder === undefined) await takeBest(pages)
  else await takeAll(pages, folder, names)
} finally {
  callers.abort()
  await browser.close()
  await weir.stop()
  await engine.close()
}

/** Workspaces, keys, and five weeks of requests: more on weekdays and by day, few of them failed. Then callers that go on. */
async function use() {
  const secrets = [weir.key]
  for (const workspace of ['default', ...workspaces]) {
    if (workspace !== 'default') await made('/admin/v1/workspaces', { name: workspace })
    for (const name of keyNames) secrets.push((await made('/admin/v1/keys', { workspace, name })).key)
  }
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
  for (const [key, body] of [
    [secrets[1], { temperature: 9 }],
    [secrets[1], { temperature: 3 }],
    [secrets[2], { model: 'none/such' }],
    [secrets[3], { max_tokens: 0 }],
  ])
    await (await weir.chat({ model: models[0][0], ...body }, { key })).text()
  const found = rows.findLast(
    (it) => it.workspaceId === owners[0]?.id && it.outcome === 'completed' && it.queueWaitMs > 0,
  )
  const period = monthBefore(now)
  const { number: invoice } = await made('/admin/v1/invoices', { workspace: 'default', period })
  const paid = await made('/admin/v1/invoices', { workspace: 'acme', period })
  await made(`/admin/v1/invoices/${paid.number}/payments`, {
    amount: paid.total,
    paid_on: new Date(now - DAY_MS).toISOString().slice(0, 10),
    reference: 'Transfer 4711',
  })
  engine.script = answerOf
  const batch = await submitBatch()
  for (let number = 0; number < CALLERS; number++)
    void callAgainAndAgain(secrets[(number * 5) % secrets.length], number)
  return { requestId: found.requestId, model: models[0][0], invoice, batch }
}

async function made(path, body) {
  const response = await weir.admin('POST', path, body)
  const answer = await response.json()
  if (!response.ok) throw new Error(JSON.stringify(answer))
  return answer
}

/** Some seconds for a request, so that most models are busy, and requests wait for the first one. */
function answerOf({ body: { messages } }) {
  if (messages.at(-1).content === QUESTION)
    return { tokens: ANSWER.split(/(?<= )/), reasoning: [THOUGHT], promptTokens: 42 }
  const length = messages.at(-1).content.length
  return {
    tokens: Array.from({ length: 20 + (length % 7) * 9 }, () => 'water '),
    tokenMs: 60,
    promptTokens: 6 * length,
  }
}

async function callAgainAndAgain(key, number) {
  for (let count = number; !callers.signal.aborted; count++) {
    const [model] = models[number % 3 === 2 ? 1 + (count % 3) : 0]
    const content = 'More of it. '.repeat(1 + (count % 9)) + '.'.repeat(number % 5)
    const body = { model, stream: true, max_tokens: 400, messages: [{ role: 'user', content }] }
    await weir
      .chat(body, { key, signal: callers.signal })
      .then((it) => it.text())
      .catch(() => {})
  }
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
    await page.getByLabel('Message').fill(QUESTION)
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
      usage: ['/usage', 'Cache hits'],
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
