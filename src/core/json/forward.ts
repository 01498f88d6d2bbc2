import { blankFields, type ScannedField } from './json-scan.ts'

/**
 * A caller's body as the engine gets it: the bytes as they came, without the fields that `keep` does not
 * name, with `fields` put in front. Nothing is copied: dropped fields become spaces, and the new ones are
 * written into the headroom before the body.
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
  // What stands in front may be large (messages that had to be written anew); then there is a copy after all.
  if (length > open + 1) return Buffer.concat([Buffer.from(front), bytes.subarray(open + 1)])
  const start = open + 1 - length
  bytes.write(front, start)
  return bytes.subarray(start)
}
