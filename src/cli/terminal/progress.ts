const BAR_WIDTH = 20

export interface Progress {
  readonly slug: string
  readonly receivedBytes: number
  readonly totalBytes: number | undefined
}

/** "tinyllama/tinyllama-1.1b-chat  ████░░░░░░  120 of 637 MB", within the width of a terminal. */
export function progressBar({ slug, receivedBytes, totalBytes }: Progress, width = Infinity): string {
  const size = `${megabytes(receivedBytes)}${totalBytes ? ` of ${megabytes(totalBytes)}` : ''} MB`
  const room = width - slug.length - size.length - 4
  const barWidth = Math.min(BAR_WIDTH, room)
  if (barWidth < 5) return `${slug}  ${size}`
  const filled = Math.round((totalBytes ? Math.min(1, receivedBytes / totalBytes) : 0) * barWidth)
  return `${slug}  ${'█'.repeat(filled)}${'░'.repeat(barWidth - filled)}  ${size}`
}

function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(0)
}
