import type { Admission } from './ports/admission.ts'
import type { AlarmClock } from './ports/clock.ts'

/** How this replica goes away: it refuses newcomers, finishes what runs, and leaves. */
export interface Draining {
  isOn(): boolean
  /** Refuses whoever waits or arrives from now on. Asking again changes nothing. */
  begin(): void
  /** Resolves when nothing runs any more, or the time for that is over. */
  readonly finished: Promise<void>
  /** How long running requests still have. */
  leftMs(): number
}

/** Whoever asked has its answer by then, and load balancers have a chance to see `/readyz`. */
const AT_LEAST_MS = 1000
const LOOK_MS = 100

export interface DrainingParts {
  readonly admission: () => Admission
  readonly clock: AlarmClock
  readonly drainMs: () => number
  /** It has just begun. */
  readonly begun: () => void
}

export function openDraining({ admission, clock, drainMs, begun }: DrainingParts): Draining {
  let beganAtMs: number | undefined
  const finished = Promise.withResolvers<void>()

  const leftMs = (): number => Math.max(0, drainMs() - (clock.monotonic() - (beganAtMs ?? clock.monotonic())))

  function look(): void {
    const isBusy = [...admission().ownStatus().values()].some(({ inFlightRequests }) => inFlightRequests > 0)
    if (isBusy && leftMs() > 0) clock.after(LOOK_MS, look)
    else finished.resolve()
  }

  return {
    isOn: () => beganAtMs !== undefined,
    begin() {
      if (beganAtMs !== undefined) return
      beganAtMs = clock.monotonic()
      admission().close()
      begun()
      clock.after(AT_LEAST_MS, look)
    },
    finished: finished.promise,
    leftMs,
  }
}
