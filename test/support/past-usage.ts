import type { LedgerRow } from '../../src/ledger/rows.ts'
import { openStoreHere } from '../../src/store/open.ts'
import { sampleRow } from './ledger-samples.ts'
import type { TestWeir } from './weir.ts'

const DAY_MS = 86_400_000
const models = ['meta/test-8b', 'meta/vision', 'baai/embed', 'art/images']

/** Rows of the first workspace, evenly over the days before now. The same figures every time. */
export async function addPastUsage(
  { dataDir }: TestWeir,
  { days, rows }: { days: number; rows: number },
): Promise<void> {
  const store = await openStoreHere({ dataDir, exclusive: false })
  try {
    const [workspace] = await store.workspaces()
    const keys = await store.keys({ limit: 100 })
    const now = Date.now()
    let batch: LedgerRow[] = []
    for (let index = 0; index < rows; index++) {
      const settledAt = now - Math.floor(((rows - index) / rows) * days * DAY_MS)
      const model = models[(index * 7) % 11 < 6 ? 0 : index % models.length] ?? 'meta/test-8b'
      const wave = 1 + Math.sin(index / 40) * 0.6
      const durationMs = Math.round(400 + wave * 900)
      batch.push(
        sampleRow(`${settledAt.toString(36).padStart(9, '0')}${rows}${String(index).padStart(12, '0')}`, {
          workspaceId: workspace?.id ?? '',
          keyId: keys[index % keys.length]?.id ?? 'key_1',
          model,
          lane: model,
          startedAt: settledAt - durationMs,
          settledAt,
          inputTokens: Math.round(600 * wave),
          cachedInputTokens: Math.round(200 * wave),
          outputTokens: Math.round(180 * wave),
          maxTokens: 1024,
          amount: BigInt(Math.round(2_000_000_000 * wave)),
          queueWaitMs: index % 9 === 0 ? Math.round(300 * wave) : 0,
          firstTokenMs: Math.round(90 + 80 * wave),
          durationMs,
          ...(index % 23 === 0
            ? { outcome: 'engine_failed' as const, httpStatus: 502, errorCode: 'upstream_error' as const }
            : {}),
        }),
      )
      if (batch.length < 5000 && index < rows - 1) continue
      await store.addRows(batch)
      batch = []
    }
  } finally {
    await store.close()
  }
}
