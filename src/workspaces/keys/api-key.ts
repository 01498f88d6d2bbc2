import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'

/**
 * `weir_` + 256 random bits + a checksum, all letters and digits. Secret scanners can find it, a double click selects
 * it, and the checksum exposes a mistyped key without a lookup.
 */
const PREFIX = 'weir_'
const RANDOM_LENGTH = 43
const CHECKSUM_LENGTH = 6
const SHAPE = /^weir_[0-9A-Za-z]{49}$/
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

export function formatKey(random: Buffer): string {
  if (random.length !== 32) throw new RangeError('a key needs exactly 32 random bytes')
  const text = PREFIX + base62(BigInt(`0x${random.toString('hex')}`), RANDOM_LENGTH)
  return text + checksum(text)
}

export function isWellFormedKey(text: string): boolean {
  return SHAPE.test(text) && text.endsWith(checksum(text.slice(0, -CHECKSUM_LENGTH)))
}

/** What is kept of a key to recognise it by: its prefix and, unless an older version made it, its end. */
export const redactedKey = (ending: string | null): string => `${PREFIX}…${ending ?? ''}`

export const keyEnding = (key: string): string => key.slice(-4)

export function hashKey(text: string): string {
  return hash('sha256', text)
}

function checksum(text: string): string {
  return base62(BigInt(crc32(text)), CHECKSUM_LENGTH)
}

function base62(value: bigint, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest /= 62n) text = DIGITS[Number(rest % 62n)] + text
  return text
}
