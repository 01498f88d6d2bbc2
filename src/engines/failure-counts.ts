/** The failed calls of each address since the start, and why the last one failed. */
export interface FailureCounts {
  add(url: string, reason: string): void
  of(url: string): { readonly failures: number; readonly lastFailure: string | undefined }
}

/** Keeps a catalog that changes often from filling the memory. */
const ADDRESSES_MAX = 10_000

export function failureCounts(): FailureCounts {
  const counts = new Map<string, { failures: number; lastFailure: string | undefined }>()
  return {
    add(url, reason) {
      const { failures } = counts.get(url) ?? { failures: 0 }
      counts.delete(url)
      counts.set(url, { failures: failures + 1, lastFailure: reason })
      const [oldest] = counts.keys()
      if (counts.size > ADDRESSES_MAX && oldest !== undefined) counts.delete(oldest)
    },
    of: (url) => counts.get(url) ?? { failures: 0, lastFailure: undefined },
  }
}
