import { EngineError } from '../runtime/engine-model.ts'
import type { Fields } from './fields.ts'

export interface Form {
  fields: Fields
  files: Record<string, Buffer>
}

/** RFC 7578 over a body that is already in memory; the parts are slices of it, not copies. */
export function parseMultipart(body: Buffer, contentType: string | undefined): Form {
  const boundary = /^multipart\/form-data;.*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType ?? '')
  const name = boundary?.[1] ?? boundary?.[2]
  if (!name) throw new EngineError(415, 'unsupported_media_type', 'Expected multipart/form-data with a boundary.')
  const form: Form = { fields: {}, files: {} }
  for (const part of splitParts(body, `--${name}`)) {
    const headEnd = part.indexOf('\r\n\r\n')
    if (headEnd < 0) continue
    const head = part.subarray(0, headEnd).toString('utf8')
    const content = part.subarray(headEnd + 4)
    const fieldName = /[;\s]name="([^"]*)"/i.exec(head)?.[1]
    if (fieldName === undefined) continue
    if (/filename\*?=/i.test(head)) form.files[fieldName] = content
    else addField(form.fields, fieldName, content.toString('utf8'))
  }
  return form
}

/** A name sent more than once (`timestamp_granularities[]`) becomes a list. */
function addField(fields: Fields, name: string, value: string): void {
  fields[name] = name in fields ? [fields[name], value].flat() : value
}

function splitParts(body: Buffer, delimiter: string): Buffer[] {
  const parts: Buffer[] = []
  let start = body.indexOf(delimiter)
  while (start >= 0) {
    start += delimiter.length
    if (body.subarray(start, start + 2).toString('latin1') === '--') break
    const end = body.indexOf(`\r\n${delimiter}`, start)
    if (end < 0) break
    parts.push(body.subarray(start + 2, end))
    start = end + 2
  }
  return parts
}
