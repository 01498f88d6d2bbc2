import { HEADROOM, type JsonBody } from '../../shared/json/json-body.ts'
import type { ScannedField } from '../../shared/json/json-scan.ts'

const OPEN = Buffer.from('{')
const COMMA = Buffer.from(',')
const CLOSE = Buffer.from('}')

/** A body built here, as if a caller had sent it: its fields are known, so it is neither scanned nor parsed. */
export function madeBody(value: Readonly<Record<string, unknown>>): JsonBody {
  const pieces: Buffer[] = [Buffer.alloc(HEADROOM, 0x20)]
  const fields: ScannedField[] = []
  let end = HEADROOM
  const add = (piece: Buffer): number => {
    pieces.push(piece)
    return (end += piece.length)
  }
  for (const name of Object.keys(value)) {
    if (value[name] === undefined) continue
    const start = add(fields.length === 0 ? OPEN : COMMA)
    const valueStart = add(Buffer.from(`${JSON.stringify(name)}:`))
    fields.push({ name, start, valueStart, end: add(Buffer.from(JSON.stringify(value[name]))) })
  }
  if (fields.length === 0) add(OPEN)
  add(CLOSE)
  return { bytes: Buffer.concat(pieces), scan: { fields }, value }
}
