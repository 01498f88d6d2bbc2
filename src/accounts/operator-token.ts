import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Used when no operator token is configured. Generated once and stored in a file that only its owner can read. */
export function keptOperatorToken(dataDir: string): string {
  const file = join(dataDir, 'operator-token')
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    const token = `weir_operator_${randomBytes(32).toString('hex')}`
    writeFileSync(file, `${token}\n`, { mode: 0o600 })
    return token
  }
}
