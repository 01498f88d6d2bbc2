import { readdir, readFile } from 'node:fs/promises'

/** The processes of an engine: a group, which its guardian leads. */

/** False if the group has no process any more. */
export function signalGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-leader, signal)
    return true
  } catch {
    return false
  }
}

/** One that has ended, but that no parent has collected, is still in the group. Only Linux tells them apart. */
export async function isGroupRunning(leader: number): Promise<boolean> {
  if (process.platform !== 'linux') return signalGroup(leader, 0)
  return (await runningIn(leader)).length > 0
}

/** The processes of a group that run. Linux only. */
export async function runningIn(leader: number): Promise<readonly number[]> {
  const running: number[] = []
  for (const name of await readdir('/proc').catch(() => [])) {
    const pid = Number(name)
    if (!Number.isInteger(pid)) continue
    const stat = await fileText(`/proc/${pid}/stat`)
    // The name in parentheses may contain anything. After it come the state, the parent and the group.
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (Number(group) === leader && state !== 'Z') running.push(pid)
  }
  return running
}

/** Empty if there is no such file: the process is gone. */
export async function fileText(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '')
}
