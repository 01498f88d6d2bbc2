import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Accounts } from '../../src/workspaces/accounts.ts'
import { cacheView, refusalView, refusedGroupView, usageQuery, usageView } from '../../src/billing/usage/views.ts'
import { endOf, periodOf } from '../../src/shared/period.ts'
import { keyView, workspaceView } from '../../src/workspaces/views.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { sampleRefusal } from '../support/refusal-samples.ts'

describe('what lists and reports show', () => {
  it('of a workspace is its limits, with the default rate, and its buyer', () => {
    const workspace = {
      id: 'ws_1',
      name: 'acme',
      requestsPerMinute: null,
      tokensPerMinute: null,
      createdAt: 1000,
      spendLimit: { amount: 5_000_000_000_000n, isSoft: false },
      buyer: { name: 'Acme', abn: '1', address: 'Sydney', purchaseOrder: '7', email: null },
    }
    const view = {
      id: 'ws_1',
      name: 'acme',
      requests_per_minute: 60,
      tokens_per_minute: null,
      spend_limit: '5.00',
      spend_limit_kind: 'hard',
      buyer: { name: 'Acme', abn: '1', address: 'Sydney', purchase_order: '7', email: null },
      created: '1970-01-01T00:00:01.000Z',
    }
    assert.deepEqual(workspaceView(workspace, 60), view)
    const soft = { ...workspace, requestsPerMinute: 7, spendLimit: { amount: 0n, isSoft: true } }
    assert.deepEqual(workspaceView(soft, 60), {
      ...view,
      requests_per_minute: 7,
      tokens_per_minute: null,
      spend_limit: '0.00',
      spend_limit_kind: 'soft',
    })
    const free = workspaceView({ ...workspace, spendLimit: null }, 60)
    assert.deepEqual([free.spend_limit, free.spend_limit_kind], [null, null])
  })

  it('of a key is its times, and never its hash', () => {
    const accounts = { workspace: (id: string) => ({ name: `name of ${id}` }) } as unknown as Accounts
    const times = { createdAt: 1, expiresAt: 2, revokedAt: 3 }
    const limits = {
      requestsPerMinute: 5,
      tokensPerMinute: null,
      manageKeys: true,
      spendPerDay: 5_000_000_000_000n,
      spendPerMonth: null,
      allowedModels: ['meta/x'],
      allowedEndpoints: ['/rerank'],
      allowedAddresses: ['10.0.0.0/8'],
    }
    const key = { id: 'key_1', workspaceId: 'ws_1', hash: 'h', ending: 'x7Qa', name: 'n', ...times, ...limits }
    assert.deepEqual(keyView(key, accounts, new Map([['key_1', 4]])), {
      id: 'key_1',
      redacted: 'weir_…x7Qa',
      workspace: 'name of ws_1',
      name: 'n',
      created: '1970-01-01T00:00:00.001Z',
      expires_at: '1970-01-01T00:00:00.002Z',
      last_used_at: '1970-01-01T00:00:00.004Z',
      revoked: '1970-01-01T00:00:00.003Z',
      requests_per_minute: 5,
      tokens_per_minute: null,
      manage_keys: true,
      spend_per_day: '5.00',
      spend_per_month: null,
      allowed_models: ['meta/x'],
      allowed_endpoints: ['/rerank'],
      allowed_addresses: ['10.0.0.0/8'],
    })
    const unused = keyView(
      { ...key, ending: null, expiresAt: null, revokedAt: null },
      accounts,
      new Map([['other', 4]]),
    )
    assert.deepEqual([unused.expires_at, unused.last_used_at, unused.revoked], [null, null, null])
    assert.equal(unused.redacted, 'weir_…', 'a key of an older version')
  })

  it('of a row is everything except its workspace, and fields of corrections, credits and capacity only if it has them', () => {
    const row = sampleRow('r', {
      inputTokens: 11,
      cachedInputTokens: 12,
      outputTokens: 13,
      images: 14,
      audioMs: 15,
      lane: 'meta/x@acme',
      tier: 'flex',
      estimated: true,
      queueWaitMs: 16,
      firstTokenMs: 17,
      durationMs: 18,
    })
    const view = {
      request_id: 'r',
      model: 'meta/x',
      lane: 'meta/x@acme',
      endpoint: '/chat/completions',
      service_tier: 'flex',
      key_id: 'key_1',
      max_tokens: 10,
      input_tokens: 11,
      cached_input_tokens: 12,
      output_tokens: 13,
      images: 14,
      audio_ms: 15,
      estimated: true,
      outcome: 'completed',
      http_status: 200,
      error_code: null,
      amount_pico_aud: '5',
      price_version: 1,
      queue_wait_ms: 16,
      first_token_ms: 17,
      duration_ms: 18,
      started: '1970-01-01T00:00:00.001Z',
      settled: '1970-01-01T00:00:00.003Z',
    }
    assert.deepEqual(usageView(row), view)
    assert.deepEqual(usageView({ ...row, capacityMs: 19 }), { ...view, capacity_ms: 19 })
    for (const [creditNote, shown] of [
      ['', null],
      ['ADJ-1', 'ADJ-1'],
    ] as const) {
      const correction = { of: 'q', reason: 'wrong', creditNote }
      const ofCorrection = { corrects: 'q', reason: 'wrong', credit_note: shown }
      assert.deepEqual(usageView({ ...row, correction }), { ...view, ...ofCorrection })
      const credit = { reason: 'goodwill', creditNote }
      assert.deepEqual(usageView({ ...row, credit }), { ...view, reason: 'goodwill', credit_note: shown })
    }
  })

  it('of a refused request is the reason, and its workspace for readers of several', () => {
    const refusal = sampleRefusal({ requestId: 'r', at: 1, param: 'model' })
    const { keyId, endpoint, model, httpStatus, code, reason } = refusal
    const view = {
      request_id: 'r',
      at: '1970-01-01T00:00:00.001Z',
      key_id: keyId,
      endpoint,
      model: model || null,
      http_status: httpStatus,
      error_code: code,
      param: 'model',
      reason,
    }
    assert.deepEqual(refusalView(refusal), view)
    const nameOf = (id: string): string => `name of ${id}`
    assert.deepEqual(refusalView(refusal, nameOf), { ...view, workspace: 'name of ws_1' })
    const bare = refusalView({ ...refusal, keyId: '', endpoint: '', model: '', param: '' })
    assert.deepEqual([bare.key_id, bare.endpoint, bare.model, bare.param], [null, null, null, null])
    const group = { workspaceId: 'ws_1', keyId: '', code: 'rate_limit_exceeded', requests: 3 } as const
    const ofGroup = { key_id: null, http_status: 429, error_code: 'rate_limit_exceeded', requests: 3 }
    assert.deepEqual(refusedGroupView(group), ofGroup)
    assert.deepEqual(refusedGroupView({ ...group, keyId: 'k' }, nameOf), {
      ...ofGroup,
      key_id: 'k',
      workspace: 'name of ws_1',
    })
  })

  it('of a cache is its share of the input, and the latest change', () => {
    const misses = { first_use: 1, prefix_changed: 2, evicted: 3, moved: 4 }
    const entry = {
      workspaceId: 'ws_1',
      keyId: 'key_1',
      model: 'a/b',
      requests: 2,
      inputTokens: 8,
      cachedInputTokens: 2,
    }
    const view = { key: 'key_1', model: 'a/b', requests: 2, input_tokens: 8, cached_input_tokens: 2 }
    assert.deepEqual(cacheView({ ...entry, misses, latestChange: undefined }), {
      ...view,
      cache_hit_rate: 0.25,
      misses,
      latest_change: null,
    })
    const latestChange = { at: 1, message: 3, afterCharacter: 5 }
    assert.deepEqual(cacheView({ ...entry, misses, latestChange }).latest_change, {
      at: '1970-01-01T00:00:00.001Z',
      message: 3,
      after_character: 5,
    })
  })
})

describe('a period', () => {
  const utc = (text: string): number => Date.parse(text)

  it('of dates begins at midnight in Sydney and has the whole last day', () => {
    assert.deepEqual(periodOf({ from: '2026-11-01', to: '2026-11-30' }), {
      from: utc('2026-10-31T13:00:00Z'),
      to: utc('2026-11-30T13:00:00Z'),
    })
    assert.equal(endOf('expires_at', '2026-11-15'), utc('2026-11-15T13:00:00Z'))
  })

  it('of times is taken literally, begins in 1970 at the earliest, and is open without an end', () => {
    assert.deepEqual(periodOf({ from: '2026-11-01T00:00:00+10:00', to: '2026-11-01T09:00:00Z' }), {
      from: utc('2026-10-31T14:00:00Z'),
      to: utc('2026-11-01T09:00:00Z'),
    })
    assert.equal(periodOf({ from: '1960-01-01' }).from, 0)
    assert.deepEqual(periodOf({}), { from: 0, to: Number.MAX_SAFE_INTEGER })
    assert.deepEqual(usageQuery('ws_1', { from: null, to: '' }, { model: 'a/b' }), {
      workspaceId: 'ws_1',
      from: 0,
      to: Number.MAX_SAFE_INTEGER,
      limit: 10_000,
      model: 'a/b',
    })
  })

  it('is refused with a day that does not exist, a time without an offset, or anything else', () => {
    for (const text of ['2026-02-30', '2026-13-01', '2026-11-15T09:00:00', '+012026-11-15T09:00:00Z', 'x', '2026']) {
      assert.throws(() => periodOf({ from: text }), { code: 'invalid_value', param: 'from' }, text)
      assert.throws(() => periodOf({ to: text }), { code: 'invalid_value', param: 'to' }, text)
    }
  })
})
