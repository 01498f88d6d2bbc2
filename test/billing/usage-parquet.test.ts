import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import { formatAud } from '../../src/shared/money/money.ts'
import { sydneyDate } from '../../src/shared/money/sydney-time.ts'
import { exportColumns } from '../../src/billing/usage/usage-export.ts'
import { writeParquet } from '../../src/billing/usage/usage-parquet.ts'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import { testBooks, type TestBooks } from '../support/books.ts'

const AT = Date.UTC(2026, 10, 15, 1, 2, 3, 456)
/** The largest amount that the ledger can hold. A float would round it. */
const HUGE = 2n ** 63n - 1n
let books: TestBooks
let acme: Workspace

before(async () => {
  books = await testBooks(AT)
  acme = await books.workspace('acme')
  const version = await books.price('meta/a', { input_per_million: '0.20' }, AT)
  const plain = await books.row(acme, 'meta/a', version, AT, { inputTokens: 3, cachedInputTokens: 1 })
  const huge = await books.row(acme, 'meta/a', version, AT + 1, { audioMs: 86_400_000 })
  const capacity = await books.row(acme, 'meta/a', version, AT + 2, {})
  await books.settle([
    { ...plain, firstTokenMs: 12, estimated: true, outcome: 'engine_broke', errorCode: 'upstream_error' },
    { ...huge, amount: HUGE, model: 'meta/größe, "quoted"' },
    { ...capacity, capacityMs: 3_600_000 },
  ])
  await books.invoicing.correct(plain.requestId, 'Twice by mistake.')
})
after(() => books.close())

async function exported(workspace: Workspace): Promise<string> {
  const file = join(books.dataDir, `${workspace.name}.parquet`)
  await writeParquet(books.store, { workspaceId: workspace.id, from: 0, to: Infinity, limit: 0 }, file)
  return file
}

const ledger = (workspace: Workspace): Promise<readonly LedgerRow[]> =>
  books.store.usage({ workspaceId: workspace.id, from: 0, to: Infinity, limit: 100_000 })

describe('the ledger as Parquet', () => {
  it('has every row and column of the ledger, with exact amounts and times to the millisecond', async () => {
    const rows = await ledger(acme)
    const read = await parquetReadObjects({ file: await asyncBufferFromFile(await exported(acme)) })
    assert.deepEqual(
      read,
      rows.map((row) => ({
        request_id: row.requestId,
        started: new Date(row.startedAt),
        settled: new Date(row.settledAt),
        model: row.model,
        endpoint: row.endpoint,
        lane: row.lane,
        key_id: row.keyId,
        outcome: row.outcome,
        estimated: row.estimated,
        input_tokens: BigInt(row.inputTokens),
        cached_input_tokens: BigInt(row.cachedInputTokens),
        output_tokens: BigInt(row.outputTokens),
        images: BigInt(row.images),
        audio_ms: BigInt(row.audioMs),
        capacity_ms: row.capacityMs === undefined ? null : BigInt(row.capacityMs),
        date_sydney: sydneyDate(row.settledAt),
        amount_aud: formatAud(row.amount),
        amount_pico_aud: row.amount,
        price_version: BigInt(row.priceVersion),
        max_tokens: BigInt(row.maxTokens),
        queue_wait_ms: BigInt(row.queueWaitMs),
        first_token_ms: row.firstTokenMs === null ? null : BigInt(row.firstTokenMs),
        duration_ms: BigInt(row.durationMs),
        corrects: row.correction?.of ?? null,
        credit_note: row.correction?.creditNote || null,
        reason: row.correction?.reason ?? null,
        http_status: row.httpStatus === null ? null : BigInt(row.httpStatus),
        error_code: row.errorCode,
        service_tier: row.tier,
      })),
    )
    assert.ok(rows.some(({ amount }) => amount === HUGE))
    assert.ok(rows.some(({ amount }) => amount < 0n))
    assert.ok(rows.some(({ errorCode }) => errorCode === 'upstream_error'))
    assert.ok(rows.some(({ httpStatus }) => httpStatus === null))
  })

  it('stores money as 64-bit integers, never as floats', async () => {
    const { schema } = await parquetMetadataAsync(await asyncBufferFromFile(await exported(acme)))
    const [, ...columns] = schema
    assert.deepEqual(
      columns.map(({ name }) => name),
      [...exportColumns],
    )
    assert.equal(columns.find(({ name }) => name === 'amount_pico_aud')?.type, 'INT64')
    assert.ok(columns.every(({ type }) => type !== 'FLOAT' && type !== 'DOUBLE'))
  })

  it('has every row once and in order, across pages and row groups', async () => {
    const many = await books.workspace('many')
    const first = await books.row(many, 'meta/a', 1, AT, { inputTokens: 7 })
    const rows = Array.from({ length: 20_001 }, (_, index) => ({
      ...first,
      requestId: `many-${String(index).padStart(6, '0')}`,
      amount: BigInt(index),
    }))
    await books.settle(rows)
    const file = await asyncBufferFromFile(await exported(many))
    assert.equal((await parquetMetadataAsync(file)).row_groups.length, 2)
    const read = await parquetReadObjects({ file, columns: ['request_id', 'amount_pico_aud'] })
    assert.deepEqual(
      read.map((row) => [row['request_id'], row['amount_pico_aud']]),
      rows.map(({ requestId, amount }) => [requestId, amount]),
    )
  })

  it('has the columns but no rows when nothing was used', async () => {
    const idle = await books.workspace('idle')
    const { num_rows: rows, schema } = await parquetMetadataAsync(await asyncBufferFromFile(await exported(idle)))
    assert.deepEqual([rows, schema.length], [0n, exportColumns.length + 1])
  })
})
