import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { collect, type CliOptions } from './cli.ts'

const BIN = fileURLToPath(new URL('../../bin/weir.mjs', import.meta.url))

/**
 * The command line in a process whose files cannot grow beyond a size, as if the disk were full at that point. This
 * binds root as well. Sizes are multiples of 512 bytes.
 */
export async function cliWithFileLimit(
  bytes: number,
  args: readonly string[],
  { environment = {} }: CliOptions = {},
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  const child = spawn(
    'sh',
    ['-c', `ulimit -f ${Math.ceil(bytes / 512)} && exec "$0" "$@"`, process.execPath, BIN, ...args],
    {
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], NODE_DISABLE_COMPILE_CACHE: '1', ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)]
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, stdout: stdout(), stderr: stderr() }
}
