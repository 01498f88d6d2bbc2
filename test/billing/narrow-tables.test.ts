import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { configText } from '../../src/operate/commands/config.ts'
import { invoice } from '../../src/billing/invoices/commands/invoice.ts'
import { modelsText } from '../../src/catalog/commands/models.ts'
import type { Paint } from '../../src/cli/terminal/view.ts'
import { cacheText } from '../../src/billing/usage/commands/usage-cache.ts'
import { refusedText } from '../../src/billing/usage/commands/usage-refused.ts'
import { plainView } from '../support/terminal.ts'
import { MARCH, stageWithRows } from '../support/books-stage.ts'
import { printedOnTerminal } from '../support/printed.ts'

const LONG = 'a-name-that-is-far-too-long-for-a-column-of-a-table'
const heading = (text: string): string => text.split('\n')[0] ?? ''
const widest = (text: string): number => Math.max(...text.split('\n').map((line) => line.length))

describe('on a narrow terminal', () => {
  it('weir usage refused truncates workspaces, endpoints and models', () => {
    const group = { workspaceId: 'w', keyId: 'key_1', code: 'invalid_value', requests: 1 } as const
    const refusal = {
      requestId: 'r',
      at: MARCH,
      workspaceId: 'w',
      keyId: 'key_1',
      endpoint: `/${LONG}`,
      model: LONG,
      code: 'invalid_value',
      httpStatus: 400,
      param: '',
      reason: '',
    } as const
    assert.equal(
      refusedText([group], [refusal], () => LONG, plainView(60)),
      `WORKSPACE             KEY    STATUS  CODE           REQUESTS
a-name-that-is-far-…  key_1  400     invalid_value         1

1 refused request. The newest:

TIME (SYDNEY)        CODE           ENDPOINT     MODEL
2025-03-15 12:30:00  invalid_value  /a-name-th…  a-name-tha…
  r

weir usage REQUEST_ID says why one was refused.`,
    )
  })

  it('weir usage cache truncates workspaces and models, and stacks columns only if it must', () => {
    const misses = { first_use: 0, prefix_changed: 0, evicted: 0, moved: 0 }
    const entry = { workspaceId: 'w', keyId: 'key_1', model: LONG, requests: 1, inputTokens: 3, cachedInputTokens: 1 }
    const shown = cacheText([{ workspace: LONG, entry: { ...entry, misses, latestChange: undefined } }], plainView(60))
    assert.equal(
      shown,
      `WORKSPACE         KEY    MODEL              REQUESTS  CACHED
a-name-that-is-…  key_1  a-name-that-is-f…         1    33 %`,
    )
  })

  it('weir config truncates values and places', () => {
    const settings = [{ key: 'data_dir', value: LONG, source: `${LONG}.yaml:3` }]
    const shown = configText({ file: null, service: null, problem: null, settings }, plainView(50))
    assert.deepEqual(shown.split('\n').slice(2), [
      'SETTING   VALUE                FROM',
      'data_dir  a-name-that-is-far…  a-name-that-is-far…',
    ])
  })

  it('weir models list shows states in colours', () => {
    const painted: [string, string][] = []
    const paint: Paint = (tone, text) => {
      if (tone !== 'bold') painted.push([tone, text])
      return text
    }
    const model = { name: '', aliases: [], categories: [], modes: [], endpoints: [], context_length: 1, engine: null }
    const states = ['ready', 'downloading', 'paused', 'failed', 'not downloaded', 'remote', 'no engine'] as const
    modelsText(
      states.map((state) => ({
        ...model,
        id: state,
        pricing: {},
        state,
        size_mb: null,
        received_bytes: null,
        problem: null,
      })),
      { paint, width: 100 },
    )
    assert.deepEqual(painted, [
      ['green', 'ready'],
      ['yellow', 'downloading'],
      ['yellow', 'paused'],
      ['red', 'failed'],
      ['yellow', 'not downloaded'],
      ['red', 'no engine'],
    ])
  })

  it('weir invoice truncates workspaces in a list, and descriptions on a document', async (t) => {
    const { books, config, dataDir } = await stageWithRows(t)
    const options = ['--config', config, '--data', dataDir]
    const shown = (...args: readonly string[]): Promise<string> => printedOnTerminal(64, invoice, ...args, ...options)
    const other = await books.workspace(LONG)
    const slug = `meta/${LONG}`
    const version = await books.price(slug, { input_per_million: '1' }, MARCH - 1000)
    await books.settle([await books.row(other, slug, version, MARCH, { inputTokens: 1_000_000 })])
    const drafts = await shown('drafts', '--period', '2025-03')
    assert.match(drafts, /\na-name\S*… +1 +0\.10 +A\$1\.10 +yes\n/)
    const document = await shown('issue', '--workspace', LONG, '--period', '2025-03')
    assert.match(document, /\nmeta\/a-name\S*… +1,000,000 +1\.00 \/ 1M tokens +1\.00\n/)
    const list = await printedOnTerminal(80, invoice, 'list', ...options)
    assert.match(list, /\nINV-000001 {2}a-name\S*… {2}2025-03 /)
    assert.match(heading(list), /^NUMBER +WORKSPACE +PERIOD +DUE +TOTAL +STATE +AMOUNT DUE$/)
    assert.ok(widest(list) <= 80, list)
  })
})
