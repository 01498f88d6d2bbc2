import { isatty } from 'node:tty'

/** Ctrl-C arrives twice: from the terminal, and from npm, which passes it on. */
const SAME_SIGNAL_MS = 500

export interface StopSignal {
  readonly name: 'SIGTERM' | 'SIGINT' | 'SIGHUP'
}

/**
 * Resolves with the first signal to stop. A second one ends the process, after `hurry`. SIGHUP asks for a reload, unless
 * the terminal is closed on which the process was started: then nobody is left who could stop it.
 */
export function stopSignal(reload: () => void, hurry: () => void = () => {}): Promise<StopSignal> {
  const terminals = [0, 1, 2].filter(isatty)
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
    process.on('SIGHUP', () => {
      if (terminals.every(isatty)) reload()
      // The terminal, the shell and whoever started this each send one, and none of them is in a hurry.
      else if (!first) hear('SIGHUP')
    })
  })
}
