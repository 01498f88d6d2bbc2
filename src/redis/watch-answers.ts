import type { AlarmClock } from '../ports/clock.ts'

/** Notices that answers stay out: nothing has come for a while, although something was asked before that. */
export function watchAnswers(clock: AlarmClock, patienceMs: number, silent: () => void) {
  let open = new Set<{ readonly askedAtMs: number }>()
  let answeredAtMs = clock.monotonic()

  async function expect<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const question = { askedAtMs: clock.monotonic() }
    const asked = open
    asked.add(question)
    try {
      return await answer
    } finally {
      asked.delete(question)
      answeredAtMs = clock.monotonic()
    }
  }

  function isSilent(): boolean {
    const [oldest] = open
    return oldest !== undefined && clock.monotonic() - Math.max(oldest.askedAtMs, answeredAtMs) > patienceMs
  }

  function check(): void {
    if (!isSilent()) return
    // If this process was busy or asleep, the answers lie in its sockets: they are read first.
    setImmediate(() => setImmediate(() => isSilent() && silent()))
  }

  /** The connection has ended, and with it every answer. */
  function forget(): void {
    open = new Set()
  }

  return { expect, check, forget }
}
