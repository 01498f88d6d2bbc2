import type { AlarmClock } from '../shared/clock.ts'
import type { AlertStore } from './alert-store.ts'
import { subscribersOf, type AlertEndpoint } from './endpoints.ts'
import { bodyOf } from './events.ts'

/** Gives each new event a delivery for each endpoint that wants it. */
export interface Dispatcher {
  /** Dispatches every event that waits for it. */
  dispatchAll(): Promise<void>
  close(): Promise<void>
}

interface DispatcherParts {
  readonly store: Pick<AlertStore, 'dispatchEvents' | 'eventsToDispatch'>
  readonly endpoints: readonly AlertEndpoint[]
  readonly clock: AlarmClock
  /** There are new deliveries. */
  dispatched(): void
  failed(error: Error): void
}

const POLL_MS = 2000
/**
 * Without endpoints nothing is sent. Events are still dispatched, to no endpoint, so that an endpoint that is configured
 * later does not get all events of before.
 */
const POLL_WITHOUT_ENDPOINTS_MS = 10 * 60_000
const AT_ONCE = 100

export function openDispatcher({ store, endpoints, clock, dispatched, failed }: DispatcherParts): Dispatcher {
  const pollMs = endpoints.length === 0 ? POLL_WITHOUT_ENDPOINTS_MS : POLL_MS
  let isClosed = false
  let stopTimer = (): void => {}

  async function dispatchAll(): Promise<void> {
    for (;;) {
      const events = isClosed ? [] : await store.eventsToDispatch(AT_ONCE)
      if (events.length === 0) return
      await store.dispatchEvents(
        events.map((event) => ({ id: event.id, body: bodyOf(event), endpoints: subscribersOf(event, endpoints) })),
        clock.now(),
      )
      dispatched()
    }
  }

  async function poll(): Promise<void> {
    try {
      await dispatchAll()
    } catch (error) {
      failed(error as Error)
    }
    if (!isClosed) stopTimer = clock.after(pollMs, () => void (working = poll()))
  }
  let working = poll()

  return {
    dispatchAll,
    close() {
      isClosed = true
      stopTimer()
      return working
    },
  }
}
