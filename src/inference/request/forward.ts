import type { ScannedField } from '../../shared/json/json-scan.ts'

const COMMA = 0x2c
const OPEN_BRACE = 0x7b

/**
 * The body to send to the engine: the caller's bytes without the fields that `keep` rejects, and with
 * `fields` in front. Nothing is copied: dropped fields become spaces, and the new ones are written into the
 * headroom before the body.
 */
export function forwardBody(
  bytes: Buffer,
  headroom: number,
  scanned: readonly ScannedField[],
  keep: (name: string) => boolean,
  fields: Readonly<Record<string, unknown>>,
): Buffer {
  const kept = blankFields(bytes, scanned, (name) => !keep(name))
  const open = bytes.indexOf(OPEN_BRACE, headroom)
  const added = Buffer.from(JSON.stringify(fields))
  // The closing brace of the new fields becomes the comma before the others.
  const front = kept > 0 && added.length > 2 ? added : added.subarray(0, -1)
  if (front === added) front[front.length - 1] = COMMA
  // The new fields may not fit into the headroom (rewritten messages do not). Only then is the body copied.
  if (front.length > open + 1) return Buffer.concat([front, bytes.subarray(open + 1)])
  const start = open + 1 - front.length
  front.copy(bytes, start)
  return bytes.subarray(start)
}

/**
 * Overwrites fields, each with one comma next to it, with spaces, which JSON allows between tokens. The rest
 * of the object is not moved or copied. Returns how many fields are left.
 */
function blankFields(bytes: Buffer, fields: readonly ScannedField[], drop: (name: string) => boolean): number {
  let kept = 0
  for (const field of fields) {
    if (!drop(field.name)) {
      kept++
      continue
    }
    // Drop the comma before the field if any field was kept so far, else the one after it.
    let from = field.start
    let to = field.end
    if (kept > 0) from = bytes.lastIndexOf(COMMA, field.start)
    else if (bytes[to] === COMMA) to++
    bytes.fill(0x20, from, to)
  }
  return kept
}
