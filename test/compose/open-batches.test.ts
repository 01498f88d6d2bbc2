import assert from 'node:assert/strict'
import { syncBuiltinESMExports } from 'node:module'
import { describe, it, type TestContext } from 'node:test'
import { Readable } from 'node:stream'
import type { Batch, BatchStore, WrittenResult } from '../../src/batches/batch-store.ts'
import type { Bookkeeping } from '../../src/bookkeeping.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import { callerOfBatch, isDelivered, openBatchRunner } from '../../src/compose/open-batches.ts'
import type { Start } from '../../src/compose/start.ts'
import { byteBudget } from '../../src/shared/byte-budget.ts'
import { ApiError } from '../../src/shared/errors.ts'
import type { ApiKey, Workspace } from '../../src/workspaces/workspace.ts'
import { chatLine } from '../support/batch-lines.ts'
import { handClock, turn } from '../support/hand-clock.ts'

/** What the runner of batches is wired to. The store is scripted, and a test advances the clock. */

interface Seen {
  freed: number
  refused: number
  readonly results: WrittenResult[]
  readonly asked: unknown[]
}

describe('the runner of batches', () => {
  const line = Buffer.from(JSON.stringify(chatLine('a')))
  const range = { batchId: 'batch_1', firstLine: 1, lines: 1, byteStart: 0, byteEnd: line.length, claims: 1 }
  const running = { id: 'batch_1', workspaceId: 'ws', keyId: 'key', endpoint: '/v1/chat/completions' } as Batch

  /** Runs a line whose model is refused with this error. */
  async function run(
    t: TestContext,
    error: ApiError,
    isDone: (seen: Seen) => boolean,
    journal?: { readonly owner: string },
  ) {
    const clock = handClock(t.mock.timers)
    // Pauses are timers of node:timers/promises.
    syncBuiltinESMExports()
    t.after(() => {
      t.mock.timers.reset()
      syncBuiltinESMExports()
    })
    const opened = new AsyncDisposableStack()
    const seen: Seen = { freed: 0, refused: 0, results: [], asked: [] }
    const free = [range]
    const store: Partial<BatchStore> = {
      freeClaims: async () => void seen.freed++,
      claimBatch: async () => undefined,
      forgetBatches: async (before) => assert.equal(before, clock.now() - 2 * 86_400_000),
      runnableBatches: async () => free.map(() => running),
      async claimRange(_batch, maxInFlight) {
        seen.asked.push(['claim', maxInFlight])
        return free.pop()
      },
      results: async () => [],
      writeResults: async (results) => (seen.results.push(...results), results.map(() => true)),
      endRange: async () => void seen.asked.push('end'),
      releaseRange: async () => void seen.asked.push('release'),
    }
    const start = {
      clock,
      opened,
      config: { batches: { maxInFlight: 8, maxLines: 9, maxQueuedLines: 9, retentionDays: 2 }, maxBodyBytes: 1e6 },
      telemetry: { log: { warn: ({ reason }: { reason: string }) => void seen.asked.push(reason) } },
      settings: {},
    } as unknown as Start
    openBatchRunner(start, {
      store,
      readStore: { usageRows: async () => [] },
      journal: journal as Bookkeeping['journal'],
      accounts: {
        key: async () => ({ hash: 'hash' }),
        callerOf: async () => ({ workspace: { id: 'ws' }, keyId: 'key' }),
      },
      changes: memoryChanges(),
      draining: { isOn: () => false, leftMs: () => 0 },
      catalog: {
        find: () => undefined,
        resolve() {
          seen.refused++
          throw error
        },
      },
      images: {},
      files: undefined,
      pipeline: assert.fail,
      memory: byteBudget(1e6),
      prices: { priceBatchLines: assert.fail },
      spool: {},
      batchFiles: { file: async () => ({}), read: async () => Readable.from([line]) },
    } as never)
    clock.advance(0)
    while (!isDone(seen)) await turn()
    return { seen, opened }
  }

  it(
    'writes results under the name of its journal, and frees what an earlier process had claimed if it has none',
    { timeout: 10_000 },
    async (t) => {
      const error = new ApiError('model_not_found', 'no such model')
      for (const [journal, owner, freed] of [
        [undefined, '', 1],
        [{ owner: 'b' }, 'b', 0],
      ] as const) {
        const { seen, opened } = await run(t, error, (it) => it.asked.includes('end'), journal)
        await opened.disposeAsync()
        assert.deepEqual(
          seen.results.map((it) => [it.owner, it.state, it.errorCode]),
          [[owner, 'failed', error.code]],
        )
        assert.deepEqual([seen.freed, seen.asked], [freed, [['claim', 8], 'end']])
        t.mock.timers.reset()
      }
    },
  )

  it(
    'does not wait for a line that would be tried again later when the service stops',
    { timeout: 10_000 },
    async (t) => {
      const { seen, opened } = await run(t, new ApiError('service_unavailable', 'busy'), (it) => it.refused > 0)
      await opened.disposeAsync()
      assert.deepEqual([seen.results, seen.asked.at(-1)], [[], 'release'])
    },
  )
})

describe('a batch', () => {
  it('runs as the key that created it, or as its workspace, if that was no key', async () => {
    const workspace = { id: 'ws' } as Workspace
    const byKey = { workspace, keyId: 'key' }
    const accounts = {
      key: async (id: string) => (id === 'key' ? ({ hash: 'hash' } as ApiKey) : undefined),
      callerOf: async (hash: string) => (hash === 'hash' ? byKey : undefined),
      workspaceById: (id: string) => (id === 'ws' ? workspace : undefined),
    }
    assert.equal(await callerOfBatch(accounts, { keyId: 'key', workspaceId: 'gone' }), byKey)
    assert.deepEqual(await callerOfBatch(accounts, { keyId: 'person', workspaceId: 'ws' }), {
      workspace,
      keyId: 'person',
    })
    assert.equal(await callerOfBatch(accounts, { keyId: 'person', workspaceId: 'gone' }), undefined)
    const revoked = { ...accounts, callerOf: async () => undefined }
    assert.equal(await callerOfBatch(revoked, { keyId: 'key', workspaceId: 'ws' }), undefined)
  })

  it('finds the rows of its own process in the ledger, those of the process before it, and without a journal all', () => {
    const journal = { owner: 'b', predecessor: 'a' }
    assert.deepEqual(
      ['a', 'b', 'c'].map((owner) => isDelivered(journal, owner)),
      [true, true, false],
    )
    assert.equal(isDelivered(undefined, 'c'), true)
  })
})
