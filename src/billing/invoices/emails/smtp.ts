import type { SmtpServer } from '../../../shared/smtp-server.ts'
import { smtpTransport } from '../../../delivery/smtp-transport.ts'
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

/** PDFs for e-mails wait their turn with those that people ask for. */
const client = { owner: 'e-mails', isGone: false, onGone: () => () => {} }

export function smtpDelivery(
  settings: SmtpServer,
  { invoicing, rowLinks, fonts }: SmtpParts,
): (email: ClaimedEmail) => Promise<void> {
  const { from, replyTo } = settings
  const transport = smtpTransport(settings)
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
