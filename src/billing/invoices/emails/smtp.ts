import { createTransport } from 'nodemailer'
import type { SmtpServer } from '../../../shared/smtp-server.ts'
import { pdfInThread } from '../pdf/pdf-in-thread.ts'
import type { Invoicing } from '../invoices.ts'
import type { RowLinks } from '../rows/row-links.ts'
import { emailMessage } from './email-message.ts'
import type { ClaimedEmail } from './email-store.ts'

/** Sends issued documents by SMTP. Loaded only where SMTP is configured. */

interface SmtpParts {
  readonly invoicing: Pick<Invoicing, 'byNumber' | 'balanced'>
  readonly rowLinks: Pick<RowLinks, 'linked'>
  readonly fonts: readonly string[]
}

const CONNECTION_MS = 10_000
const GREETING_MS = 10_000
const SOCKET_MS = 30_000

/** PDFs for e-mails wait their turn with those that people ask for. */
const client = { owner: 'e-mails', isGone: false, onGone: () => () => {} }

export function smtpDelivery(
  settings: SmtpServer,
  { invoicing, rowLinks, fonts }: SmtpParts,
): (email: ClaimedEmail) => Promise<void> {
  const { host, port, encryption, from, replyTo } = settings
  const auth = settings.login()
  const transport = createTransport({
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
  return async ({ number, recipient }) => {
    const printable = await rowLinks.linked(await invoicing.balanced(await invoicing.byNumber(number)))
    const { subject, text } = emailMessage(printable)
    await transport.sendMail({
      from: { name: printable.seller?.name ?? '', address: from },
      to: { name: '', address: recipient },
      ...(replyTo === undefined ? {} : { replyTo }),
      subject,
      text,
      attachments: [
        {
          filename: `${number}.pdf`,
          content: await pdfInThread(client, printable, fonts),
          contentType: 'application/pdf',
        },
      ],
    })
  }
}

/** The server has refused the recipient for good. Everything else may be repaired by then. */
export function isFinalRefusal(error: unknown): boolean {
  const { command, responseCode } = error as { readonly command?: unknown; readonly responseCode?: unknown }
  return command === 'RCPT TO' && typeof responseCode === 'number' && responseCode >= 500
}
