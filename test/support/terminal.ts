import { spawn } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { View } from '../../src/cli/terminal/view.ts'
import { collect } from './cli.ts'

/** `script` runs a command on a terminal of its own. It is part of every Linux distribution. */
export const hasTerminals = existsSync('/usr/bin/script') && process.platform === 'linux'

const BIN = fileURLToPath(new URL('../../bin/weir.mjs', import.meta.url))

export interface TerminalRun {
  /** Everything the terminal has received, control sequences included. */
  received(): string
  /** The same as plain text, one string per line. */
  lines(): readonly string[]
  interrupt(): void
  /** Closes the terminal, as a person does who closes its window. */
  close(): void
  readonly ended: Promise<number | null>
}

/** Runs a command as a person does, on a terminal of 80 columns. */
export function onTerminal(args: readonly string[], environment: NodeJS.ProcessEnv = {}): TerminalRun {
  const cwd = join(tmpdir(), 'weir-cli')
  mkdirSync(cwd, { recursive: true })
  const quoted = [process.execPath, BIN, ...args].map((it) => `'${it}'`).join(' ')
  // The shell keeps the terminal's size; exec makes Ctrl-C reach the command alone.
  const child = spawn('/usr/bin/script', ['-qefc', `stty cols 80 rows 24; exec ${quoted}`, '/dev/null'], {
    cwd,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], TERM: 'xterm-256color', ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const received = collect(child.stdout)
  return {
    received,
    lines: () => plain(received()).split('\n'),
    interrupt: () => void child.stdin?.write('\u0003'),
    close: () => void child.kill('SIGKILL'),
    ended: new Promise((resolve) => child.once('close', resolve)),
  }
}

/** Without colours and carriage returns. */
export function plain(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/\u001B\[[0-9;]*[A-Za-z]|\r/g, '')
}

/** Without colours. */
export const plainView = (width: number): View => ({ paint: (_tone, text) => text, width })
