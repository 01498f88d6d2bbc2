import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, it, mock } from 'node:test'
import { ReceiverGone, webhookDelivery, type WebhookDelivery } from '../../src/alerts/webhook.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { within } from '../support/waiting.ts'
import { WEBHOOK_SECRET, webhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

/** One attempt to send an event, to a real server on this machine. */

const delivery = { eventId: 'evt_1', body: '{"type":"webhook.test"}' }
const secret = Buffer.from(WEBHOOK_SECRET.slice('whsec_'.length), 'base64')

let receiver: WebhookReceiver
const opened: WebhookDelivery[] = []

function webhookTo(url: string, allowsPrivate = true): WebhookDelivery {
  const webhook = webhookDelivery({ name: 'hook', url, allowsPrivate, secret }, systemClock)
  opened.push(webhook)
  return webhook
}

beforeEach(async () => {
  receiver = await webhookReceiver()
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map((it) => it.close()))
  await receiver.stop()
})

describe('a webhook', () => {
  it('is a signed JSON body with the id of the event', async () => {
    await webhookTo(receiver.url).deliver(delivery)
    const [{ id, path, headers, body } = assert.fail('nothing arrived')] = receiver.received
    assert.deepEqual([id, path, body], ['evt_1', '/hook?tenant=1', delivery.body])
    assert.equal(headers['content-type'], 'application/json')
  })

  it('is delivered by a status from 200 to 299 alone: a redirect is not followed', async () => {
    const webhook = webhookTo(receiver.url)
    for (const status of [302, 307, 400, 404, 500, 503]) {
      receiver.answer = { status, headers: { location: `${receiver.url}&moved` } }
      await assert.rejects(webhook.deliver(delivery), new Error(`HTTP ${status}`))
    }
    receiver.answer = { status: 299 }
    await webhook.deliver(delivery)
    assert.equal(receiver.received.length, 7)
    assert.ok(receiver.received.every(({ path }) => path === '/hook?tenant=1'))
  })

  it('to a receiver that is gone fails in a way of its own', async () => {
    receiver.answer = { status: 410 }
    await assert.rejects(webhookTo(receiver.url).deliver(delivery), ReceiverGone)
  })

  it('is given up after ten seconds without an answer', async () => {
    const timeout = mock.method(AbortSignal, 'timeout', (ms: number) => {
      assert.equal(ms, 10_000)
      return AbortSignal.abort(new Error('the time is up'))
    })
    receiver.answer = undefined
    await assert.rejects(within(10_000, 'it is given up', webhookTo(receiver.url).deliver(delivery)), /the time is up/)
    timeout.mock.restore()
  })

  it('does not wait for an answer that never ends, and hangs up', async () => {
    const hungUp = Promise.withResolvers<void>()
    const server = createServer((_, response) => {
      response.on('close', hungUp.resolve)
      response.writeHead(200).write('…')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    await webhookTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).deliver(delivery)
    await within(10_000, 'the connection ends', hungUp.promise)
    server.closeAllConnections()
    server.close()
  })

  it('does not go to a private address, by name or by number, unless that is allowed', async () => {
    const { port } = new URL(receiver.url)
    await assert.rejects(
      webhookTo(`http://localhost:${port}/`, false).deliver(delivery),
      /localhost resolves to a private address/,
    )
    for (const host of ['127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', '169.254.169.254', '10.0.0.1', '2130706433']) {
      await assert.rejects(webhookTo(`http://${host}:${port}/`, false).deliver(delivery), /is a private address/, host)
    }
    assert.deepEqual(receiver.received, [])
  })
})
