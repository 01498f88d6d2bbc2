import type { Admission } from '../queue/admission.ts'
import type { AlarmClock } from '../shared/clock.ts'

/** How this replica drains: it refuses new requests, finishes running ones, and exits. */
export interface Draining {
  isOn(): boolean
  /** Refuses waiting and new requests from now on. Further calls have no effect. */
  begin(): void
  /** Resolves when no request is running any more, or the time for that has run out. */
  readonly finished: Promise<void>
  /** How long running requests still have. */
  leftMs(): number
}

/** Long enough to answer the request that started the drain, and for load balancers to see `/readyz`. */
const AT_LEAST_MS = 1000
const POLL_MS = 100

export interface DrainingParts {
  readonly admission: () => Admission
  readonly clock: AlarmClock
  readonly drainMs: () => number
  /** Called when the drain begins. */
  readonly begun: () => void
}

export function openDraining({ admission, clock, drainMs, begun }: DrainingParts): Draining {
  let beganAtMs: number | undefined
  const finished = Promise.withResolvers<void>()

  const leftMs = (): number => Math.max(0, drainMs() - (clock.monotonic() - (beganAtMs ?? clock.monotonic())))

  function poll(): void {
    const isBusy = [...admission().ownStatus().values()].some(({ inFlightRequests }) => inFlightRequests > 0)
    if (isBusy && leftMs() > 0) clock.after(POLL_MS, poll)
    else finished.resolve()
  }

  return {
    isOn: () => beganAtMs !== undefined,
    begin() {
      if (beganAtMs !== undefined) return
      beganAtMs = clock.monotonic()
      admission().close()
      begun()
      clock.after(AT_LEAST_MS, poll)
    },
    finished: finished.promise,
    leftMs,
  }
}
