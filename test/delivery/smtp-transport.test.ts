import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { SMTPServer } from 'smtp-server'
import { emailSchedule, isFinalRefusal, smtpTransport } from '../../src/delivery/smtp-transport.ts'
import type { SmtpServer } from '../../src/shared/smtp-server.ts'

describe('the connection to an SMTP server', () => {
  const server: SmtpServer = {
    host: 'smtp.example.com',
    port: 587,
    encryption: 'starttls',
    from: 'weir@example.com',
    replyTo: undefined,
    login: () => undefined,
  }
  const optionsOf = (changes: Partial<SmtpServer>) => smtpTransport({ ...server, ...changes }).options as object

  it('is given up after 10 seconds without a connection or a greeting, and 30 seconds of silence', () => {
    const { connectionTimeout, greetingTimeout, socketTimeout, ...others } = optionsOf({}) as Record<string, unknown>
    assert.deepEqual([connectionTimeout, greetingTimeout, socketTimeout], [10_000, 10_000, 30_000])
    assert.deepEqual(others, {
      host: 'smtp.example.com',
      port: 587,
      secure: false,
      requireTLS: true,
      ignoreTLS: false,
      disableFileAccess: true,
      disableUrlAccess: true,
    })
  })

  it('is encrypted and signed in as configured', () => {
    const found = (encryption: SmtpServer['encryption']) => {
      const { secure, requireTLS, ignoreTLS } = optionsOf({ encryption }) as Record<string, unknown>
      return [secure, requireTLS, ignoreTLS]
    }
    assert.deepEqual(
      [found('tls'), found('starttls'), found('none')],
      [
        [true, false, false],
        [false, true, false],
        [false, false, true],
      ],
    )
    const { auth } = optionsOf({ login: () => ({ user: 'u', password: 'p' }) }) as Record<string, unknown>
    assert.deepEqual(auth, { user: 'u', pass: 'p' })
  })

  it('is refused for good by a status from 500 on for the recipient alone', () => {
    const isFinal = (command: string, responseCode?: unknown) => isFinalRefusal({ command, responseCode })
    assert.deepEqual(
      [499, 500, 550].map((code) => isFinal('RCPT TO', code)),
      [false, true, true],
    )
    assert.deepEqual([isFinal('DATA', 550), isFinal('RCPT TO'), isFinal('RCPT TO', '550')], [false, false, false])
  })

  it('is tried ten times over three days, and a lease outlasts an attempt', () => {
    const minutes = emailSchedule.pausesMs.map((ms) => ms / 60_000)
    assert.deepEqual(minutes, [1, 5, 30, 120, 720, 720, 720, 720, 720])
    assert.equal(emailSchedule.leaseMs, 600_000)
  })
})

/** The certificates are for 127.0.0.1 and self-signed, so each test names those it trusts. */
describe('an e-mail over TLS', () => {
  const fixture = (name: string): string =>
    readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url), 'utf8')
  const trusted = getCACertificates('default')
  const received: { readonly text: string; readonly isEncrypted: boolean }[] = []
  const servers: SMTPServer[] = []
  const ports: Record<'tls' | 'starttls' | 'plain', number> = { tls: 0, starttls: 0, plain: 0 }

  before(async () => {
    setDefaultCACertificates([...trusted, fixture('first.cert')])
    const pair = { cert: fixture('first.cert'), key: fixture('first.key') }
    ports.tls = await mailbox({ ...pair, secure: true })
    ports.starttls = await mailbox(pair)
    ports.plain = await mailbox({ disabledCommands: ['STARTTLS'] })
  })
  after(async () => {
    setDefaultCACertificates(trusted)
    await Promise.all(servers.map((it) => new Promise<void>((done) => it.close(() => done()))))
  })

  async function mailbox(options: object): Promise<number> {
    const server = new SMTPServer({
      ...options,
      authOptional: true,
      onData(stream, session, done) {
        let text = ''
        stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
        stream.on('end', () => {
          received.push({ text, isEncrypted: session.secure })
          done()
        })
      },
    })
    // Callers that refuse the certificate break the connection.
    server.on('error', () => {})
    servers.push(server)
    server.listen(0, '127.0.0.1')
    await once(server.server, 'listening')
    return (server.server.address() as AddressInfo).port
  }

  async function send(encryption: 'tls' | 'starttls', port: number, host = '127.0.0.1'): Promise<unknown> {
    const server = { host, port, encryption, from: 'weir@example.com', replyTo: undefined, login: () => undefined }
    const message = {
      from: 'weir@example.com',
      to: 'accounts@acme.example',
      subject: 'Invoice',
      text: `by ${encryption}`,
    }
    return smtpTransport(server).sendMail(message)
  }

  for (const encryption of ['tls', 'starttls'] as const) {
    it(`is encrypted with ${encryption}`, async () => {
      await send(encryption, ports[encryption])
      const { text, isEncrypted } = received.at(-1) ?? {}
      assert.match(text ?? '', new RegExp(`by ${encryption}`))
      assert.equal(isEncrypted, true)
    })

    it(`is not sent with ${encryption} to a server whose certificate is not trusted, or is of another host`, async () => {
      const count = received.length
      await assert.rejects(send(encryption, ports[encryption], 'localhost'), /does not match|altnames/)
      setDefaultCACertificates([...trusted, fixture('second.cert')])
      try {
        await assert.rejects(send(encryption, ports[encryption]), /self-signed certificate/)
      } finally {
        setDefaultCACertificates([...trusted, fixture('first.cert')])
      }
      assert.equal(received.length, count)
    })
  }

  it('is not sent to a server that offers no encryption', async () => {
    const count = received.length
    await assert.rejects(send('starttls', ports.plain), /STARTTLS|TLS/i)
    assert.equal(received.length, count)
  })
})
