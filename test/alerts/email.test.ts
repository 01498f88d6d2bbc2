import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eventEmail, messageOf } from '../../src/alerts/email.ts'
import type { SmtpTransport } from '../../src/delivery/smtp-transport.ts'
import type { SmtpServer } from '../../src/shared/smtp-server.ts'

describe('the e-mail of an event', () => {
  const timestamp = '2026-11-18T03:04:05.678Z'
  const body = (type: string, data: object): string => JSON.stringify({ type, timestamp, data })

  it('has the first field in its subject, and a line for each field that has a value', () => {
    const data = { url: 'http://engine', key_name: null, lanes: ['a', 'b'], max_queue_depth: 3 }
    assert.deepEqual(messageOf(body('engine.down', data)), {
      subject: 'Weir: engine.down (http://engine)',
      text: `An address of an engine has not answered for a minute.

url: http://engine
lanes: a, b
max queue depth: 3
at: ${timestamp}
`,
    })
  })

  it('of an event without fields has its time', () => {
    assert.deepEqual(messageOf(body('key.revoked', { key_name: null })), {
      subject: 'Weir: key.revoked',
      text: `A key was revoked.\n\nat: ${timestamp}\n`,
    })
  })

  it('has the id of the event, and a reply address only if one is configured', async () => {
    const sent: object[] = []
    const transport = { sendMail: async (mail: object) => void sent.push(mail) } as unknown as SmtpTransport
    const server = { from: '"a@b"@mail.example.com' } as SmtpServer
    const delivery = { eventId: 'evt_1', body: body('key.revoked', {}) }
    await eventEmail(transport, server, 'ops@example.com')(delivery)
    await eventEmail(transport, { ...server, replyTo: 'reply@example.com' }, 'ops@example.com')(delivery)
    const mail = {
      from: { name: 'Weir', address: '"a@b"@mail.example.com' },
      // Without a name, the library would read the address as a list.
      to: { name: '', address: 'ops@example.com' },
      messageId: '<evt_1@mail.example.com>',
      ...messageOf(delivery.body),
    }
    assert.deepEqual(sent, [mail, { ...mail, replyTo: 'reply@example.com' }])
  })
})
