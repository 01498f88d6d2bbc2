import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { SMTPServer } from 'smtp-server'
import type { AlertStore } from '../../src/alerts/alert-store.ts'
import { openAlerts, type Alerts } from '../../src/alerts/alerts.ts'
import { openDispatcher } from '../../src/alerts/dispatch.ts'
import { openDelivering, type Delivering } from '../../src/alerts/delivering.ts'
import type { AlertSettings, WebhookEndpoint } from '../../src/alerts/endpoints.ts'
import { alertEvent, deliveryId, type AlertEvent } from '../../src/alerts/events.ts'
import { webhookSchedule } from '../../src/alerts/webhook.ts'
import type { AlarmClock } from '../../src/shared/clock.ts'
import type { SmtpServer } from '../../src/shared/smtp-server.ts'
import { testBooks, type TestBooks } from '../support/books.ts'
import { manualClock } from '../support/manual-clock.ts'
import { scriptedServer } from '../support/scripted-server.ts'
import { eventually } from '../support/waiting.ts'
import { WEBHOOK_SECRET, webhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

/** Events are dispatched and delivered. The time is set by the test, and no timer fires. */

let books: TestBooks
let receiver: WebhookReceiver
const running: Delivering[] = []
const clock: AlarmClock = { now: () => books.now, monotonic: () => 0, after: () => () => {} }

const hook = (changes: Partial<WebhookEndpoint> = {}): WebhookEndpoint => ({
  kind: 'webhook',
  name: 'hook',
  url: receiver.url,
  allowsPrivate: true,
  events: undefined,
  workspace: undefined,
  secret: () => Buffer.from(WEBHOOK_SECRET.slice('whsec_'.length), 'base64'),
  ...changes,
})

async function deliveringTo(endpoints: AlertSettings['endpoints'], smtp?: SmtpServer): Promise<Delivering> {
  const settings = { endpoints, spendThresholds: [] }
  const events = () => ({ sent() {}, notSent() {}, failed: (error: Error) => assert.fail(error) })
  const delivering = await openDelivering({ store: books.store, settings, smtp, clock, events })
  running.push(delivering)
  await delivering.sendDue()
  return delivering
}

const downloaded = (model: string): AlertEvent =>
  alertEvent('download.finished', { unique: [model], at: books.now, data: { model } })
const alertsOf = (endpoints: AlertSettings['endpoints']): Alerts => openAlerts(books.store, clock, endpoints)
const sentModels = () => receiver.received.map(({ event }) => String(event.data['model']))

beforeEach(async () => {
  // The signature carries the time, which the receiver checks.
  books = await testBooks(Date.now())
  receiver = await webhookReceiver()
})
afterEach(async () => {
  await Promise.all(running.splice(0).map((it) => it.close()))
  await receiver.stop()
  await books.close()
})

describe('the database', () => {
  it('is polled for new events every two seconds, and without endpoints every ten minutes', async () => {
    const polls = async (endpoints: AlertSettings['endpoints']): Promise<readonly number[]> => {
      const pauses: number[] = []
      const dispatcher = openDispatcher({
        store: books.store,
        endpoints,
        clock: { ...clock, after: (ms) => (pauses.push(ms), () => {}) },
        dispatched() {},
        failed: (error) => assert.fail(error),
      })
      await dispatcher.dispatchAll()
      while (pauses.length === 0) await new Promise((resolve) => setImmediate(resolve))
      await dispatcher.close()
      return pauses
    }
    assert.deepEqual(await polls([hook()]), [2000])
    assert.deepEqual(await polls([]), [600_000])
  })
})

describe('an event', () => {
  it('is sent once to each endpoint that wants it, under one id', async () => {
    await books.workspace('acme')
    const acme = (await books.store.workspaces())[0]!
    const other = { name: 'other', url: `${receiver.url}&other` }
    const endpoints = [
      hook(),
      hook(other),
      hook({ name: 'keys', events: ['key.created'] }),
      hook({ name: 'acme', workspace: 'acme' }),
      hook({ name: 'acme-keys', workspace: 'acme', events: ['key.created'] }),
    ]
    const overdue = alertEvent('invoice.overdue', {
      unique: ['INV-1'],
      at: books.now,
      workspaceId: acme.id,
      data: { number: 'INV-1', due: '2026-11-01' },
    })
    await books.store.addEvents([downloaded('a'), overdue])
    const delivering = await deliveringTo(endpoints)
    await delivering.sendDue()
    const { data } = await alertsOf(endpoints).page({ limit: 9 })
    assert.deepEqual(data.map(({ endpoint, event, state }) => `${endpoint} ${event} ${state}`).toSorted(), [
      'acme invoice.overdue sent',
      'hook download.finished sent',
      'hook invoice.overdue sent',
      'other download.finished sent',
      'other invoice.overdue sent',
    ])
    assert.equal(receiver.received.length, 5)
    assert.deepEqual(new Set(receiver.received.map(({ id }) => id)), new Set([downloaded('a').id, overdue.id]))
    const sent = receiver.received.find(({ id }) => id === overdue.id)
    assert.deepEqual(sent?.event, {
      type: 'invoice.overdue',
      timestamp: new Date(books.now).toISOString(),
      data: { workspace: 'acme', number: 'INV-1', due: '2026-11-01' },
    })
  })

  it('is tried ten times over three days, as Standard Webhooks suggests, and can be replayed under its id', async () => {
    receiver.answer = { status: 500 }
    await books.store.addEvents([downloaded('a')])
    const started = books.now
    const delivering = await deliveringTo([hook()])
    const id = deliveryId(downloaded('a').id, 'hook')
    const alerts = alertsOf([hook()])
    const due: number[] = [0]
    for (let attempt = 1; attempt < 10; attempt++) {
      const { state, attempts, next_attempt_at, last_error } = await alerts.delivery(id)
      assert.deepEqual([state, attempts], ['queued', attempt])
      assert.match(last_error ?? '', attempt === 1 ? /^HTTP 500$/ : /ECONNREFUSED/)
      const next = Date.parse(next_attempt_at ?? '')
      due.push((next - books.now) / 1000)
      books.now = next - 1
      await delivering.sendDue()
      assert.equal((await alerts.delivery(id)).attempts, attempt, 'not before its time')
      books.now = next
      // The receiver would refuse a signature of another time.
      await receiver.stop()
      await delivering.sendDue()
    }
    assert.deepEqual(due, [0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400])
    const failed = await alerts.delivery(id)
    assert.deepEqual([failed.state, failed.attempts, failed.next_attempt_at], ['failed', 10, null])
    assert.match(failed.last_error ?? '', /ECONNREFUSED/)
    await receiver.start()
    receiver.answer = { status: 200 }
    books.now = started
    const replayed = await alerts.replay(id)
    assert.deepEqual(
      [replayed.state, replayed.attempts, replayed.last_error],
      ['queued', 0, null],
      'it has all attempts again',
    )
    await delivering.sendDue()
    assert.equal((await alerts.delivery(id)).state, 'sent')
    assert.deepEqual(new Set(receiver.received.map((it) => it.id)), new Set([downloaded('a').id]))
    assert.equal(new Set(receiver.received.map(({ body }) => body)).size, 1, 'every attempt sends the same bytes')
  })

  it('that a process was sending when it was killed is sent again when the lease ends', async () => {
    await books.store.addEvents([downloaded('a')])
    const now = books.now
    await books.store.dispatchEvents([{ id: downloaded('a').id, body: '{"type":"x"}', endpoints: ['hook'] }], now)
    assert.ok(await books.store.claimDelivery(hook(), now, now + webhookSchedule.leaseMs))
    const delivering = await deliveringTo([hook()])
    assert.equal(receiver.received.length, 0)
    books.now += webhookSchedule.leaseMs
    await delivering.sendDue()
    assert.equal(receiver.received.length, 1)
  })

  it('that two replicas dispatch and send is sent once', async () => {
    await books.store.addEvents(['a', 'b', 'c', 'd', 'e'].map(downloaded))
    await Promise.all([deliveringTo([hook()]), deliveringTo([hook()])])
    assert.deepEqual(sentModels().toSorted(), ['a', 'b', 'c', 'd', 'e'])
  })

  it('does not wait for another endpoint that is slow', async () => {
    const slow = await webhookReceiver()
    slow.answer = undefined
    await books.store.addEvents([downloaded('a'), downloaded('b')])
    const both = deliveringTo([hook({ name: 'slow', url: slow.url }), hook()])
    while (receiver.received.length < 2 || slow.received.length < 1) await new Promise(setImmediate)
    await slow.stop()
    await both
    assert.deepEqual(sentModels().toSorted(), ['a', 'b'])
  })
})

describe('what sends events', () => {
  /** Timers ring when the test lets time pass. */
  async function stage(changes: Partial<AlertStore>, url = receiver.url) {
    const { clock: timers, alarms, advance } = manualClock()
    const failures: string[] = []
    const store = { ...books.store, ...changes }
    const events = () => ({ sent() {}, notSent() {}, failed: ({ message }: Error) => void failures.push(message) })
    const settings = { endpoints: [hook({ url })], spendThresholds: [] }
    const parts = { store, settings, smtp: undefined, clock: { ...timers, now: () => books.now }, events }
    const delivering = await openDelivering(parts)
    running.push(delivering)
    await eventually('it has looked for events and for deliveries', () => alarms.size === 2)
    return { delivering, alarms, advance, failures }
  }

  it('sends a new event at once, and reports if it cannot', async () => {
    const { advance } = await stage({})
    await books.store.addEvents([downloaded('a')])
    advance(2000)
    await eventually('it is sent', () => receiver.received.length === 1)
    const failing = await stage({ claimDelivery: () => Promise.reject(new Error('the database is away')) })
    assert.deepEqual(failing.failures, ['the database is away'])
    await books.store.addEvents([downloaded('b')])
    failing.advance(2000)
    await eventually('it is reported', () => failing.failures.length === 2)
  })

  it('tries again later if it cannot be noted that a receiver is gone', async () => {
    const { delivering } = await stage({ disableEndpoint: () => Promise.reject(new Error('the database is away')) })
    receiver.answer = { status: 410 }
    await books.store.addEvents([downloaded('a')])
    await delivering.sendDue()
    const [delivery] = await books.store.deliveries({ limit: 1 })
    assert.deepEqual([delivery?.state, delivery?.lastError], ['queued', 'the database is away'])
  })

  it('leaves no timer at its end', async () => {
    const { delivering, alarms } = await stage({})
    await delivering.close()
    assert.equal(alarms.size, 0)
  })

  it('leaves no connection at its end to a receiver that has not answered in five seconds', async (t) => {
    const silent = await scriptedServer(t, () => undefined)
    const { delivering, alarms, advance } = await stage({}, `${silent.url}/`)
    await books.store.addEvents([downloaded('a')])
    const sending = delivering.sendDue()
    await eventually('it is being sent', () => silent.asked.length === 1)
    const closing = delivering.close()
    await eventually('it waits for the attempt alone', () => alarms.size === 1)
    advance(5000)
    await closing
    await eventually('the connection is closed', () => silent.left() === 1, 5000)
    await sending
  })
})

describe('a receiver that is gone', () => {
  it('gets nothing until a test or a replay is asked for; then nothing is lost', async () => {
    receiver.answer = { status: 410 }
    await books.store.addEvents([downloaded('a')])
    const delivering = await deliveringTo([hook()])
    const alerts = alertsOf([hook()])
    assert.equal((await alerts.endpoints())[0]?.disabled_at, new Date(books.now).toISOString())
    await books.store.addEvents([downloaded('b')])
    books.now += 5000
    await delivering.sendDue()
    assert.deepEqual(sentModels(), ['a'])
    assert.equal(await books.store.oldestUndelivered(['hook', 'other']), books.now - 5000)
    assert.equal(await books.store.oldestUndelivered(['other']), undefined)
    receiver.answer = { status: 200 }
    const test = await alerts.test('hook')
    assert.deepEqual([test.event, test.state, test.endpoint], ['webhook.test', 'queued', 'hook'])
    await delivering.sendDue()
    assert.deepEqual(sentModels().slice(1).toSorted(), ['a', 'b', 'undefined'])
    assert.equal((await alerts.endpoints())[0]?.disabled_at, null)
    assert.equal(await books.store.oldestUndelivered(['hook']), undefined)
  })
})

describe('operators', () => {
  it('get an error for what does not exist', async () => {
    const alerts = alertsOf([hook()])
    await assert.rejects(alerts.test('another'), /weir.yaml has no endpoint "another"/)
    await assert.rejects(alerts.replay('dlv_1'), /There is no delivery "dlv_1"/)
    await assert.rejects(alerts.page({ before: 'dlv_1', limit: 1 }), /'before' must be/)
  })

  it('see deliveries in pages', async () => {
    await books.store.addEvents(['a', 'b', 'c'].map(downloaded))
    await deliveringTo([hook()])
    const alerts = alertsOf([hook()])
    const first = await alerts.page({ limit: 2 })
    const last = await alerts.page({ limit: 2, before: first.next ?? '' })
    assert.deepEqual([first.data.length, last.data.length, last.next], [2, 1, null])
    assert.equal(new Set([...first.data, ...last.data].map(({ id }) => id)).size, 3)
    const sent = new Map(receiver.received.map(({ id, body }) => [id, body]))
    for (const { event_id: id, body } of first.data) assert.equal(body, sent.get(id))
  })
})

describe('the e-mail of an event', () => {
  it('says what happened, with the id of the event', async () => {
    const mails: string[] = []
    const mailbox = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      onData(stream, _, done) {
        let text = ''
        stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
        stream.on('end', () => {
          mails.push(text)
          done()
        })
      },
    })
    mailbox.listen(0, '127.0.0.1')
    await once(mailbox.server, 'listening')
    const { port } = mailbox.server.address() as AddressInfo
    const smtp: SmtpServer = {
      host: '127.0.0.1',
      port,
      encryption: 'none',
      from: 'weir@example.com',
      replyTo: undefined,
      login: () => undefined,
    }
    const to = 'ops@example.com'
    const place = { name: `mailto:${to}`, url: `mailto:${to}`, recipient: to, events: undefined, workspace: undefined }
    await books.store.addEvents([downloaded('meta/llama')])
    await deliveringTo([hook(), { kind: 'email', ...place }], smtp)
    assert.equal(mails.length, 1)
    assert.deepEqual(sentModels(), ['meta/llama'])
    for (const part of [
      'To: ops@example.com',
      'Subject: Weir: download.finished (meta/llama)',
      `Message-ID: <${downloaded('meta/llama').id}@example.com>`,
      'A model was downloaded to this machine.',
      'model: meta/llama',
    ]) {
      assert.ok(mails[0]?.includes(part), `${part} in ${mails[0]}`)
    }
    await new Promise<void>((done) => {
      mailbox.close(done)
    })
  })
})
