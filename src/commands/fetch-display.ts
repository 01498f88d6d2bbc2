import type { FetchEvents } from '../embedded/service/local-models.ts'
import { progressBar } from './terminal/progress.ts'

/** Clears the current line of a terminal. */
const CLEAR_LINE = '\r\u001b[K'

/** Shows downloads to a person: one moving line on a terminal, one line per model anywhere else. */
export function fetchDisplay(
  output: NodeJS.WriteStream,
  /** A command to try with a model that has become ready. */
  exampleFor: (slug: string) => string | undefined,
): { events: FetchEvents; show(): void } {
  let isShown = false
  let isLineOpen = false
  const waiting: string[] = []

  function line(text: string): void {
    const whole = `${isLineOpen ? CLEAR_LINE : ''}  ${text}\n`
    isLineOpen = false
    if (isShown) output.write(whole)
    else waiting.push(whole)
  }

  return {
    /** Shows what has happened so far and what follows. Called once the service has printed its own lines. */
    show() {
      isShown = true
      output.write(waiting.splice(0).join(''))
    },
    events: {
      progress(progress) {
        if (!isShown || !output.isTTY) return
        output.write(`${CLEAR_LINE}  ${progressBar(progress)}`)
        isLineOpen = true
      },
      ready(slug) {
        const command = exampleFor(slug)
        line(`${slug} is ready.${command ? ` Try it:\n    ${command}` : ''}`)
      },
      failed: (slug, reason) => line(`${slug} could not be fetched (${reason}). Trying again soon.`),
    },
  }
}
