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

/** "637 MB", "12 KB". */
export function bytesText(bytes: number): string {
  if (bytes < 1_000_000) return `${Math.ceil(bytes / 1000)} KB`
  if (bytes < 10_000_000) return `${(bytes / 1_000_000).toFixed(1)} MB`
  return bytes < 1_000_000_000 ? `${megabytes(bytes)} MB` : `${(bytes / 1_000_000_000).toFixed(1)} GB`
}

function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(0)
}
