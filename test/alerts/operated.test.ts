import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AlertStore, EventDelivery } from '../../src/alerts/alert-store.ts'
import { openAlerts } from '../../src/alerts/alerts.ts'
import { openDispatcher } from '../../src/alerts/dispatch.ts'
import { subscribersOf, type AlertEndpoint } from '../../src/alerts/endpoints.ts'
import { alertEvent, bodyOf, deliveryId, type NamedEvent } from '../../src/alerts/events.ts'
import { alertRoutes } from '../../src/alerts/routes/alerts.ts'
import { webhookSchedule } from '../../src/alerts/webhook.ts'
import { askDocumented } from '../support/route-answer.ts'

/** What operators see of alerts and do with them, and how events are dispatched. The store is scripted. */

const AT = Date.UTC(2026, 10, 18)
const TIME = '2026-11-18T00:00:00.000Z'
const clock = { now: () => AT, monotonic: () => 0 }
const hook: AlertEndpoint = {
  name: 'hook',
  kind: 'webhook',
  url: 'https://u:p@a.example/',
  events: undefined,
  workspace: undefined,
}
const row: EventDelivery = {
  id: 'dlv_1',
  eventId: 'evt_1',
  type: 'key.created',
  endpoint: 'hook',
  state: 'queued',
  attempts: 2,
  createdAt: AT,
  nextAttemptAt: AT + 1000,
  sentAt: null,
  lastError: 'HTTP 500',
  body: '{}',
}

function alertsOn(store: Partial<AlertStore>, endpoints: readonly AlertEndpoint[] = [hook]) {
  return openAlerts(store as AlertStore, clock, endpoints)
}

describe('an operator of alerts', () => {
  it('sees a delivery with its next attempt as long as there is one', async () => {
    const view = {
      id: 'dlv_1',
      event_id: 'evt_1',
      event: 'key.created',
      endpoint: 'hook',
      state: 'queued',
      attempts: 2,
      created_at: TIME,
      sent_at: null,
      next_attempt_at: '2026-11-18T00:00:01.000Z',
      last_error: 'HTTP 500',
      body: '{}',
    }
    assert.deepEqual(await alertsOn({ delivery: async () => row }).delivery('dlv_1'), view)
    const sent = alertsOn({ delivery: async () => ({ ...row, state: 'sent', sentAt: AT, lastError: null }) })
    const sentView = { ...view, state: 'sent', sent_at: TIME, next_attempt_at: null, last_error: null }
    assert.deepEqual(await sent.delivery('dlv_1'), sentView)
    await assert.rejects(alertsOn({ delivery: async () => undefined }).delivery('x'), {
      code: 'not_found',
      param: 'id',
    })
  })

  it('sees deliveries in pages', async () => {
    const asked: object[] = []
    const rows = ['a', 'b', 'c'].map((id) => ({ ...row, id }))
    const alerts = alertsOn({
      delivery: async (id) => rows.find((it) => it.id === id),
      deliveries: async (query) => (asked.push(query), rows.slice(0, query.limit)),
    })
    const page = await alerts.page({ state: 'queued', limit: 2, before: 'c' })
    assert.deepEqual([page.data.map(({ id }) => id), page.next], [['a', 'b'], 'b'])
    assert.deepEqual(asked, [{ state: 'queued', before: rows[2], limit: 3 }])
    assert.equal((await alerts.page({ limit: 3 })).next, null)
    await assert.rejects(alerts.page({ limit: 3, before: 'x' }), { code: 'invalid_value', param: 'before' })
  })

  it('sees which endpoints are disabled, at the address that they have now', async () => {
    const endpoints = [
      hook,
      { ...hook, name: 'moved' },
      { ...hook, name: 'other', events: ['key.created'] as const, workspace: 'acme' },
    ]
    const places = [
      { name: 'hook', url: hook.url, disabledAt: AT },
      { name: 'moved', url: 'https://old.example/', disabledAt: AT },
    ]
    const shown = { kind: 'webhook', url: 'https://a.example/', events: null, workspace: null, disabled_at: null }
    assert.deepEqual(await alertsOn({ disabledEndpoints: async () => places }, endpoints).endpoints(), [
      { ...shown, name: 'hook', disabled_at: TIME },
      { ...shown, name: 'moved' },
      { ...shown, name: 'other', events: ['key.created'], workspace: 'acme' },
    ])
  })

  it('replays a delivery to an endpoint of weir.yaml, which is enabled by that, unless it is being sent', async () => {
    const calls: unknown[] = []
    const store = {
      delivery: async () => row,
      enableEndpoint: async (name: string) => void calls.push(name),
      replayDelivery: async (id: string, now: number) => (calls.push([id, now]), calls.length < 4),
    }
    const alerts = alertsOn(store)
    assert.equal((await alerts.replay('dlv_1')).id, 'dlv_1')
    assert.deepEqual(calls, ['hook', ['dlv_1', AT]])
    await assert.rejects(alerts.replay('dlv_1'), { code: 'conflict' })
    await assert.rejects(alertsOn(store, []).replay('dlv_1'), { code: 'not_found', param: 'name' })
  })

  it('tests an endpoint with an event of its own, which goes to no other endpoint', async () => {
    const calls: unknown[] = []
    const id = alertEvent('webhook.test', { unique: ['hook', AT], at: AT, data: { endpoint: 'hook' } }).id
    const alerts = alertsOn({
      enableEndpoint: async (name) => void calls.push(name),
      addEvents: async (events) => void calls.push(events.map((it) => it.id)),
      dispatchEvents: async (events, now) => void calls.push([events, now]),
      delivery: async (delivery) => ({ ...row, id: delivery }),
    })
    assert.equal((await alerts.test('hook')).id, deliveryId(id, 'hook'))
    const body = `{"type":"webhook.test","timestamp":"${TIME}","data":{"endpoint":"hook"}}`
    assert.deepEqual(calls, ['hook', [id], [[{ id, body, endpoints: ['hook'] }], AT]])
    await assert.rejects(alerts.test('missing'), { code: 'not_found', param: 'name' })
  })
})

describe('an operator of alerts, over the API', () => {
  const onStore = (store: Partial<AlertStore>) => {
    const routes = alertRoutes({ alerts: alertsOn(store) })
    return (request: string) => askDocumented(routes, request.replace(' ', ' /admin/v1/alerts/'))
  }

  it('sees the endpoints, and tests one on record', async () => {
    const call = onStore({
      disabledEndpoints: async () => [],
      enableEndpoint: async () => {},
      addEvents: async () => {},
      dispatchEvents: async () => {},
      delivery: async (id) => ({ ...row, id }),
    })
    const { body } = await call('GET endpoints')
    assert.deepEqual([body.object, body.data.map(({ name }: { name: string }) => name)], ['list', ['hook']])
    const tested = await call('POST endpoints/hook/test')
    assert.match(tested.body.id, /^dlv_/)
    assert.deepEqual(tested.recorded, [{ action: 'testAlertEndpoint', subject: 'hook' }])
  })

  it('sees pages of up to 200 deliveries, by default 50, and replays one on record', async () => {
    const asked: object[] = []
    const call = onStore({
      delivery: async () => row,
      deliveries: async (query) => (asked.push(query), [row]),
      enableEndpoint: async () => {},
      replayDelivery: async () => true,
    })
    const { body } = await call('GET deliveries')
    assert.deepEqual([body.object, body.data[0].id, body.next], ['list', 'dlv_1', null])
    await call('GET deliveries?state=failed&event=key.created&endpoint=hook&before=dlv_1&limit=200')
    assert.deepEqual(asked, [
      { type: undefined, before: undefined, limit: 51 },
      { state: 'failed', type: 'key.created', endpoint: 'hook', before: row, limit: 201 },
    ])
    for (const query of ['limit=201', 'limit=0', 'state=lost', 'event=no.such', 'endpoint='])
      await assert.rejects(call(`GET deliveries?${query}`), { code: 'invalid_value' }, query)
    const { recorded } = await call('POST deliveries/dlv_1/replay')
    assert.partialDeepStrictEqual(recorded, [
      { action: 'replayAlertDelivery', subject: 'dlv_1', state: { id: 'dlv_1', state: 'queued' } },
    ])
  })
})

describe('an event', () => {
  const event: NamedEvent = {
    ...alertEvent('key.created', { unique: ['k'], at: AT, workspaceId: 'ws', keyId: 'k', data: { expires_at: null } }),
    workspace: 'acme',
    keyName: 'build',
    keyEnding: 'wxyz',
  }

  it('and its deliveries have ids that depend on what happened alone', () => {
    assert.equal(event.id, alertEvent('key.created', { unique: ['k'], at: 1, data: { expires_at: null } }).id)
    assert.match(event.id, /^evt_[0-9a-f]{32}$/)
    assert.notEqual(event.id, alertEvent('key.revoked', { unique: ['k'], at: AT, data: {} }).id)
    // A new version finds the deliveries of the one before it.
    assert.equal(deliveryId('evt_1', 'hook'), 'dlv_1cfdf0bdfb4b2c4b2b3eb64b055cef7d')
  })

  it('carries its workspace and its key, if it has them', () => {
    const data = { workspace: 'acme', key_id: 'k', key_name: 'build', key_ending: 'wxyz', expires_at: null }
    assert.deepEqual(JSON.parse(bodyOf(event)), { type: 'key.created', timestamp: TIME, data })
    const ofService = { ...event, workspace: null, keyId: null }
    assert.deepEqual(JSON.parse(bodyOf(ofService)), {
      type: 'key.created',
      timestamp: TIME,
      data: { expires_at: null },
    })
  })

  it('goes to the endpoints that want its type and its workspace; a test goes to none by itself', () => {
    const endpoints = [
      hook,
      { ...hook, name: 'type', events: ['key.revoked'] as const },
      { ...hook, name: 'acme', events: ['key.revoked', 'key.created'] as const, workspace: 'acme' },
      { ...hook, name: 'another', workspace: 'another' },
    ]
    assert.deepEqual(subscribersOf(event, endpoints), ['hook', 'acme'])
    assert.deepEqual(subscribersOf({ type: 'key.created', workspace: null }, endpoints), ['hook'])
    assert.deepEqual(subscribersOf({ type: 'webhook.test', workspace: 'acme' }, endpoints), [])
  })

  it('is dispatched with up to 99 others at once, until there are none, and no more once closed', async () => {
    const waiting = [[event], [{ ...event, id: 'evt_2' }]]
    const calls: unknown[] = []
    const timers: (() => void)[] = []
    const dispatcher = openDispatcher({
      store: {
        eventsToDispatch: async (limit) => (calls.push(limit), waiting.shift() ?? []),
        dispatchEvents: async (events, now) =>
          void calls.push([events.map(({ id, endpoints }) => [id, endpoints]), now]),
      },
      endpoints: [hook],
      clock: {
        ...clock,
        after(_ms, ring) {
          timers.push(ring)
          return () => void timers.splice(timers.indexOf(ring), 1)
        },
      },
      dispatched: () => void calls.push('dispatched'),
      failed: ({ message }) => void calls.push(message),
    })
    await new Promise(setImmediate)
    assert.deepEqual(calls, [
      100,
      [[[event.id, ['hook']]], AT],
      'dispatched',
      100,
      [[['evt_2', ['hook']]], AT],
      'dispatched',
      100,
    ])
    assert.equal(timers.length, 1)
    await dispatcher.close()
    assert.deepEqual(timers, [])
    calls.length = 0
    await dispatcher.dispatchAll()
    assert.deepEqual(calls, [])
  })

  it('that cannot be dispatched is tried again with the next poll, unless it is closed meanwhile', async () => {
    const calls: string[] = []
    const timers: (() => void)[] = []
    const dispatcher = openDispatcher({
      store: { eventsToDispatch: () => Promise.reject(new Error('away')), dispatchEvents: async () => {} },
      endpoints: [],
      clock: { ...clock, after: (_ms, ring) => (timers.push(ring), () => {}) },
      dispatched() {},
      failed: ({ message }) => void calls.push(message),
    })
    await new Promise(setImmediate)
    assert.deepEqual([calls, timers.length], [['away'], 1])
    timers[0]!()
    await dispatcher.close()
    assert.deepEqual([calls, timers.length], [['away', 'away'], 1])
  })
})

describe('a webhook', () => {
  it('is tried after these seconds, and its lease is longer than an attempt', () => {
    const seconds = webhookSchedule.pausesMs.map((ms) => ms / 1000)
    assert.deepEqual(seconds, [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400])
    assert.equal(webhookSchedule.leaseMs, 30_000)
  })
})
