import type { AlarmClock } from '../../../shared/clock.ts'
import type { ClaimedEmail, EmailOutcome, EmailStore } from './email-store.ts'

/** Sends the e-mails that are due. Several processes may do so at once: a lease keeps each e-mail with one of them. */
export interface EmailSender {
  /** Sends what is due now, one after the other. */
  sendDue(): Promise<void>
  /** An e-mail that is being sent has a few seconds left. After that, it may be sent again when its lease ends. */
  close(): Promise<void>
}

interface EmailSenderParts {
  readonly store: Pick<EmailStore, 'claimEmail' | 'finishEmail'>
  readonly clock: AlarmClock
  deliver(email: ClaimedEmail): Promise<void>
  /** Whether it is useless to try again. */
  isFinal(error: unknown): boolean
  readonly events: EmailEvents
}

export interface EmailEvents {
  sent(email: ClaimedEmail): void
  /** `state` is `failed` if it is not tried again. */
  notSent(email: ClaimedEmail, reason: string, state: 'queued' | 'failed'): void
  /** The database could not be read or written. */
  failed(error: Error): void
}

const POLL_MS = 5000
/** Longer than an attempt can take within the time limits of the connection. */
export const LEASE_MS = 10 * 60_000
const CLOSE_MS = 5000
const MAX_ERROR = 300

const MINUTE = 60_000
/** The pause after each attempt; the last one is repeated. */
const PAUSES_MS = [1, 5, 30, 120, 720].map((minutes) => minutes * MINUTE)
const MAX_ATTEMPTS = 10

export function openEmailSender({ store, clock, deliver, isFinal, events }: EmailSenderParts): EmailSender {
  let isClosed = false
  let stopTimer = (): void => {}
  let working: Promise<void> | undefined

  async function attempt(email: ClaimedEmail): Promise<EmailOutcome> {
    try {
      await deliver(email)
    } catch (error) {
      const reason = (error as Error).message.replaceAll(/\p{Cc}+/gu, ' ').slice(0, MAX_ERROR)
      const state = email.attempts >= MAX_ATTEMPTS || isFinal(error) ? 'failed' : 'queued'
      events.notSent(email, reason, state)
      const pause = PAUSES_MS[email.attempts - 1] ?? PAUSES_MS.at(-1) ?? 0
      return { state, nextAttemptAt: clock.now() + pause, sentAt: null, lastError: reason }
    }
    events.sent(email)
    return { state: 'sent', nextAttemptAt: clock.now(), sentAt: clock.now(), lastError: null }
  }

  async function sendAll(): Promise<void> {
    for (;;) {
      const email = isClosed ? undefined : await store.claimEmail(clock.now(), clock.now() + LEASE_MS)
      if (!email) return
      await store.finishEmail(email, await attempt(email))
    }
  }

  const sendDue = (): Promise<void> =>
    (working ??= sendAll().finally(() => {
      working = undefined
    }))

  async function poll(): Promise<void> {
    try {
      await sendDue()
    } catch (error) {
      events.failed(error as Error)
    }
    if (!isClosed) stopTimer = clock.after(POLL_MS, () => void poll())
  }
  void poll()

  return {
    sendDue,
    async close() {
      isClosed = true
      stopTimer()
      if (!working) return
      const timeUp = Promise.withResolvers<void>()
      const stop = clock.after(CLOSE_MS, timeUp.resolve)
      // A failure was reported by the poll that waits for the same work.
      await Promise.race([working.catch(() => {}), timeUp.promise])
      stop()
    },
  }
}
