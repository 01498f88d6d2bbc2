import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The token of an operator who configured none: made once, and kept in a file that only the owner can read. */
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
