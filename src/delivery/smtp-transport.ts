import { createTransport } from 'nodemailer'
import type { SmtpServer } from '../shared/smtp-server.ts'

/** The connection to the configured SMTP server. Loaded only where SMTP is configured, because it takes memory. */

const CONNECTION_MS = 10_000
const GREETING_MS = 10_000
const SOCKET_MS = 30_000

export type SmtpTransport = ReturnType<typeof smtpTransport>

export function smtpTransport({ host, port, encryption, login }: SmtpServer) {
  const auth = login()
  return createTransport({
    host,
    port,
    secure: encryption === 'tls',
    requireTLS: encryption === 'starttls',
    ignoreTLS: encryption === 'none',
    ...(auth ? { auth: { user: auth.user, pass: auth.password } } : {}),
    connectionTimeout: CONNECTION_MS,
    greetingTimeout: GREETING_MS,
    socketTimeout: SOCKET_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}

/** The server has refused the recipient for good. Everything else may be repaired by then. */
export function isFinalRefusal(error: unknown): boolean {
  const { command, responseCode } = error as { readonly command?: unknown; readonly responseCode?: unknown }
  return command === 'RCPT TO' && typeof responseCode === 'number' && responseCode >= 500
}

const MINUTE = 60_000

/** Ten attempts over three days. The lease is longer than an attempt can take within the time limits above. */
export const emailSchedule = {
  pausesMs: [1, 5, 30, 120, 720, 720, 720, 720, 720].map((minutes) => minutes * MINUTE),
  leaseMs: 10 * MINUTE,
}
