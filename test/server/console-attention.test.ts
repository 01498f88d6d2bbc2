import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { attentionOf, type OperatorState } from '../../console/operator/attention.ts'

const address = {
  url: 'http://10.0.0.1/v1',
  up: true,
  drained: false,
  in_flight: 0,
  failures: 0,
  last_failure: null,
  cache_tokens: null,
}
const engine = {
  lane: 'meta/a',
  model: 'meta/a',
  mode: 'serverless',
  workspace: null,
  kind: 'vllm',
  addresses: [address],
  download: null,
} as const
const limits = { token_budget: 1000, max_concurrent_requests: 4, max_queue_depth: 10, max_wait_ms: 1000 }
const lane = {
  lane: 'meta/a',
  in_flight_requests: 0,
  committed_tokens: 0,
  queue_depth: 0,
  batch: { in_flight_requests: 0, committed_tokens: 0, queue_depth: 0 },
  oldest_wait_ms: 0,
  wait_ms_p50: null,
  wait_ms_p95: null,
  limits,
}
const replica = {
  name: 'one',
  version: '1',
  started_at: '2026-11-18T00:00:00.000Z',
  epoch: null,
  in_flight_requests: 0,
  queue_depth: 0,
  journal_bytes: 0,
  journal_lag_ms: 0,
  draining: false,
}
const workspace = {
  id: 'ws_1',
  name: 'acme',
  requests_per_minute: 60,
  spend_limit: '100.00',
  spend_limit_kind: 'hard',
  created: '2026-11-18T00:00:00.000Z',
}

const calm = {
  health: {
    object: 'health',
    is_ready: true,
    is_draining: false,
    engines: { up: 1, down: 0 },
    database: 'up',
    coordination: 'joined',
    disk: { size_bytes: 1000, free_bytes: 500 },
  },
  engines: [engine],
  replicas: { object: 'list', coordination: 'joined', answered_by: 'one', data: [replica] },
  lanes: [lane],
  workspaces: [workspace],
  spent: new Map([['acme', '89.99']]),
} as unknown as OperatorState

const found = (changes: object): readonly string[] =>
  attentionOf({ ...calm, ...changes }).map(({ level, title, action }) => `${level}: ${title} → ${action.href}`)

describe('what needs attention', () => {
  it('is nothing while all is well, also with models that are not downloaded yet', () => {
    assert.deepEqual(found({}), [])
    const download = { state: 'downloading', received_bytes: 1, total_bytes: 2, problem: null, message: '' }
    assert.deepEqual(found({ engines: [{ ...engine, addresses: [], download }] }), [])
    assert.deepEqual(found({ engines: [{ ...engine, kind: null, addresses: [] }] }), [])
    assert.deepEqual(found({ lanes: [{ ...lane, queue_depth: 7 }] }), [])
  })

  it('are a database, a Redis and a disk that fail, with the worst first', () => {
    const health = {
      ...calm.health,
      database: 'away',
      coordination: 'apart',
      disk: { size_bytes: 1000, free_bytes: 99 },
    }
    assert.deepEqual(found({ health, lanes: [{ ...lane, queue_depth: 10 }] }), [
      'bad: The database does not answer → /console/replicas',
      'bad: Redis cannot be reached → /console/replicas',
      'bad: The queue of meta/a is full → /console/queues/meta/a',
      'warn: The disk has 9.9 % left → /console/replicas',
    ])
  })

  it('are engines that are down or drained, and downloads that failed', () => {
    const down = { ...address, up: false, last_failure: 'refused' }
    const of = (addresses: readonly object[]) => found({ engines: [{ ...engine, addresses }] })
    assert.deepEqual(of([down]), ['bad: meta/a is down → /console/engines'])
    assert.deepEqual(of([down, address]), ['warn: meta/a: 1 of 2 addresses are down → /console/engines'])
    assert.deepEqual(of([{ ...address, drained: true }]), ['warn: meta/a is drained → /console/engines'])
    assert.deepEqual(of([{ ...address, drained: true }, address]), [])
    const download = { state: 'failed', received_bytes: 1, total_bytes: 2, problem: 'No room.', message: '' }
    assert.deepEqual(found({ engines: [{ ...engine, addresses: [], download }] }), [
      'bad: meta/a was not downloaded → /console/engines',
    ])
  })

  it('are replicas that drain or are late, and queues that are nearly full', () => {
    const data = [{ ...replica, draining: true, journal_lag_ms: 60_001 }]
    assert.deepEqual(found({ replicas: { ...calm.replicas, data }, lanes: [{ ...lane, queue_depth: 8 }] }), [
      'warn: one is draining → /console/replicas',
      'warn: The journal of one is 1 min behind → /console/replicas',
      'warn: The queue of meta/a is nearly full → /console/queues/meta/a',
    ])
  })

  it('are workspaces near their limit, and worse, those that are refused', () => {
    const spent = (amount: string, kind = 'hard') =>
      found({ spent: new Map([['acme', amount]]), workspaces: [{ ...workspace, spend_limit_kind: kind }] })
    assert.deepEqual(spent('90'), ['warn: acme has spent 90 % of its limit → /console/workspaces/acme'])
    assert.deepEqual(spent('100'), ['bad: acme has reached its limit → /console/workspaces/acme'])
    assert.deepEqual(spent('100', 'soft'), ['warn: acme has reached its limit → /console/workspaces/acme'])
    assert.deepEqual(found({ spent: new Map(), workspaces: [{ ...workspace, spend_limit: null }] }), [])
  })
})
