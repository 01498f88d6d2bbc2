import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { signalGroup } from './process-group.ts'

/**
 * A file for each running engine. Normally its guardian ends it with the service. If both were killed, the next start of
 * the service finds the file and ends what is left.
 */

interface RecordedProcess {
  readonly pid: number
  /** When it started. Another process that got its number later has another time. */
  readonly startedAt: string
}

export interface ProcessRecord {
  /** The guardian leads the process group. */
  readonly guardian: RecordedProcess
  readonly engine: RecordedProcess
}

const SUFFIX = '.process.json'

export function recordPath(directory: string, name: string): string {
  return join(directory, `${name}${SUFFIX}`)
}

/** Without a record, only the guardian ends the engine, so a full disk does not keep it from starting. */
export function writeRecord(path: string, guardian: number, engine: number): void {
  try {
    const record = { guardian: recorded(guardian), engine: recorded(engine) }
    writeFileSync(path, JSON.stringify(record), { mode: 0o600 })
  } catch {
    rmSync(path, { force: true })
  }
}

/** Ends the engines that an earlier process of the service has left. Returns their names. */
export function endLeftovers(directory: string): readonly string[] {
  const names: string[] = []
  for (const file of filesIn(directory)) {
    const path = join(directory, file)
    if (endRecorded(path)) names.push(file.slice(0, -SUFFIX.length))
    rmSync(path, { force: true })
  }
  return names
}

function endRecorded(path: string): boolean {
  const record = readRecord(path)
  if (!record) return false
  const left = [record.guardian, record.engine].filter(({ pid, startedAt }) => startTime(pid) === startedAt)
  if (left.length === 0) return false
  signalGroup(record.guardian.pid, 'SIGKILL')
  return true
}

/** undefined if it was not written completely. */
function readRecord(path: string): ProcessRecord | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ProcessRecord
  } catch {
    return undefined
  }
}

function filesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory).filter((file) => file.endsWith(SUFFIX))
  } catch {
    return []
  }
}

function recorded(pid: number): RecordedProcess {
  return { pid, startedAt: startTime(pid) ?? '' }
}

/** undefined if there is no such process. */
function startTime(pid: number): string | undefined {
  try {
    if (process.platform !== 'linux')
      return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)])
        .toString()
        .trim()
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name in parentheses may contain anything. After it, the 20th field is the time.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    return undefined
  }
}
