import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { stringify } from 'yaml'
import { webhooks } from '../../src/alerts/commands/webhooks.ts'
import { commandActor, type Command } from '../../src/cli/command.ts'
import { invoice } from '../../src/billing/invoices/commands/invoice.ts'
import { keys } from '../../src/workspaces/keys/commands/keys.ts'
import { simulate } from '../../src/queue/commands/simulate.ts'
import { prices } from '../../src/billing/prices/commands/prices.ts'
import { reconcile } from '../../src/ledger/reconcile/commands/reconcile.ts'
import { sessions } from '../../src/workspaces/sessions/commands/sessions.ts'
import { usage } from '../../src/billing/usage/commands/usage.ts'
import { workspaces } from '../../src/workspaces/commands/workspaces.ts'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { testBooks, type TestBooks } from './books.ts'
import { printed, type Printed } from './printed.ts'
import { modelEntry } from './weir.ts'

const commands: Readonly<Record<string, Command>> = {
  invoice,
  keys,
  prices,
  reconcile,
  sessions,
  simulate,
  usage,
  webhooks,
  workspaces,
}
/** 15 March 2025, 12:30 in Sydney. */
export const MARCH = Date.UTC(2025, 2, 15, 1, 30)
export const SLUG = 'meta/test-8b'

/** Commands that run in this process, on books of their own. */
export interface BooksStage {
  readonly books: TestBooks
  readonly dataDir: string
  /** The file of the configuration. */
  readonly config: string
  /** The words of a line; a part in double quotes is one word. */
  run(line: string): Promise<Printed>
  /** What a command that succeeds prints, with ids and today's times made the same. */
  shown(line: string): Promise<string>
  /** How a command fails that prints nothing. */
  failed(line: string): Promise<readonly unknown[]>
  /** The newest entries of the audit log, the oldest of them first. */
  audit(limit: number): Promise<readonly unknown[]>
}

/** `more`: settings of weir.yaml besides the seller and the models. */
export async function booksStage(t: TestContext, more: object = {}): Promise<BooksStage> {
  const books = await testBooks(MARCH)
  t.after(() => books.close())
  const { dataDir } = books
  const config = join(dataDir, 'weir.yaml')
  const seller = { name: 'Weir Example', abn: '51 824 753 556', public_url: 'https://api.example.com' }
  const images = modelEntry(['http://127.0.0.1:9/v1'], {
    id: 'sd/images',
    aliases: [],
    categories: ['image'],
    supported_parameters: ['size', 'quality'],
    pricing: { per_image: '0.04' },
  })
  writeFileSync(config, stringify({ seller, models: [modelEntry(['http://127.0.0.1:9/v1']), images], ...more }))
  const run: BooksStage['run'] = (line) => {
    const [name = '', ...args] = Array.from(line.matchAll(/"([^"]*)"|\S+/g), ([word, quoted]) => quoted ?? word)
    const command = commands[name]
    assert.ok(command)
    return printed(command, ...args, '--config', config, '--data', dataDir)
  }
  return {
    books,
    dataDir,
    config,
    run,
    async shown(line) {
      const { stdout, stderr, failure } = await run(line)
      assert.equal(failure, undefined)
      assert.equal(stderr, '')
      assert.ok(stdout.endsWith('\n'))
      return sameIds(stdout.slice(0, -1))
    },
    async failed(line) {
      const { stdout, failure } = await run(line)
      assert.equal(stdout, '')
      return [failure?.constructor, failure?.message]
    },
    async audit(limit) {
      const entries = (await books.store.auditLog({ limit })).toReversed()
      assert.ok(entries.every(({ actor, requestId }) => actor === commandActor() && requestId === ''))
      return entries.map(({ action, subject, request, outcome }) => [
        action,
        subject,
        request === null ? null : (JSON.parse(request) as unknown),
        outcome,
      ])
    },
  }
}

function sameIds(text: string): string {
  return text
    .replaceAll(/\b(ws|key)_[0-9a-f]{24}/g, '$1_ID')
    .replaceAll(/weir_\w+/g, 'weir_KEY')
    .replaceAll(/20(2[6-9]|[3-8]\d)-\d\d-\d\d( \d\d:\d\d)?/g, 'TODAY')
}

export const price = (books: TestBooks, model = SLUG): Promise<number> =>
  books.price(model, { input_per_million: '0.20', output_per_million: '0.60' }, MARCH - 1000)

/** A workspace with three rows on two days. */
export async function stageWithRows(t: TestContext): Promise<BooksStage & { readonly rows: readonly LedgerRow[] }> {
  const made = await booksStage(t)
  const { books } = made
  const acme = await books.workspace('acme')
  const version = await price(books)
  const failed = { outcome: 'engine_failed', httpStatus: 502, errorCode: 'upstream_error', estimated: true } as const
  const rows: LedgerRow[] = [
    await books.row(acme, SLUG, version, MARCH, { inputTokens: 1_000_000, outputTokens: 500_000 }),
    { ...(await books.row(acme, SLUG, version, MARCH + 1000, { inputTokens: 70_000 })), ...failed },
    { ...(await books.row(acme, SLUG, version, MARCH + 86_400_000, { outputTokens: 2_000_000 })), queueWaitMs: 5 },
  ]
  await books.settle(rows)
  return { ...made, rows }
}
