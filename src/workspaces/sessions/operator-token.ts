import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Used when no operator token is configured. Generated once and stored in a file that only its owner can read. */
export function keptOperatorToken(dataDir: string): string {
  const file = join(dataDir, 'operator-token')
  const kept = existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
  // A full disk may have left an empty file, and an empty token would let anyone in.
  if (kept !== '') return kept
  const token = `weir_operator_${randomBytes(32).toString('hex')}`
  writeFileSync(`${file}.part`, `${token}\n`, { mode: 0o600, flush: true })
  renameSync(`${file}.part`, file)
  return token
}
