/** Ctrl-C arrives twice: from the terminal, and from npm, which passes it on. */
const SAME_SIGNAL_MS = 500

export interface StopSignal {
  readonly name: 'SIGTERM' | 'SIGINT'
}

/** Resolves with the first signal to stop. A second one ends the process, after `hurry`. */
export function stopSignal(hurry: () => void = () => {}): Promise<StopSignal> {
  return new Promise((resolve) => {
    let first: { readonly name: string; readonly at: number } | undefined
    const hear = (name: StopSignal['name']): void => {
      if (first && (name !== first.name || performance.now() - first.at > SAME_SIGNAL_MS)) {
        hurry()
        process.exit(1)
      }
      first ??= { name, at: performance.now() }
      resolve({ name })
    }
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => hear(name))
  })
}
