import { cliResult, surroundings, type CliOptions, type CliResult } from './cli.ts'
import { capturing } from './printed.ts'

let runs = 0
/** One at a time: the arguments, the exit, the folder and the variables are those of the process. */
let earlier: Promise<unknown> = Promise.resolve()

/**
 * The command line in this process, with the code and the output that a process of its own would have. `cli` starts such a
 * process, which takes half a second.
 */
export function commandLine(args: readonly string[], options: Omit<CliOptions, 'input'> = {}): Promise<CliResult> {
  const result = earlier.then(() => runHere(args, options))
  earlier = result.catch(() => {})
  return result
}

async function runHere(args: readonly string[], options: Omit<CliOptions, 'input'>): Promise<CliResult> {
  const { argv, env, exit } = process
  const cwd = process.cwd()
  const place = surroundings(options)
  const exited = Promise.withResolvers<number>()
  const listeners = process.stdout.listeners('error')
  process.argv = [...argv.slice(0, 2), ...args]
  process.env = place.env
  process.exit = exited.resolve as never
  process.chdir(place.cwd)
  let code = 0
  try {
    const { stdout, stderr, failure } = await capturing(async () => {
      await import(new URL(`../../src/main.ts?${(runs += 1)}`, import.meta.url).href)
      code = await exited.promise
    })
    if (failure) throw failure
    return cliResult(args, code, stdout, stderr)
  } finally {
    Object.assign(process, { argv, env, exit })
    process.chdir(cwd)
    for (const listener of process.stdout.listeners('error')) {
      if (!listeners.includes(listener)) process.stdout.off('error', listener as () => void)
    }
  }
}
