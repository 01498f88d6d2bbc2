import { blankFields, type ScannedField } from './json-scan.ts'

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
  const open = bytes.indexOf(0x7b /* { */, headroom)
  const added = JSON.stringify(fields).slice(0, -1)
  const front = kept > 0 && added !== '{' ? `${added},` : added
  const length = Buffer.byteLength(front)
  // The new fields may not fit into the headroom (rewritten messages do not). Only then is the body copied.
  if (length > open + 1) return Buffer.concat([Buffer.from(front), bytes.subarray(open + 1)])
  const start = open + 1 - length
  bytes.write(front, start)
  return bytes.subarray(start)
}
