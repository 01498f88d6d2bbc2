import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Every worker has a data directory of its own in the configured one. */
export function workerDirectory(dataDir: string, number: number): string {
  return join(dataDir, `worker-${number}`)
}

/** Where services may run: in the data directory itself, or in those of its workers, by number. */
export function serviceDirectories(dataDir: string): readonly string[] {
  if (!existsSync(dataDir)) return []
  const numbers = readdirSync(dataDir).flatMap((name) => {
    const [, number] = /^worker-(\d+)$/.exec(name) ?? []
    return number === undefined ? [] : [Number(number)]
  })
  return [dataDir, ...numbers.toSorted((one, other) => one - other).map((number) => workerDirectory(dataDir, number))]
}
