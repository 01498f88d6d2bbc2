import { AsyncLocalStorage } from 'node:async_hooks'
import type { Command } from '../../src/cli/command.ts'
import { plain } from './terminal.ts'

/** What a command prints when it runs in this process. */
export interface Printed {
  readonly stdout: string
  readonly stderr: string
  /** What it threw. */
  readonly failure: Error | undefined
}

export function printed(command: Pick<Command, 'run'>, ...args: readonly string[]): Promise<Printed> {
  return capturing(() => command.run(args))
}

/** Whatever runs outside is the test runner, which writes its results to the same streams. */
const captured = new AsyncLocalStorage<true>()

/** The text that `work` writes. */
export async function capturing(work: () => Promise<unknown>): Promise<Printed> {
  const texts = { stdout: '', stderr: '' }
  const restored = (['stdout', 'stderr'] as const).map((name) => {
    const stream = process[name]
    const { write } = stream
    stream.write = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
      if (!captured.getStore() || typeof chunk !== 'string') return write.call(stream, chunk, ...(rest as []))
      texts[name] += chunk
      const written = rest.findLast((it): it is (error?: Error) => void => typeof it === 'function')
      if (written) setImmediate(written)
      return true
    }
    return () => void (stream.write = write)
  })
  let failure: Error | undefined
  try {
    await captured.run(true, work)
  } catch (error) {
    failure = error as Error
  } finally {
    for (const restore of restored) restore()
  }
  return { ...texts, failure }
}

/** What a person sees who runs the command on a terminal of so many columns, without the colours. */
export async function printedOnTerminal(
  columns: number,
  command: Pick<Command, 'run'>,
  ...args: readonly string[]
): Promise<string> {
  const given = Object.getOwnPropertyDescriptors(process.stdout)
  Object.defineProperties(process.stdout, {
    isTTY: { value: true, configurable: true },
    columns: { value: columns, configurable: true },
  })
  try {
    return plain((await printed(command, ...args)).stdout)
  } finally {
    for (const name of ['isTTY', 'columns'] as const) {
      const before = given[name]
      if (before) Object.defineProperty(process.stdout, name, before)
      else delete (process.stdout as Partial<NodeJS.WriteStream>)[name]
    }
  }
}
