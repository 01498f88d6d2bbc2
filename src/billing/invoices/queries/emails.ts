import type { EmailState, EmailStore, InvoiceEmail } from '../emails/email-store.ts'
import type { IssuedInvoice } from '../invoice-store.ts'
import { command, query, readRows, writeOne, type Database, type Row, type Statement } from '../../../store/database.ts'

/** Queues the e-mail of a document, if it was issued in this transaction and its buyer has an address. */
export function addEmail({ number, workspaceId, issuedAt }: IssuedInvoice): Statement {
  return command(
    `INSERT INTO invoice_emails (number, recipient, state, attempts, next_attempt_at, lease_until)
     SELECT number, buyer_email, 'queued', 0, issued_at, 0
     FROM invoices JOIN workspaces ON workspaces.id = invoices.workspace_id
     WHERE number = ? AND workspace_id = ? AND issued_at = ? AND buyer_email IS NOT NULL
     ON CONFLICT DO NOTHING`,
    number,
    workspaceId,
    issuedAt,
  )
}

const QUEUE = `INSERT INTO invoice_emails (number, recipient, state, attempts, next_attempt_at, lease_until)
  VALUES (?, ?, 'queued', 0, ?, 0)
  ON CONFLICT (number) DO UPDATE SET recipient = excluded.recipient, state = 'queued', attempts = 0,
    next_attempt_at = excluded.next_attempt_at, sent_at = NULL, last_error = NULL
  WHERE invoice_emails.lease_until <= ? RETURNING number`

/** PostgreSQL checks the outer condition again after waiting for another process that claims the same row. */
const CLAIM = `UPDATE invoice_emails SET attempts = attempts + 1, lease_until = ?
  WHERE state = 'queued' AND lease_until <= ? AND number = (
    SELECT number FROM invoice_emails WHERE state = 'queued' AND next_attempt_at <= ? AND lease_until <= ?
    ORDER BY next_attempt_at, number LIMIT 1
  ) RETURNING number, recipient, attempts`

export function emailQueries(database: Database): EmailStore {
  return {
    async emails(numbers) {
      const rows = await readRows(
        database,
        `SELECT number, recipient, state, attempts, next_attempt_at, sent_at, last_error FROM invoice_emails
         WHERE number IN (${database.dialect.selectTexts('?')})`,
        JSON.stringify(numbers),
      )
      return rows.map(toEmail)
    },
    async queueEmail(number, recipient, now) {
      const queuing = query(QUEUE, number, recipient, now, now)
      const [queued] = await database.transact({ access: 'write', locks: [], statements: [queuing] })
      return queued?.length === 1
    },
    async claimEmail(now, leaseUntil) {
      const claiming = query(CLAIM, leaseUntil, now, now, now)
      const [claimed] = await database.transact({ access: 'write', locks: [], statements: [claiming] })
      const row = claimed?.[0]
      if (!row) return undefined
      const attempts = Number(row['attempts'])
      return { number: String(row['number']), recipient: String(row['recipient']), attempts, leaseUntil }
    },
    finishEmail: ({ number, leaseUntil }, { state, nextAttemptAt, sentAt, lastError }) =>
      writeOne(
        database,
        `UPDATE invoice_emails SET state = ?, next_attempt_at = ?, sent_at = ?, last_error = ?, lease_until = 0
         WHERE number = ? AND lease_until = ?`,
        state,
        nextAttemptAt,
        sentAt,
        lastError,
        number,
        leaseUntil,
      ),
  }
}

function toEmail(row: Row): InvoiceEmail {
  const { sent_at: sentAt, last_error: lastError } = row
  return {
    number: String(row['number']),
    recipient: String(row['recipient']),
    state: String(row['state']) as EmailState,
    attempts: Number(row['attempts']),
    nextAttemptAt: Number(row['next_attempt_at']),
    sentAt: sentAt === null ? null : Number(sentAt),
    lastError: lastError as string | null,
  }
}
