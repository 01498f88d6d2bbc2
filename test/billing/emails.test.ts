import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { smtpDelivery } from '../../src/billing/invoices/emails/smtp.ts'
import { openSender, type Sender } from '../../src/delivery/sender.ts'
import { emailSchedule, isFinalRefusal } from '../../src/delivery/smtp-transport.ts'
import { openInvoicing, type Invoicing } from '../../src/billing/invoices/invoices.ts'
import { openRowLinks } from '../../src/billing/invoices/rows/row-links.ts'
import type { SmtpServer } from '../../src/shared/smtp-server.ts'
import { sydneyMonth } from '../../src/shared/money/sydney-time.ts'
import type { AlarmClock } from '../../src/shared/clock.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import { seller, testBooks, type TestBooks } from '../support/books.ts'

/** Issued documents are sent by SMTP, to a real server on this machine. The time is set by the test. */

const october = sydneyMonth(Date.UTC(2026, 9, 15))
const MINUTE = 60_000

interface Received {
  readonly from: string
  readonly to: readonly string[]
  readonly text: string
}

const clock: AlarmClock = { now: () => books.now, monotonic: () => 0, after: () => () => {} }

let books: TestBooks
let workspace: Workspace
let invoicing: Invoicing
let received: Received[]
const servers: SMTPServer[] = []
const senders: Sender[] = []

/** Resolves to the port. */
async function startServer(options: SMTPServerOptions = {}, port = 0): Promise<number> {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        const from = mailFrom === false ? '' : mailFrom.address
        received.push({ from, to: rcptTo.map((it) => it.address), text: Buffer.concat(chunks).toString() })
        done()
      })
    },
    ...options,
  })
  // A client that refuses the certificate ends the connection.
  server.on('error', () => {})
  servers.push(server)
  server.listen(port, '127.0.0.1')
  await once(server.server, 'listening')
  return (server.server.address() as AddressInfo).port
}

const stopServer = (server: SMTPServer): Promise<void> =>
  new Promise((done) => {
    server.close(done)
  })

const settings = (port: number, changes: Partial<SmtpServer> = {}): SmtpServer => ({
  host: '127.0.0.1',
  port,
  encryption: 'none',
  from: 'invoices@example.com',
  replyTo: 'accounts@example.com',
  login: () => undefined,
  ...changes,
})

/** Its timer never fires, so that only the test decides when it sends. */
async function senderTo(to: SmtpServer): Promise<Sender> {
  const rowLinks = openRowLinks(books.store, clock, { publicUrl: seller.publicUrl, days: 90 })
  return senderBy(smtpDelivery(to, { invoicing, rowLinks, fonts: [] }))
}

async function senderBy(deliver: ReturnType<typeof smtpDelivery>): Promise<Sender> {
  const sender = openSender({
    outbox: { claim: books.store.claimEmail, finish: books.store.finishEmail },
    clock,
    deliver,
    isFinal: isFinalRefusal,
    schedule: emailSchedule,
    events: { sent() {}, notSent() {}, failed: (error) => assert.fail(error) },
  })
  senders.push(sender)
  await sender.sendDue()
  return sender
}

async function issue(email: string | null = 'accounts@acme.example'): Promise<string> {
  workspace = await books.workspace('acme')
  const price = await books.price('m', { per_image: '10.00' }, october.from)
  await books.settle([await books.row(workspace, 'm', price, october.from + 1, { images: 1 })])
  await books.store.setBuyer(workspace.id, { ...workspace.buyer, email })
  const { number } = await invoicing.issue(workspace, october)
  return number!
}

const emailOf = async (number: string) => invoicing.emails.of(await invoicing.byNumber(number))

beforeEach(async () => {
  books = await testBooks(october.to + MINUTE)
  invoicing = openInvoicing(books.store, clock, seller, true)
  received = []
})
afterEach(async () => {
  await Promise.all(senders.splice(0).map((sender) => sender.close()))
  await Promise.all(servers.splice(0).map(stopServer))
  await books.close()
})

describe('the e-mail of an issued document', () => {
  it('has the amount, the day and the PDF, and is sent once', async () => {
    const number = await issue()
    const sender = await senderTo(settings(await startServer()))
    await sender.sendDue()
    assert.equal(received.length, 1)
    const [{ from, to, text }] = received as [Received]
    assert.deepEqual([from, to], ['invoices@example.com', ['accounts@acme.example']])
    for (const part of [
      `Subject: Tax invoice ${number} from Weir Example Pty Ltd`,
      'From: Weir Example Pty Ltd <invoices@example.com>',
      'Reply-To: accounts@example.com',
      'Amount due: A$11.00 by 15 November 2026',
      'BSB 000-000, account 12345678.',
      `filename=${number}.pdf`,
      Buffer.from('%PDF-1.').toString('base64').slice(0, 8),
    ]) {
      assert.ok(text.includes(part), `${part} in ${text.slice(0, 1500)}`)
    }
    const sentAt = new Date(books.now).toISOString()
    assert.deepEqual(await emailOf(number), {
      state: 'sent',
      recipient: 'accounts@acme.example',
      attempts: 1,
      sent_at: sentAt,
      next_attempt_at: null,
      last_error: null,
    })
  })

  it('of an adjustment note is sent, too', async () => {
    const number = await issue()
    await invoicing.credit(workspace, october, null, 'Goodwill')
    await senderTo(settings(await startServer()))
    assert.equal(received.length, 2)
    const note = received.find(({ text }) => text.includes('Subject: Adjustment note ADJ-000001'))
    assert.ok(note?.text.includes('Credited, including GST: A$11.00'))
    assert.ok(note?.text.includes(`It adjusts ${number}.`))
  })

  it('waits while the server is away, and is sent when it is back', async () => {
    const number = await issue()
    const port = await startServer()
    await stopServer(servers.pop()!)
    const sender = await senderTo(settings(port))
    const email = await emailOf(number)
    assert.deepEqual([email?.state, email?.attempts], ['queued', 1])
    assert.match(email?.last_error ?? '', /ECONNREFUSED/)
    await startServer({}, port)
    books.now += MINUTE
    await sender.sendDue()
    assert.deepEqual([received.length, (await emailOf(number))?.state], [1, 'sent'])
  })

  it('is tried ten times, after longer and longer pauses, and is sent again on request', async () => {
    const number = await issue()
    const sender = await senderBy(() => Promise.reject(new Error(`no\n${'x'.repeat(400)}`)))
    const pauses: number[] = []
    for (let attempt = 1; attempt < 10; attempt++) {
      const email = await emailOf(number)
      assert.deepEqual([email?.state, email?.attempts], ['queued', attempt])
      assert.equal(email?.last_error, `no ${'x'.repeat(297)}`)
      const next = Date.parse(email.next_attempt_at ?? '')
      pauses.push((next - books.now) / MINUTE)
      books.now = next - 1
      await sender.sendDue()
      assert.equal((await emailOf(number))?.attempts, attempt, 'not before its time')
      books.now = next
      await sender.sendDue()
    }
    assert.deepEqual(pauses, [1, 5, 30, 120, 720, 720, 720, 720, 720])
    const failed = await emailOf(number)
    assert.deepEqual([failed?.state, failed?.attempts, failed?.next_attempt_at], ['failed', 10, null])
    await invoicing.emails.send(await invoicing.byNumber(number), 'new@acme.example')
    await senderTo(settings(await startServer()))
    assert.deepEqual(
      received.map(({ to }) => to),
      [['new@acme.example']],
    )
  })

  it('fails at once if the server refuses the recipient for good, but not if it refuses it for now', async () => {
    let code = 450
    const onRcptTo: SMTPServerOptions['onRcptTo'] = (_, __, done) =>
      done(Object.assign(new Error('unknown mailbox'), { responseCode: code }))
    const number = await issue()
    const sender = await senderTo(settings(await startServer({ onRcptTo })))
    assert.equal((await emailOf(number))?.state, 'queued')
    code = 550
    books.now += 5 * MINUTE
    await sender.sendDue()
    const email = await emailOf(number)
    assert.deepEqual([email?.state, email?.attempts], ['failed', 2])
    assert.match(email?.last_error ?? '', /unknown mailbox/)
  })

  it('that another process was sending when it crashed is sent when the lease ends', async () => {
    const number = await issue()
    assert.ok(await books.store.claimEmail(books.now, books.now + emailSchedule.leaseMs))
    const sender = await senderTo(settings(await startServer()))
    assert.equal(received.length, 0)
    books.now += emailSchedule.leaseMs
    await sender.sendDue()
    assert.deepEqual([received.length, (await emailOf(number))?.attempts], [1, 2])
  })

  it('is not queued without SMTP or without an address, which is said when it is asked for', async () => {
    const silent = openInvoicing(books.store, clock, seller)
    const number = await issue(null)
    const document = await invoicing.byNumber(number)
    assert.equal(await emailOf(number), null)
    await assert.rejects(silent.emails.send(document, 'a@b.example'), /Set smtp in weir.yaml/)
    await assert.rejects(invoicing.emails.send(document, null), /weir workspaces set acme --buyer-email/)
  })
})

describe('the connection to the server', () => {
  it('signs in with the password', async () => {
    let used: unknown
    const port = await startServer({
      authOptional: false,
      allowInsecureAuth: true,
      onAuth({ username, password }, _, done) {
        used = [username, password]
        done(null, { user: username })
      },
    })
    await issue()
    await senderTo(settings(port, { login: () => ({ user: 'weir', password: 'secret' }) }))
    assert.deepEqual([used, received.length], [['weir', 'secret'], 1])
  })

  it('is refused without STARTTLS, and with a certificate that is not trusted', async () => {
    const number = await issue()
    const plain = await senderTo(settings(await startServer(), { encryption: 'starttls' }))
    await plain.close()
    assert.match((await emailOf(number))?.last_error ?? '', /STARTTLS/)
    books.now += MINUTE
    // The server has a self-signed certificate of its own.
    await senderTo(settings(await startServer({ disabledCommands: [] }), { encryption: 'starttls' }))
    assert.match((await emailOf(number))?.last_error ?? '', /certificate/)
    assert.deepEqual(received, [])
  })
})
