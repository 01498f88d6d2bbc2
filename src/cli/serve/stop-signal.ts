import { isatty } from 'node:tty'

/** Ctrl-C arrives twice: from the terminal, and from npm, which passes it on. */
const SAME_SIGNAL_MS = 500

export interface StopSignal {
  readonly name: 'SIGTERM' | 'SIGINT' | 'SIGHUP'
}

/**
 * Resolves with the first signal to stop. A second one ends the process, after `hurry`. SIGHUP asks for a reload,
 * unless the terminal that started the process has been closed: then nothing else could stop it.
 */
export function stopSignal(reload: () => void, hurry: () => void = () => {}): Promise<StopSignal> {
  const terminals = [0, 1, 2].filter(isatty)
  return new Promise((resolve) => {
    let first: { readonly name: string; readonly at: number } | undefined
    const receive = (name: StopSignal['name']): void => {
      if (first && (name !== first.name || performance.now() - first.at > SAME_SIGNAL_MS)) {
        hurry()
        process.exit(1)
      }
      first ??= { name, at: performance.now() }
      resolve({ name })
    }
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => receive(name))
    process.on('SIGHUP', () => {
      if (terminals.every(isatty)) reload()
      // The terminal, the shell and the parent process each send one, and none of them means to hurry.
      else if (!first) receive('SIGHUP')
    })
  })
}
