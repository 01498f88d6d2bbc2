import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { EventType } from '../../src/alerts/event-table.ts'
import { alertEvent, deliveryId, type AlertEvent } from '../../src/alerts/events.ts'
import { openWatch } from '../../src/alerts/watch.ts'
import { keySpend } from '../../src/compose/alert-sources.ts'
import type { AlarmClock } from '../../src/shared/clock.ts'
import type { Store } from '../../src/store/store.ts'
import { noLimits } from '../support/key-limits.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { pooledAdapters, storeAdapters, type TestDatabase } from '../support/store-adapters.ts'

/** What every store promises of events and their deliveries, whatever database is behind it. */

const DAY = 86_400_000
const at = Date.UTC(2026, 10, 18)
const sent = { state: 'sent', nextAttemptAt: at, sentAt: at + 5, lastError: null } as const
const downloaded = (model: string): AlertEvent =>
  alertEvent('download.finished', { unique: [model], at, data: { model } })

for (const adapter of [...storeAdapters, ...pooledAdapters]) {
  describe(`alerts on ${adapter.name}`, () => {
    let database: TestDatabase
    /** Two processes that have the same database open. */
    let store: Store
    let other: Store

    before(async () => {
      database = await adapter.create()
      store = await database.open()
      other = await database.open()
      await store.createWorkspace({ id: 'ws_1', name: 'acme', requestsPerMinute: null, createdAt: 1 })
    })
    after(() => database.remove())

    /** Leaves nothing for the next test. */
    async function dispatched(...endpoints: string[]): Promise<readonly string[]> {
      const events = await store.eventsToDispatch(100)
      await store.dispatchEvents(
        events.map(({ id }) => ({ id, body: `body of ${id}`, endpoints })),
        at,
      )
      return events.map(({ id }) => id)
    }

    it('an event that two processes notice exists once', async () => {
      await Promise.all([store.addEvents([downloaded('a'), downloaded('b')]), other.addEvents([downloaded('a')])])
      await other.addEvents([downloaded('b')])
      const ids = [downloaded('a').id, downloaded('b').id].toSorted()
      assert.deepEqual((await dispatched()).toSorted(), ids)
      await store.addEvents([downloaded('a')])
      assert.deepEqual(await dispatched(), [], 'also after it was dispatched')
    })

    it('keys have events with their names, created and revoked in one transaction each', async () => {
      const key = { id: 'key_1', workspaceId: 'ws_1', hash: 'h', ending: 'wxyz', name: 'build', createdAt: at }
      await store.createKey({ ...key, expiresAt: null, revokedAt: null, ...noLimits })
      await store.revokeKey('key_1', at + 1)
      await other.revokeKey('key_1', at + 2)
      const events = await other.eventsToDispatch(100)
      const named = { workspaceId: 'ws_1', keyId: 'key_1', subject: null, workspace: 'acme', keyName: 'build' }
      assert.deepEqual(
        events.map(({ id: _id, ...event }) => event),
        [
          { type: 'key.created', occurredAt: at, data: '{"expires_at":null}', ...named, keyEnding: 'wxyz' },
          { type: 'key.revoked', occurredAt: at + 1, data: '{}', ...named, keyEnding: 'wxyz' },
        ],
      )
      await dispatched()
    })

    it('a change of state that two processes notice is added once', async () => {
      const change = (type: EventType, time: number): AlertEvent =>
        alertEvent(type as 'engine.up', {
          unique: [time],
          at: time,
          subject: 'engine u',
          data: { url: 'u', lanes: [] },
        })
      const add = (from: Store, type: EventType, time: number): Promise<void> =>
        from.addChange(change(type, time), 'engine.up')
      await add(store, 'engine.up', at)
      await Promise.all([add(store, 'engine.down', at + 1), add(other, 'engine.down', at + 2)])
      await add(other, 'engine.down', at + 3)
      await add(other, 'engine.up', at + 4)
      await add(store, 'engine.up', at + 5)
      assert.deepEqual(
        (await store.eventsToDispatch(9)).map(({ type }) => type),
        ['engine.down', 'engine.up'],
      )
      await dispatched()
    })

    it('a delivery is claimed by one of two processes, until the lease ends', async () => {
      await store.addEvents([downloaded('c')])
      const [eventId = ''] = await dispatched('hook')
      const id = deliveryId(eventId, 'hook')
      const hook = { name: 'hook', url: 'http://a' }
      assert.equal(await store.claimDelivery({ name: 'another', url: 'http://a' }, at, at + 100), undefined)
      assert.equal(await store.claimDelivery(hook, at - 1, at), undefined, 'not due yet')
      const both = await Promise.all([store.claimDelivery(hook, at, at + 100), other.claimDelivery(hook, at, at + 100)])
      const [claimed, ...more] = both.filter((it) => it !== undefined)
      const body = `body of ${eventId}`
      assert.deepEqual([claimed, more], [{ id, eventId, body, attempts: 1, leaseUntil: at + 100 }, []])
      assert.equal(await other.replayDelivery(id, at + 99), false, 'it is being sent')
      assert.equal(await other.claimDelivery(hook, at + 99, at + 300), undefined)
      const again = await other.claimDelivery(hook, at + 100, at + 300)
      assert.equal(again?.attempts, 2)
      await store.finishDelivery(claimed!, sent)
      assert.equal((await store.delivery(id))?.state, 'queued', 'the first lease has ended')
      await other.finishDelivery(again, { ...sent, state: 'failed', sentAt: null, lastError: 'HTTP 500' })
      // The first process comes late once more, when the second one has finished.
      await store.finishDelivery(claimed!, sent)
      assert.deepEqual(await store.deliveries({ endpoint: 'hook', limit: 9 }), [
        {
          id,
          eventId,
          type: 'download.finished',
          endpoint: 'hook',
          state: 'failed',
          attempts: 2,
          createdAt: at,
          nextAttemptAt: at,
          sentAt: null,
          lastError: 'HTTP 500',
          body,
        },
      ])
      assert.equal(await store.replayDelivery(id, at + 500), true)
      assert.equal((await other.claimDelivery(hook, at + 500, at + 600))?.attempts, 1)
    })

    it('a delivery that was sent waits anew once it is replayed, without a trace of being sent', async () => {
      await store.addEvents([downloaded('replayed')])
      const [eventId = ''] = await dispatched('replayed')
      const id = deliveryId(eventId, 'replayed')
      const claimed = await store.claimDelivery({ name: 'replayed', url: 'http://a' }, at, at + 100)
      await store.finishDelivery(claimed!, sent)
      assert.partialDeepStrictEqual(await other.delivery(id), { state: 'sent', sentAt: at + 5 })
      assert.equal(await other.oldestUndelivered(['replayed']), undefined)
      assert.equal(await store.replayDelivery(id, at + 500), true)
      const anew = { state: 'queued', attempts: 0, nextAttemptAt: at + 500, sentAt: null, lastError: null }
      assert.partialDeepStrictEqual(await other.delivery(id), anew)
    })

    it('deliveries are claimed in the order in which they are due', async () => {
      await store.addEvents([downloaded('due'), downloaded('due later')])
      await dispatched('due')
      const place = { name: 'due', url: 'http://a' }
      const first = await store.claimDelivery(place, at, at + 10)
      await store.finishDelivery(first!, { ...sent, state: 'queued', sentAt: null, nextAttemptAt: at + 50 })
      const second = await other.claimDelivery(place, at + 60, at + 70)
      assert.notEqual(second?.id, first?.id)
      assert.equal((await store.claimDelivery(place, at + 60, at + 70))?.id, first?.id)
    })

    it('the watch is leased by one of many processes that ask at once, and again after its end', async () => {
      for (const now of [at, at + 30_000]) {
        const owners = Array.from({ length: 20 }, (_, index) => `${now} ${index}`)
        const lease = (owner: string, index: number) => (index % 2 ? other : store).leaseWatch(owner, now, now + 30_000)
        const leased = await Promise.all(owners.map(lease))
        assert.equal(leased.filter(Boolean).length, 1, 'one of them')
        assert.deepEqual(await Promise.all(owners.map(lease)), leased, 'which keeps it')
      }
    })

    it('an event that two processes dispatch has one body, and one delivery for each endpoint', async () => {
      await store.addEvents([downloaded('d')])
      const { id } = downloaded('d')
      await Promise.all([
        store.dispatchEvents([{ id, body: 'one', endpoints: ['x', 'y'] }], at),
        other.dispatchEvents([{ id, body: 'two', endpoints: ['y', 'z'] }], at),
      ])
      const found = await Promise.all(['x', 'y', 'z'].map((endpoint) => store.deliveries({ endpoint, limit: 9 })))
      assert.deepEqual(
        found.map((deliveries) => deliveries.length),
        [1, 1, 1],
      )
      assert.equal(new Set(found.flat().map(({ body }) => body)).size, 1)
    })

    it('an event that was dispatched keeps its body, and has further deliveries with it', async () => {
      await store.addEvents([downloaded('once')])
      const [event] = await store.eventsToDispatch(1)
      const id = event?.id ?? assert.fail()
      await store.dispatchEvents([{ id, body: 'first', endpoints: ['once'] }], at)
      await other.dispatchEvents([{ id, body: 'second', endpoints: ['once', 'twice'] }], at + 1)
      for (const [endpoint, createdAt] of [
        ['once', at],
        ['twice', at + 1],
      ] as const) {
        assert.partialDeepStrictEqual(await store.delivery(deliveryId(id, endpoint)), { body: 'first', createdAt })
      }
    })

    it('a disabled endpoint gets nothing until it is enabled, or has another address', async () => {
      await store.addEvents([downloaded('e')])
      await dispatched('gone')
      const place = { name: 'gone', url: 'http://gone' }
      await store.disableEndpoint(place, at)
      await other.disableEndpoint(place, at + 1)
      assert.deepEqual(await other.disabledEndpoints(), [{ ...place, disabledAt: at + 1 }])
      assert.equal(await store.claimDelivery(place, at, at + 1), undefined)
      assert.ok(await store.claimDelivery({ ...place, url: 'http://new' }, at, at + 1))
      await store.disableEndpoint({ ...place, url: 'http://new' }, at + 2)
      assert.equal(await store.claimDelivery({ ...place, url: 'http://new' }, at + 2, at + 3), undefined)
      await store.enableEndpoint('gone')
      assert.ok(await store.claimDelivery(place, at + 1, at + 2))
    })

    it('lists deliveries by what is asked for, in pages', async () => {
      await store.addEvents([downloaded('f'), downloaded('g'), downloaded('h')])
      await dispatched('list')
      const query = { endpoint: 'list', type: 'download.finished', state: 'queued' } as const
      const all = await store.deliveries({ ...query, limit: 9 })
      assert.equal(all.length, 3)
      const [first] = await store.deliveries({ ...query, limit: 1 })
      assert.deepEqual([first, ...(await store.deliveries({ ...query, before: first, limit: 9 }))], all)
      assert.deepEqual(await store.deliveries({ ...query, state: 'sent', limit: 9 }), [])
      assert.deepEqual(await store.deliveries({ ...query, type: 'key.created', limit: 9 }), [])
    })

    it('knows how long the oldest delivery to an endpoint waits, and forgets old events', async () => {
      assert.equal(await store.oldestUndelivered(['another']), undefined)
      assert.equal(await store.oldestUndelivered(['list', 'another']), at)
      await store.forgetEvents(at)
      assert.equal((await store.deliveries({ endpoint: 'list', limit: 9 })).length, 3)
      await store.forgetEvents(at + 1000)
      assert.deepEqual(await store.deliveries({ limit: 9 }), [])
      await store.addEvents([downloaded('a')])
      assert.deepEqual(await dispatched(), [downloaded('a').id])
    })

    it('finds keys that expire soon, in pages', async () => {
      const key = { workspaceId: 'ws_1', ending: null, name: null, createdAt: at, revokedAt: null, ...noLimits }
      for (const [id, expiresAt] of [
        ['past', at - 1],
        ['b', at + 1],
        ['a', at + 2],
        ['c', at + 2],
        ['d', at + 9],
      ] as const) {
        await store.createKey({ ...key, id, hash: id, expiresAt })
      }
      await store.createKey({ ...key, id: 'revoked', hash: 'r', expiresAt: at + 2 })
      await store.revokeKey('revoked', at)
      const page = async (afterKey: { id: string; expiresAt: number | null } | undefined) =>
        store.expiringKeys({
          now: at,
          before: at + 9,
          after: afterKey && { id: afterKey.id, expiresAt: afterKey.expiresAt ?? 0 },
          limit: 2,
        })
      const first = await page(undefined)
      assert.deepEqual(
        [...first, ...(await page(first[1]))].map(({ id }) => id),
        ['b', 'a', 'c'],
      )
    })

    it('finds valid keys with a spend limit, in pages', async () => {
      const key = { workspaceId: 'ws_1', ending: null, name: null, createdAt: at, revokedAt: null, expiresAt: null }
      const limits = {
        d: { spendPerDay: 1n },
        a: { spendPerMonth: 2n },
        b: { spendPerDay: 0n, spendPerMonth: 3n },
        c: {},
      }
      for (const [name, limit] of Object.entries(limits)) {
        await store.createKey({ ...key, ...noLimits, ...limit, id: `spend ${name}`, hash: `spend ${name}` })
      }
      const past = { ...key, ...noLimits, spendPerDay: 1n }
      await store.createKey({ ...past, id: 'spend expired', hash: 'spend expired', expiresAt: at })
      await store.createKey({ ...past, id: 'spend later', hash: 'spend later', expiresAt: at + 1 })
      await store.createKey({ ...past, id: 'spend revoked', hash: 'spend revoked' })
      await store.revokeKey('spend revoked', at)
      const first = await store.keysWithSpendLimit({ now: at, after: undefined, limit: 2 })
      const second = await store.keysWithSpendLimit({ now: at, after: first.at(-1)?.id, limit: 9 })
      assert.deepEqual(
        [first, second].map((page) =>
          page.map(({ id, spendPerDay, spendPerMonth }) => [id, spendPerDay, spendPerMonth]),
        ),
        [
          [
            ['spend a', null, 2n],
            ['spend b', 0n, 3n],
          ],
          [
            ['spend d', 1n, null],
            ['spend later', 1n, null],
          ],
        ],
      )
      for (const { id } of [...first, ...second]) await store.revokeKey(id, at)
      await dispatched()
    })

    it('the spend of a key is an event at each share and at the limit, once for each day and month, over two processes', async () => {
      const AUD = 1_000_000_000_000n
      let now = Date.UTC(2026, 10, 18, 12)
      const clock: AlarmClock = { now: () => now, monotonic: () => now, after: () => () => {} }
      const watches = [store, other].map((it) =>
        openWatch({
          owner: 'one',
          store: it,
          clock,
          endpoints: [],
          spendThresholds: [50, 80, 100],
          workspaceSpend: async () => [],
          keySpend: () => keySpend(it, clock),
          engines: () => [],
          lanes: async () => [],
          overdueInvoices: async () => [],
          expiringKeys: async () => [],
          waited() {},
          failed: (error) => assert.fail(error),
        }),
      )
      let settled = 0
      /** Settles a request of this cost, and returns the events that both processes notice. */
      async function spend(keyId: string, cost: bigint): Promise<readonly string[]> {
        const row = sampleRow(`spend-${++settled}`, { keyId, amount: cost, startedAt: now, settledAt: now })
        await store.addRows([row])
        now += 60_000
        await Promise.all(watches.map((watch) => watch.check()))
        const events = await store.eventsToDispatch(100)
        await dispatched()
        return events
          .map(({ type, data, workspace, keyName }) => {
            const { period, limit, spent, percent } = JSON.parse(data) as Record<string, unknown>
            return [workspace, keyName, type, period, `${String(spent)} of ${String(limit)}`, percent].join(' ').trim()
          })
          .toSorted()
      }
      const key = { workspaceId: 'ws_1', ending: null, createdAt: at, revokedAt: null, expiresAt: null, ...noLimits }
      const limits = { spendPerDay: 10n * AUD, spendPerMonth: 20n * AUD }
      await store.createKey({ ...key, ...limits, id: 'key_spend', hash: 'key_spend', name: 'build' })
      await store.createKey({ ...key, spendPerDay: 0n, id: 'key_zero', hash: 'key_zero', name: 'nothing' })
      await dispatched()
      const threshold = 'acme build key.spend_threshold_reached'
      const limit = 'acme build key.spend_limit_reached'
      assert.deepEqual(await spend('key_spend', 5n * AUD - 1n), [])
      assert.deepEqual(await spend('key_of_another', 90n * AUD), [])
      assert.deepEqual(await spend('key_spend', 1n), [`${threshold} 2026-11-18 5.00 of 10.00 50`])
      assert.deepEqual(await spend('key_spend', 0n), [])
      assert.deepEqual(await spend('key_spend', 5n * AUD), [
        `${limit} 2026-11-18 10.00 of 10.00`,
        `${threshold} 2026-11 10.00 of 20.00 50`,
        `${threshold} 2026-11-18 10.00 of 10.00 100`,
        `${threshold} 2026-11-18 10.00 of 10.00 80`,
      ])
      now += DAY
      assert.deepEqual(await spend('key_spend', 0n), [], 'a new day')
      assert.deepEqual(await spend('key_spend', 10n * AUD), [
        `${limit} 2026-11 20.00 of 20.00`,
        `${limit} 2026-11-19 10.00 of 10.00`,
        `${threshold} 2026-11 20.00 of 20.00 100`,
        `${threshold} 2026-11 20.00 of 20.00 80`,
        ...[100, 50, 80].map((percent) => `${threshold} 2026-11-19 10.00 of 10.00 ${percent}`),
      ])
      await store.changeKey('key_spend', { spendPerDay: 9n * AUD })
      assert.deepEqual(await spend('key_spend', 0n), [`${limit} 2026-11-19 10.00 of 9.00`], 'another limit')
      now += 30 * DAY
      assert.deepEqual(await spend('key_spend', 10n * AUD), [
        `${limit} 2026-12-19 10.00 of 9.00`,
        `${threshold} 2026-12 10.00 of 20.00 50`,
        ...[100, 50, 80].map((percent) => `${threshold} 2026-12-19 10.00 of 9.00 ${percent}`),
      ])
      await Promise.all(watches.map((watch) => watch.close()))
    })
  })
}
