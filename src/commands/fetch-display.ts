import type { PullProgress } from '../embedded/files/model-files.ts'
import type { FetchEvents } from '../embedded/service/local-models.ts'

/** Downloads as a person sees them: one moving line on a terminal, a line for each model elsewhere. */
export function fetchDisplay(
  output: NodeJS.WriteStream,
  /** What to try with a model that has become ready. */
  toTry: (slug: string) => string | undefined,
): { events: FetchEvents; show(): void } {
  let shown = false
  let moving = false
  const held: string[] = []

  function line(text: string): void {
    const whole = `${moving ? '\r\u001b[K' : ''}  ${text}\n`
    moving = false
    if (shown) output.write(whole)
    else held.push(whole)
  }

  return {
    /** From here on there is something to read above it. */
    show() {
      shown = true
      output.write(held.splice(0).join(''))
    },
    events: {
      progress(progress) {
        if (!shown || !output.isTTY) return
        output.write(`\r\u001b[K  ${bar(progress)}`)
        moving = true
      },
      ready(slug) {
        const command = toTry(slug)
        line(`${slug} is ready.${command ? ` Try it:\n    ${command}` : ''}`)
      },
      failed: (slug, reason) => line(`${slug} could not be fetched (${reason}); trying again.`),
    },
  }
}

export function bar({ slug, receivedBytes, totalBytes }: PullProgress): string {
  const done = totalBytes ? receivedBytes / totalBytes : 0
  const filled = Math.round(done * 20)
  const size = `${megabytes(receivedBytes)}${totalBytes ? ` of ${megabytes(totalBytes)}` : ''} MB`
  return `${slug}  ${'█'.repeat(filled)}${'░'.repeat(20 - filled)}  ${size}`
}

function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(0)
}
