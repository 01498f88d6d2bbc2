import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AlertEvent } from '../../src/alerts/events.ts'
import { openAlerting, openDownloadAlerts, openEmailing } from '../../src/compose/open-notifications.ts'
import type { Start } from '../../src/compose/start.ts'
import { isFirstWorker } from '../../src/config.ts'
import type { DeliveryOutcome } from '../../src/delivery/sender.ts'
import { RUNTIME_NAME } from '../../src/local-models/files/runtime-files.ts'
import type { Store } from '../../src/store/store.ts'

/** What the parts of a service are wired to. Stores are scripted, and a test fires the timers. */

const NOW = Date.UTC(2026, 10, 18)
const smtp = { host: '127.0.0.1', port: 9, encryption: 'none', from: 'weir@a.example', login: () => undefined }
const hook = { kind: 'webhook', name: 'hook', url: 'http://127.0.0.1:9/', secret: () => Buffer.alloc(24) }

function stage(config: object) {
  const state = { elapsedMs: 0 }
  const timers: (readonly [number, () => void])[] = []
  const logged: unknown[] = []
  const seen: unknown[] = []
  const opened = new AsyncDisposableStack()
  const start = {
    config: { worker: undefined, invoice: { fonts: [] }, ...config },
    clock: {
      now: () => NOW,
      monotonic: () => state.elapsedMs,
      after(ms: number, ring: () => void) {
        timers.push([ms, ring])
        return () => {}
      },
    },
    opened,
    telemetry: {
      log: { warn: (fields: { reason: string }) => void logged.push(fields.reason), info() {} },
      alertsWaited: (ms: number) => void seen.push(`waited ${ms}`),
    },
  } as unknown as Start
  async function ringAll(ms: number): Promise<void> {
    for (const [pause, ring] of timers.splice(0)) if (pause === ms) ring()
    await settled()
  }
  return { start, opened, logged, seen, state, ringAll }
}

const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate)
}

describe('the first worker', () => {
  it('is a process alone, or the first of several', () => {
    assert.deepEqual(
      [undefined, 1, 2, 3].map((worker) => isFirstWorker({ worker })),
      [true, true, false, false],
    )
  })
})

describe('e-mails with invoices', () => {
  async function sent(config: object, failure: object = {}) {
    const { start, opened, logged } = stage(config)
    const emails = [{ number: 'INV-1', recipient: 'a@b.example', attempts: 1, leaseUntil: 0 }]
    const claims: unknown[] = []
    const outcomes: DeliveryOutcome[] = []
    const store = {
      claimEmail: async (...times: readonly number[]) => (claims.push(times), emails.shift()),
      finishEmail: async (_email: object, outcome: DeliveryOutcome) => void outcomes.push(outcome),
    } as unknown as Store
    const invoicing = { byNumber: async () => Promise.reject(Object.assign(new Error('no such invoice'), failure)) }
    await openEmailing(start, store, { invoicing, rowLinks: {} } as never)
    await settled()
    await opened.disposeAsync()
    return { claims, outcomes, logged }
  }

  it('are sent by the first worker alone, and only where SMTP is configured', async () => {
    for (const config of [{ smtp: undefined }, { smtp, worker: 2 }]) assert.deepEqual((await sent(config)).claims, [])
    const lease = [NOW, NOW + 600_000]
    for (const config of [{ smtp }, { smtp, worker: 1 }]) assert.deepEqual((await sent(config)).claims, [lease, lease])
  })

  it('are tried again by the schedule of e-mails, unless the recipient is refused for good', async () => {
    const outcome = { nextAttemptAt: NOW + 60_000, sentAt: null, lastError: 'no such invoice' }
    const { outcomes, logged } = await sent({ smtp })
    assert.deepEqual([outcomes, logged], [[{ ...outcome, state: 'queued' }], ['no such invoice']])
    const refused = await sent({ smtp }, { command: 'RCPT TO', responseCode: 550 })
    assert.deepEqual(refused.outcomes, [{ ...outcome, state: 'failed' }])
  })
})

describe('alerts', () => {
  async function watched(worker: number | undefined) {
    const { start, opened, logged, seen, state, ringAll } = stage({
      worker,
      smtp: undefined,
      alerts: { endpoints: [hook], spendThresholds: [50] },
    })
    const changed: AlertEvent[] = []
    const added: AlertEvent[] = []
    const store = {
      eventsToDispatch: async () => [],
      claimDelivery: async ({ name }: { name: string }) => void seen.push(`claim ${name}`),
      addChange: async (event: AlertEvent) => void changed.push(event),
      addEvents: async (events: readonly AlertEvent[]) => void added.push(...events),
      forgetEvents: async () => {},
      leaseWatch: async (...lease: readonly unknown[]) => (seen.push(lease), true),
      oldestUndelivered: async (names: readonly string[]) => (seen.push(names), undefined),
      expiringKeys: async (query: object) => (seen.push(query), []),
    }
    const readStore = {
      keysWithSpendLimit: async (query: object) => (seen.push(query), []),
      newestInvoices: async () => (seen.push('invoices'), []),
    }
    await openAlerting(start, {
      store,
      readStore,
      accounts: { workspaces: () => [{ id: 'ws', spendLimit: { amount: 10n, isSoft: true } }] },
      spending: { spent: async () => 5n },
      engines: { addresses: () => new Map([['a', { url: 'http://u:p@e.example/', isUp: false }]]) },
      admission: { status: async () => new Map([['a', { queueDepth: 9, limits: { maxQueueDepth: 10 } }]]) },
      coordination: { replica: 'r1' },
    } as never)
    await settled()
    return { opened, logged, seen, state, ringAll, changed, added }
  }

  it('are noticed and sent by the first worker alone', async () => {
    const { opened, seen, logged } = await watched(2)
    assert.deepEqual([seen, logged], [[], []])
    await opened.disposeAsync()
  })

  for (const worker of [undefined, 1]) {
    it(`watch spend, keys, invoices, engines and lanes in ${worker === 1 ? 'the first worker' : 'a process alone'}`, async () => {
      const { opened, logged, seen, state, ringAll, changed, added } = await watched(worker)
      assert.ok(seen.includes('claim hook'))
      const looked = seen.filter((it) => it !== 'claim hook')
      assert.deepEqual(looked, [
        ['hook'],
        'waited 0',
        ['r1', NOW, NOW + 30_000],
        { now: NOW, after: undefined, limit: 500 },
        'invoices',
        { now: NOW, before: NOW + 7 * 86_400_000, after: undefined, limit: 500 },
      ])
      const period = { period: '2026-11', limit: '0.00000000001', spent: '0.000000000005' }
      assert.deepEqual(
        added.map(({ type, data }) => [type, JSON.parse(data)]),
        [['spend.threshold_reached', { ...period, percent: 50 }]],
      )
      state.elapsedMs = 120_000
      await ringAll(10_000)
      assert.deepEqual(
        changed.map(({ type, data }) => [type, JSON.parse(data)]),
        [
          ['engine.down', { url: 'http://e.example/', lanes: ['a'] }],
          ['lane.saturated', { lane: 'a', queue_depth: 9, max_queue_depth: 10 }],
        ],
      )
      seen.length = 0
      await opened.disposeAsync()
      assert.deepEqual([seen, logged], [[['r1', NOW, NOW]], []], 'the lease is given back')
    })
  }

  it('report a download of a model, in the first worker alone, and not that of the runtime', async () => {
    const added: AlertEvent[] = []
    const store = { addEvents: async (events: readonly AlertEvent[]) => void added.push(...events) } as Store
    for (const worker of [undefined, 1, 2]) {
      const { ready } = openDownloadAlerts(stage({ worker }).start, store)
      for (const name of [RUNTIME_NAME, 'meta/x']) ready?.(name)
    }
    const shown = added.map(({ type, occurredAt, data }) => [type, occurredAt, data])
    const event = ['download.finished', NOW, '{"model":"meta/x"}']
    assert.deepEqual(shown, [event, event])
    const away = stage({})
    openDownloadAlerts(away.start, { addEvents: () => Promise.reject(new Error('away')) } as unknown as Store).ready?.(
      'x',
    )
    await settled()
    assert.deepEqual(away.logged, ['away'])
  })
})
