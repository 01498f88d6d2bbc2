import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** What was learned about engines, by name. Kept over restarts of the service. */
export interface LearnedFile<Value> {
  get(name: string): Value | undefined
  set(name: string, value: Value): void
}

/** The names that were set least recently go first. */
const MAX_NAMES = 1000

export function learnedFile<Value>(path: string): LearnedFile<Value> {
  const values = new Map(Object.entries(read<Value>(path)))
  return {
    get: (name) => values.get(name),
    set(name, value) {
      values.delete(name)
      values.set(name, value)
      const [oldest] = values.keys()
      if (values.size > MAX_NAMES) values.delete(oldest ?? '')
      try {
        mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
        writeFileSync(`${path}.part`, JSON.stringify(Object.fromEntries(values)), { mode: 0o600 })
        renameSync(`${path}.part`, path)
      } catch {
        // A full disk: the file stays as it was, and the new values are kept until the service ends.
      }
    },
  }
}

function read<Value>(path: string): Readonly<Record<string, Value>> {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Readonly<Record<string, Value>>
  } catch {
    return {}
  }
}
