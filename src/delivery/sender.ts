import type { AlarmClock } from '../shared/clock.ts'

/** Sends what is due in an outbox. Several processes may do so at once: a lease keeps each item with one of them. */
export interface Sender {
  /** Sends what is due now, one item after the other. */
  sendDue(): Promise<void>
  /** An item that is being sent has a few seconds left. After that, it may be sent again when its lease ends. */
  close(): Promise<void>
}

/** What an attempt came to. */
export interface DeliveryOutcome {
  /** `failed`: it is not tried again, unless the operator asks for it. */
  readonly state: 'queued' | 'sent' | 'failed'
  readonly nextAttemptAt: number
  readonly sentAt: number | null
  readonly lastError: string | null
}

/** Something to send that only the process with this lease may send. */
export interface Claimed {
  /** Counts every attempt that has begun. */
  readonly attempts: number
  readonly leaseUntil: number
}

export interface Outbox<Item extends Claimed> {
  /** Takes an item that is due, so that no other process sends it before the lease ends. */
  claim(now: number, leaseUntil: number): Promise<Item | undefined>
  /** Has no effect if the lease ended and another process has claimed the item. */
  finish(item: Item, outcome: DeliveryOutcome): Promise<void>
}

interface SenderParts<Item extends Claimed> {
  readonly outbox: Outbox<Item>
  readonly clock: AlarmClock
  deliver(item: Item): Promise<void>
  /** Whether it is useless to try again. */
  isFinal(error: unknown): boolean
  readonly schedule: Schedule
  readonly events: SenderEvents<Item>
}

export interface Schedule {
  /** The pause after each failed attempt. There is one more attempt than there are pauses. */
  readonly pausesMs: readonly number[]
  /** Longer than an attempt can take. */
  readonly leaseMs: number
}

export interface SenderEvents<Item> {
  sent(item: Item): void
  /** `state` is `failed` if it is not tried again. */
  notSent(item: Item, reason: string, state: 'queued' | 'failed'): void
  /** The database could not be read or written. */
  failed(error: Error): void
}

const POLL_MS = 5000
const CLOSE_MS = 5000
const MAX_ERROR = 300

export function openSender<Item extends Claimed>(parts: SenderParts<Item>): Sender {
  const { outbox, clock, deliver, isFinal, schedule, events } = parts
  let isClosed = false
  let stopTimer = (): void => {}
  let working: Promise<void> | undefined

  async function attempt(item: Item): Promise<DeliveryOutcome> {
    try {
      await deliver(item)
    } catch (error) {
      const reason = (error as Error).message.replaceAll(/\p{Cc}+/gu, ' ').slice(0, MAX_ERROR)
      const pause = schedule.pausesMs[item.attempts - 1]
      const state = pause === undefined || isFinal(error) ? 'failed' : 'queued'
      events.notSent(item, reason, state)
      return { state, nextAttemptAt: clock.now() + (pause ?? 0), sentAt: null, lastError: reason }
    }
    events.sent(item)
    return { state: 'sent', nextAttemptAt: clock.now(), sentAt: clock.now(), lastError: null }
  }

  async function sendAll(): Promise<void> {
    for (;;) {
      const item = isClosed ? undefined : await outbox.claim(clock.now(), clock.now() + schedule.leaseMs)
      if (!item) return
      await outbox.finish(item, await attempt(item))
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
