import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'

/** A server in its own process, on a port that was free. */
export interface ForkedServer {
  readonly pid: number
  readonly port: number
  kill(): void
}

/** Starts a program and waits until it sends its port. It ends with the bench. */
export async function forked(file: URL, ...args: string[]): Promise<ForkedServer> {
  const child = fork(file, args)
  const kill = (): void => void child.kill()
  process.once('exit', kill)
  const [port] = (await once(child, 'message')) as [number]
  return { pid: child.pid ?? 0, port, kill }
}

/** User and system time of a process. /proc counts in ticks of 10 ms. */
export function cpuMicroseconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

/** The processes that a process has started. */
export function childrenOf(pid: number): readonly number[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return all.filter((name) => parentOf(name) === pid).map(Number)
}

/** 0 if the process has just ended. */
function parentOf(pid: string): number {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[1])
  } catch {
    return 0
  }
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
