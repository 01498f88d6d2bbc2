import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Every worker has its own directory inside the configured data directory. */
export function workerDirectory(dataDir: string, number: number): string {
  return join(dataDir, `worker-${number}`)
}

/** The directories in which services may run: the data directory itself, and those of its workers, by number. */
export function serviceDirectories(dataDir: string): readonly string[] {
  if (!existsSync(dataDir)) return []
  const numbers = readdirSync(dataDir).flatMap((name) => {
    const [, number] = /^worker-(\d+)$/.exec(name) ?? []
    return number === undefined ? [] : [Number(number)]
  })
  return [dataDir, ...numbers.toSorted((one, other) => one - other).map((number) => workerDirectory(dataDir, number))]
}
