/** The lines that this process runs now, for each workspace. */
export interface InFlightLines {
  of(workspaceId: string): number
  begin(workspaceId: string): void
  end(workspaceId: string): void
  /** Resolves when a line has ended, or at the next call of `wake`. */
  changed(): Promise<void>
  wake(): void
}

export function inFlightLines(): InFlightLines {
  const lines = new Map<string, number>()
  let waiting: (() => void)[] = []
  const of = (workspaceId: string): number => lines.get(workspaceId) ?? 0

  function wake(): void {
    const woken = waiting
    waiting = []
    for (const resolve of woken) resolve()
  }

  return {
    of,
    begin: (workspaceId) => void lines.set(workspaceId, of(workspaceId) + 1),
    end(workspaceId) {
      const left = of(workspaceId) - 1
      if (left === 0) lines.delete(workspaceId)
      else lines.set(workspaceId, left)
      wake()
    },
    changed: () => new Promise((resolve) => waiting.push(resolve)),
    wake,
  }
}
