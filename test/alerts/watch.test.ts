import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { openWatch, type Watch, type WatchParts } from '../../src/alerts/watch.ts'
import { eventTable, type EventType } from '../../src/alerts/event-table.ts'
import { bodyOf } from '../../src/alerts/events.ts'
import { engineStates, expiringKeys, newlyOverdue, workspaceSpend } from '../../src/compose/alert-sources.ts'
import { parseAud } from '../../src/shared/money/money.ts'
import { sydneyMonth } from '../../src/shared/money/sydney-time.ts'
import { Check } from 'typebox/value'
import type { AlarmClock } from '../../src/shared/clock.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import { noLimits } from '../support/key-limits.ts'
import { testBooks, type TestBooks } from '../support/books.ts'

/** What is noticed, on a real store. The time is set by the test, and no timer fires. */

const MINUTE = 60_000
const DAY = 86_400_000
const october = sydneyMonth(Date.UTC(2026, 9, 15))
let books: TestBooks
let acme: Workspace
const watches: Watch[] = []
const clock: AlarmClock = { now: () => books.now, monotonic: () => books.now, after: () => () => {} }

/** Like a new process each time. */
async function watchWith(changes: Partial<WatchParts> = {}): Promise<Watch> {
  const watch = openWatch({
    store: books.store,
    owner: 'one',
    clock,
    endpoints: [],
    spendThresholds: [50, 80, 100],
    workspaceSpend: async () => [],
    async *keySpend() {},
    engines: () => [],
    lanes: async () => [],
    overdueInvoices: async () => [],
    expiringKeys: async () => [],
    waited() {},
    failed: (error) => assert.fail(error),
    ...changes,
  })
  watches.push(watch)
  await watch.check()
  return watch
}

/** The events since the last call. What is sent is as the table of events says. */
async function news(): Promise<readonly (readonly [EventType, Readonly<Record<string, unknown>>])[]> {
  const events = await books.store.eventsToDispatch(100)
  await books.store.dispatchEvents(
    events.map((event) => ({ id: event.id, body: bodyOf(event), endpoints: [] })),
    books.now,
  )
  return events.map((event) => {
    const { data } = JSON.parse(bodyOf(event)) as { data: Readonly<Record<string, unknown>> }
    const schema = eventTable[event.type].data
    assert.ok(Check(schema, data), JSON.stringify(data))
    assert.deepEqual(Object.keys(data).toSorted(), Object.keys(schema.properties).toSorted())
    return [event.type, data]
  })
}

beforeEach(async () => {
  books = await testBooks(october.to + DAY)
  acme = await books.workspace('acme')
})
afterEach(async () => {
  await Promise.all(watches.splice(0).map((it) => it.close()))
  await books.close()
})

describe('what is the same for all processes', () => {
  const seen: string[] = []
  const watchOf = (owner: string, pages = 1): Promise<Watch> =>
    watchWith({
      owner,
      async workspaceSpend() {
        seen.push(`${owner} workspaces`)
        return []
      },
      async *keySpend() {
        for (let page = 1; page <= pages; page += 1) {
          seen.push(`${owner} keys ${page}`)
          // Many pages take longer than a lease.
          if (pages > 1) books.now += 20_000
          yield []
        }
      },
      async overdueInvoices() {
        seen.push(`${owner} days`)
        return []
      },
      lanes: async () => (seen.push(`${owner} lanes`), []),
    })
  const seenBy = async (action: () => Promise<unknown>): Promise<readonly string[]> => {
    seen.length = 0
    await action()
    return seen.filter((it, index) => seen.indexOf(it) === index)
  }

  it('is checked by one of them, and by another 30 s after that one has died', async () => {
    const everything = ['lanes', 'workspaces', 'keys 1', 'days']
    assert.deepEqual(
      await seenBy(() => watchOf('one')),
      everything.map((it) => `one ${it}`),
    )
    books.now += 29_999
    assert.deepEqual(await seenBy(() => watchOf('other')), ['other lanes'])
    books.now += 1
    assert.deepEqual(
      await seenBy(() => watchOf('other')),
      everything.map((it) => `other ${it}`),
    )
    assert.deepEqual(await seenBy(() => watchOf('one')), ['one lanes'])
  })

  it('is checked by the same one for as long as it runs, however many pages there are', async () => {
    const one = await watchOf('one', 3)
    for (let minute = 0; minute < 3; minute += 1) {
      books.now += MINUTE / 3
      assert.ok((await seenBy(() => one.check())).includes('one workspaces'))
      assert.deepEqual(await seenBy(() => watchOf('other')), ['other lanes'])
    }
  })

  it('is left to another in the midst of its pages, if that one has taken the lease', async () => {
    const checked = seenBy(() =>
      watchWith({
        owner: 'one',
        async *keySpend() {
          seen.push('first')
          yield []
          books.now += 30_000
          await books.store.leaseWatch('other', books.now, books.now + 30_000)
          seen.push('second')
          yield []
          seen.push('third')
        },
        async overdueInvoices() {
          seen.push('days')
          return []
        },
      }),
    )
    assert.deepEqual(await checked, ['first', 'second'])
  })

  it('is checked by another at once when the first one has stopped', async () => {
    const one = await watchOf('one')
    await one.close()
    watches.splice(watches.indexOf(one), 1)
    assert.ok((await seenBy(() => watchOf('other'))).includes('other workspaces'))
  })
})

describe('the spend of a workspace', () => {
  const aud = (text: string): bigint => parseAud(text)!

  it('is an event at each threshold and at the limit, once for each month, also after a restart', async () => {
    let spent = '49.99'
    let limit = '100'
    const accounts = {
      workspaces: () => [
        { ...acme, spendLimit: { amount: aud(limit), isSoft: false } },
        { ...acme, id: 'unlimited' },
      ],
    }
    const spending = { spent: async () => aud(spent) }
    const states = () => workspaceSpend({ accounts, spending, clock })
    const first = await watchWith({ workspaceSpend: states })
    assert.deepEqual(await news(), [])
    spent = '85'
    await first.check()
    await first.check()
    await watchWith({ workspaceSpend: states })
    const data = { workspace: 'acme', period: '2026-11', limit: '100.00', spent: '85.00' }
    const found = await news()
    assert.deepEqual(
      found.map(([, it]) => it).toSorted((a, b) => Number(a['percent']) - Number(b['percent'])),
      [
        { ...data, percent: 50 },
        { ...data, percent: 80 },
      ],
    )
    spent = '100'
    await first.check()
    assert.deepEqual((await news()).map(([type]) => type).toSorted(), [
      'spend.limit_reached',
      'spend.threshold_reached',
    ])
    limit = '90'
    await first.check()
    assert.deepEqual(
      (await news()).map(([type, it]) => [type, it['limit'], it['is_soft']]),
      [['spend.limit_reached', '90.00', false]],
      'another limit is reached',
    )
    books.now += 31 * DAY
    await first.check()
    assert.equal((await news()).length, 4, 'another month')
  })
})

describe('an engine', () => {
  it('is reported when it has been down for a minute, and when it has been back for a minute', async () => {
    let isUp = true
    const engines = () => ['a', 'b'].map((lane) => ({ url: 'http://e', machine: undefined, lane, isUp }))
    const watch = await watchWith({ engines })
    const after = async (ms: number) => {
      books.now += ms
      await watch.check()
      return news()
    }
    assert.deepEqual(await after(MINUTE), [])
    isUp = false
    assert.deepEqual(await after(1), [])
    assert.deepEqual(await after(MINUTE - 1), [])
    isUp = true
    assert.deepEqual(await after(1), [], 'it has flapped')
    isUp = false
    assert.deepEqual(await after(1), [])
    assert.deepEqual(await after(MINUTE), [['engine.down', { url: 'http://e', lanes: ['a', 'b'] }]])
    assert.deepEqual(await after(MINUTE), [])
    const restarted = await watchWith({ engines })
    books.now += MINUTE
    await restarted.check()
    assert.deepEqual(await news(), [], 'it is still down after a restart')
    isUp = true
    await after(1)
    assert.deepEqual(await after(MINUTE), [['engine.up', { url: 'http://e', lanes: ['a', 'b'] }]])
  })

  it('of one machine is not taken for that of another one at the same address', async () => {
    const url = 'http://127.0.0.1:8101'
    const watchOn = (machine: string, isUp: boolean): Promise<Watch> =>
      watchWith({ engines: () => [{ url, machine, lane: 'a', isUp }] })
    const broken = await watchOn('one', false)
    const sound = await watchOn('other', true)
    books.now += MINUTE
    await broken.check()
    await sound.check()
    assert.deepEqual(await news(), [['engine.down', { url, lanes: ['a'] }]])
  })

  it('is one of this machine at a loopback address or a unix socket', () => {
    const machineOf = (url: string): string | undefined =>
      engineStates({ addresses: () => [['a', { url, isUp: true, inFlight: 0 }]] })[0]!.machine
    for (const url of [
      'http://127.0.0.1:8101',
      'http://localhost/v1',
      'http://[::1]:1',
      'unix:/run/a.sock',
      'embedded',
    ]) {
      assert.equal(machineOf(url), hostname(), url)
    }
    for (const url of ['http://gpu-1:8000/v1', 'https://10.0.0.1']) assert.equal(machineOf(url), undefined, url)
  })
})

describe('a lane', () => {
  it('is reported when more than 80 % of its queue was full for two minutes', async () => {
    let queueDepth = 8
    const lanes = async () => [{ lane: 'a', queueDepth, maxQueueDepth: 10 }]
    const watch = await watchWith({ lanes })
    const after = async (ms: number) => {
      books.now += ms
      await watch.check()
      return news()
    }
    assert.deepEqual(await after(2 * MINUTE), [])
    queueDepth = 9
    assert.deepEqual(await after(1), [])
    assert.deepEqual(await after(2 * MINUTE - 1), [])
    assert.deepEqual(await after(1), [['lane.saturated', { lane: 'a', queue_depth: 9, max_queue_depth: 10 }]])
    queueDepth = 0
    await after(1)
    assert.deepEqual(await after(2 * MINUTE), [['lane.recovered', { lane: 'a', queue_depth: 0, max_queue_depth: 10 }]])
  })
})

describe('an invoice', () => {
  it('is reported when it is issued, overdue, and paid', async () => {
    const price = await books.price('m', { per_image: '10.00' }, october.from)
    await books.settle([await books.row(acme, 'm', price, october.from + 1, { images: 1 })])
    const { number, due } = await books.invoicing.issue(acme, october)
    const issued = { workspace: 'acme', number, kind: 'tax_invoice', period: '2026-10', total: '11.00', due }
    assert.deepEqual(await news(), [['invoice.issued', issued]])
    const watch = await watchWith({ overdueInvoices: () => newlyOverdue(books.store, books.now) })
    assert.deepEqual(await news(), [])
    books.now += 16 * DAY
    await watch.check()
    await watchWith({ overdueInvoices: () => newlyOverdue(books.store, books.now) })
    assert.deepEqual(await news(), [['invoice.overdue', { workspace: 'acme', number, due }]])
    const paid = { paidOn: '2026-11-18', reference: 'a' }
    await books.invoicing.payments.record(number!, { ...paid, amount: '5.00' })
    assert.deepEqual(await news(), [], 'a part was paid')
    books.now++
    await books.invoicing.payments.record(number!, { ...paid, reference: 'b', amount: undefined })
    assert.deepEqual(await news(), [['invoice.paid', { workspace: 'acme', number, paid_on: '2026-11-18' }]])
    await books.invoicing.credit(acme, october, null, 'Goodwill')
    const [[type, note] = []] = await news()
    assert.deepEqual([type, note?.['number'], note?.['kind']], ['invoice.issued', 'ADJ-000001', 'adjustment_note'])
  })

  it('is reported as paid by each payment after which nothing is owed, but not by a refund or a refused payment', async () => {
    const price = await books.price('m', { per_image: '10.00' }, october.from)
    await books.settle([await books.row(acme, 'm', price, october.from + 1, { images: 1 })])
    const number = (await books.invoicing.issue(acme, october)).number!
    const { payments } = books.invoicing
    const pay = (reference: string) => payments.record(number, { paidOn: '2026-11-01', reference, amount: undefined })
    const paid = ['invoice.paid', { workspace: 'acme', number, paid_on: '2026-11-01' }]
    await news()
    await pay('a')
    assert.deepEqual(await news(), [paid])
    books.now++
    const late = { number, amount: 1100n, paidOn: '2026-11-01', reference: 'late', recordedAt: books.now }
    assert.equal(await books.store.addPayment(late, 1100n), false, 'it was due before the payment')
    assert.deepEqual(await news(), [])
    await payments.remove(number, 1)
    assert.deepEqual(await news(), [])
    await pay('b')
    assert.deepEqual(await news(), [paid])
    await books.invoicing.creditAmount(acme, october, '1.00', 'Goodwill')
    await news()
    books.now++
    await pay('refund')
    assert.deepEqual(await news(), [])
  })

  it('that was overdue for more than 30 days is not reported', async () => {
    const price = await books.price('m', { per_image: '10.00' }, october.from)
    await books.settle([await books.row(acme, 'm', price, october.from + 1, { images: 1 })])
    await books.invoicing.issue(acme, october)
    await news()
    books.now += 60 * DAY
    assert.deepEqual(await newlyOverdue(books.store, books.now), [])
  })
})

describe('a key', () => {
  it('is reported seven days before it expires, and again if its expiry is moved', async () => {
    const expiresAt = books.now + 8 * DAY
    const key = { id: 'key_1', workspaceId: acme.id, hash: 'h', ending: 'wxyz', name: 'build', createdAt: books.now }
    await books.store.createKey({ ...key, expiresAt, revokedAt: null, ...noLimits })
    const named = { workspace: 'acme', key_id: 'key_1', key_name: 'build', key_ending: 'wxyz' }
    const expires_at = new Date(expiresAt).toISOString()
    assert.deepEqual(await news(), [['key.created', { ...named, expires_at }]])
    const watch = await watchWith({
      expiringKeys: (before, after) => expiringKeys(books.store, { now: books.now, before, after }),
    })
    assert.deepEqual(await news(), [])
    books.now += DAY + 1
    await watch.check()
    books.now += DAY
    await watch.check()
    assert.deepEqual(await news(), [['key.expiring', { ...named, expires_at }]])
    await books.store.changeKey('key_1', { expiresAt: expiresAt + 1 })
    books.now += DAY
    await watch.check()
    assert.equal((await news()).length, 1)
  })
})

describe('old events', () => {
  it('are forgotten after 90 days', async () => {
    await books.store.createKey({
      id: 'key_1',
      workspaceId: acme.id,
      hash: 'h',
      ending: null,
      name: null,
      createdAt: books.now,
      expiresAt: null,
      revokedAt: null,
      ...noLimits,
    })
    books.now += 90 * DAY
    const watch = await watchWith()
    assert.equal((await books.store.eventsToDispatch(9)).length, 1)
    books.now += 10 * MINUTE
    await watch.check()
    assert.deepEqual(await books.store.eventsToDispatch(9), [])
  })
})
