import type { Claimed, DeliveryOutcome } from '../../../delivery/sender.ts'

export type EmailState = DeliveryOutcome['state']

/** The e-mail of an issued document. */
export interface InvoiceEmail {
  readonly number: string
  readonly recipient: string
  /** `failed`: it is not tried again, unless the operator asks for it. */
  readonly state: EmailState
  /** Counts every attempt that has begun. */
  readonly attempts: number
  readonly nextAttemptAt: number
  readonly sentAt: number | null
  readonly lastError: string | null
}

/** An e-mail that only the process with this lease may send. */
export interface ClaimedEmail extends Claimed {
  readonly number: string
  readonly recipient: string
}

/** The e-mails of issued documents. Issuing queues the first one of a document; see InvoiceStore. */
export interface EmailStore {
  /** Of those numbers that have one. */
  emails(numbers: readonly string[]): Promise<readonly InvoiceEmail[]>
  /** Queues the e-mail of an issued document, also if it was sent before. false, with no effect, while it is being sent. */
  queueEmail(number: string, recipient: string, now: number): Promise<boolean>
  /** Takes an e-mail that is due, so that no other process sends it before the lease ends. */
  claimEmail(now: number, leaseUntil: number): Promise<ClaimedEmail | undefined>
  /** Has no effect if the lease ended and another process has claimed the e-mail. */
  finishEmail(claimed: ClaimedEmail, outcome: DeliveryOutcome): Promise<void>
}
