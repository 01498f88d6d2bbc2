import type { AlarmClock } from '../../shared/clock.ts'

/** Detects a silent server: a call has waited for `patienceMs`, and no other answer has arrived in that time. */
export function watchAnswers(clock: AlarmClock, patienceMs: number, silent: () => void) {
  let open = new Set<{ readonly sentAtMs: number }>()
  let answeredAtMs = clock.monotonic()

  async function expect<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const call = { sentAtMs: clock.monotonic() }
    const calls = open
    calls.add(call)
    try {
      return await answer
    } finally {
      calls.delete(call)
      answeredAtMs = clock.monotonic()
    }
  }

  function isSilent(): boolean {
    const [oldest] = open
    return oldest !== undefined && clock.monotonic() - Math.max(oldest.sentAtMs, answeredAtMs) > patienceMs
  }

  function check(): void {
    if (!isSilent()) return
    // If this process was busy or suspended, answers may wait in its sockets. Read them first.
    setImmediate(() => setImmediate(() => isSilent() && silent()))
  }

  /** The connection has ended, so no open call will be answered. */
  function forget(): void {
    open = new Set()
  }

  return { expect, check, forget }
}
