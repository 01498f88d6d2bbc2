/** "637 MB", "12 KB". */
export function bytesText(bytes: number): string {
  if (bytes < 1_000_000) return `${Math.ceil(bytes / 1000)} KB`
  if (bytes < 10_000_000) return `${(bytes / 1_000_000).toFixed(1)} MB`
  return bytes < 1_000_000_000 ? `${(bytes / 1_000_000).toFixed(0)} MB` : `${(bytes / 1_000_000_000).toFixed(1)} GB`
}
