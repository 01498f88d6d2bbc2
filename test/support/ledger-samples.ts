import type { Intent, LedgerRow } from '../../src/ledger/rows.ts'
import { noUsage } from '../../src/billing/rating/rating.ts'

/** Intents and rows for tests that only care about some of their values. */

export function sampleIntent(requestId: string, changes: Partial<Intent> = {}): Intent {
  return {
    requestId,
    workspaceId: 'ws_1',
    keyId: 'key_1',
    model: 'meta/x',
    lane: 'meta/x',
    endpoint: '/chat/completions',
    priceVersion: 1,
    maxTokens: 10,
    startedAt: 1,
    tier: 'default',
    ...changes,
  }
}

export function sampleRow(requestId: string, changes: Partial<LedgerRow> = {}): LedgerRow {
  return {
    ...sampleIntent(requestId),
    ...noUsage,
    estimated: false,
    outcome: 'completed',
    httpStatus: 200,
    errorCode: null,
    amount: 5n,
    queueWaitMs: 0,
    firstTokenMs: 1,
    durationMs: 2,
    settledAt: 3,
    ...changes,
  }
}
