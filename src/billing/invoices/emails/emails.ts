import { ApiError } from '../../../shared/errors.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { InvoiceDocument } from '../invoice-document.ts'
import type { EmailState, EmailStore, InvoiceEmail } from './email-store.ts'

/** The e-mail of a document, as the operator sees it. */
export interface EmailView {
  readonly state: EmailState
  readonly recipient: string
  readonly attempts: number
  readonly sent_at: string | null
  /** null: it is not tried again. */
  readonly next_attempt_at: string | null
  readonly last_error: string | null
}

/** A document with its e-mail; null: it was not queued. */
export type EmailedDocument<Document> = Document & { readonly email: EmailView | null }

export interface InvoiceEmails {
  with<Document extends InvoiceDocument>(documents: readonly Document[]): Promise<readonly EmailedDocument<Document>[]>
  of(document: InvoiceDocument): Promise<EmailView | null>
  /** Queues an e-mail, also if one was sent before. */
  send(document: InvoiceDocument, recipient: string | null): Promise<void>
}

export function openEmails(store: EmailStore, clock: Clock, isMailed: boolean): InvoiceEmails {
  async function viewsOf(documents: readonly InvoiceDocument[]): Promise<ReadonlyMap<string | null, EmailView>> {
    const numbers = documents.flatMap(({ number }) => (number === null ? [] : [number]))
    if (numbers.length === 0) return new Map()
    return new Map((await store.emails(numbers)).map((email) => [email.number, viewOf(email)]))
  }
  return {
    async with(documents) {
      const views = await viewsOf(documents)
      return documents.map((document) => ({ ...document, email: views.get(document.number) ?? null }))
    },
    of: async (document) => (await viewsOf([document])).get(document.number) ?? null,
    async send({ number, workspace }, recipient) {
      if (number === null) throw new ApiError('not_found', 'A preview cannot be sent. Issue the invoice first.')
      if (!isMailed) {
        throw new ApiError('conflict', 'This service sends no e-mail. Set smtp in weir.yaml, and restart it.')
      }
      if (recipient === null) {
        throw new ApiError(
          'conflict',
          `The buyer of ${workspace} has no e-mail address. Set it with: weir workspaces set ${workspace} --buyer-email ADDRESS`,
        )
      }
      if (await store.queueEmail(number, recipient, clock.now())) return
      throw new ApiError('conflict', `${number} is being sent at the moment. Look at it again in a few minutes.`)
    },
  }
}

function viewOf({ state, recipient, attempts, sentAt, nextAttemptAt, lastError }: InvoiceEmail): EmailView {
  return {
    state,
    recipient,
    attempts,
    sent_at: sentAt === null ? null : new Date(sentAt).toISOString(),
    next_attempt_at: state === 'queued' ? new Date(nextAttemptAt).toISOString() : null,
    last_error: lastError,
  }
}
