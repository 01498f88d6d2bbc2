import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { stringify } from 'yaml'
import { capacityRows } from '../../src/billing/invoices/capacity.ts'
import { memorySpending } from '../../src/workspaces/spend-limits/memory.ts'
import { startService } from '../../src/compose.ts'
import { loadConfig } from '../../src/config.ts'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import { clockDoubt } from '../../src/ledger/clock-doubt.ts'
import type { PriceVersion, Workspace } from '../../src/workspaces/workspace.ts'
import { reconcileLedger } from '../../src/ledger/reconcile/reconcile.ts'
import { openStore } from '../../src/store/open.ts'
import { stageConfig } from '../support/chat-stage.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'

const HOUR_MS = 3_600_000
const YEAR_MS = 365 * 24 * HOUR_MS

/** Starts on one data directory with a clock that is off, again and again. */
async function stage(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-clock-'))
  const engine = await scriptedEngine()
  t.after(async () => {
    await engine.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const realNow = Date.now
  let offset = 0
  t.mock.method(Date, 'now', () => realNow() + offset)
  const dataDir = join(folder, 'data')
  let key = ''
  return {
    async serve(offsetMs: number, inputPrice: string): Promise<void> {
      offset = offsetMs
      const config = join(folder, 'weir.yaml')
      const model = { pricing: { input_per_million: inputPrice, output_per_million: '0.60' } }
      writeFileSync(config, stringify({ ...stageConfig([engine.url], { model }), log: { level: 'silent' } }))
      const service = await startService(loadConfig({ config, data: dataDir }, {}))
      try {
        key = service.firstKey ?? key
        const response = await fetch(`${service.url}/api/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'meta/test-8b', messages: [{ role: 'user', content: 'Hi' }] }),
        })
        assert.equal(response.status, 200, await response.text())
      } finally {
        await service.stop()
      }
    },
    async proof() {
      const store = await openStore({ dataDir, exclusive: false })
      try {
        const { rows, problems } = await reconcileLedger(store)
        return { rows, problems }
      } finally {
        await store.close()
      }
    },
  }
}

describe('a start with a wrong clock', () => {
  it('an hour back works, and the ledger reconciles then and later', async (t) => {
    const { serve, proof } = await stage(t)
    await serve(0, '0.20')
    await serve(-HOUR_MS, '0.20')
    assert.deepEqual(await proof(), { rows: 2, problems: [] })
    await serve(0, '0.20')
    assert.deepEqual(await proof(), { rows: 3, problems: [] })
  })

  it('a year ahead works, and the ledger reconciles when the clock is set back', async (t) => {
    const { serve, proof } = await stage(t)
    await serve(0, '0.20')
    await serve(YEAR_MS, '0.30')
    assert.deepEqual(await proof(), { rows: 2, problems: [] })
    await serve(0, '0.30')
    assert.deepEqual(await proof(), { rows: 3, problems: [] })
    await serve(0, '0.40')
    assert.deepEqual(await proof(), { rows: 4, problems: [] })
  })

  it('is detected by the last row of the ledger', () => {
    const last = Date.parse('2026-11-15T00:00:00Z')
    assert.equal(clockDoubt(last, undefined), undefined)
    for (const ms of [-30_000, 0, HOUR_MS, 30 * 24 * HOUR_MS]) assert.equal(clockDoubt(last + ms, last), undefined)
    assert.match(
      clockDoubt(last - HOUR_MS, last) ?? '',
      /behind the last row .*2026-11-15T00:00:00.000Z: check the clock/,
    )
    assert.match(clockDoubt(last + YEAR_MS, last) ?? '', /more than 60 days old .*check the clock before you issue/)
  })
})

describe('a clock that is corrected while the service runs', () => {
  const workspace: Workspace = {
    id: 'ws',
    name: 'acme',
    requestsPerMinute: null,
    tokensPerMinute: null,
    createdAt: 0,
    spendLimit: { amount: 100n, isSoft: false },
    buyer: { name: null, abn: null, address: null, purchaseOrder: null, email: null },
  }

  it('does not give a workspace its spend limit a second time', async () => {
    const november = parseMonth('2026-11')!
    const spentIn = new Map([[november.from, 90n]])
    let now = november.from + HOUR_MS
    const usageSums = async ({ from }: { from: number }) => [{ group: 'ws', amount: spentIn.get(from) ?? 0n }]
    const spending = await memorySpending(
      { usageSums } as never,
      { now: () => now, monotonic: () => 0 },
      { limitReached() {} },
    )
    assert.equal(await spending.spent('ws'), 90n)
    now += YEAR_MS
    ;(await spending.hold(workspace, 50n)).settle(50n)
    assert.equal(await spending.spent('ws'), 50n)
    now -= YEAR_MS
    await assert.rejects(spending.hold(workspace, 50n), { code: 'spend_limit_exceeded' })
    assert.equal(await spending.spent('ws'), 90n)
    ;(await spending.hold(workspace, 10n)).settle(10n)
    assert.equal(await spending.spent('ws'), 100n)
  })

  it('bills each reserved hour once, although the times of its prices are out of order', () => {
    const month = parseMonth('2026-11')!
    const version = (id: number, perHour: string, effectiveFrom: number): PriceVersion => ({
      id,
      model: 'meta/test-8b@acme',
      workspaceId: null,
      prices: { per_hour: perHour },
      effectiveFrom,
    })
    const changed = month.from + 10 * HOUR_MS
    const prices = [version(1, '1', month.from), version(2, '2', changed + YEAR_MS), version(3, '2', changed)]
    const rows = capacityRows(prices, workspace, month, month.from + 30 * HOUR_MS)
    assert.deepEqual(
      rows.map(({ priceVersion, capacityMs }) => [priceVersion, capacityMs]),
      [
        [1, 10 * HOUR_MS],
        [3, 20 * HOUR_MS],
      ],
    )
  })
})
