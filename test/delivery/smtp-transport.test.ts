import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
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
