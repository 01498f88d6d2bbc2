/** The fields of every request's log line. */
export interface RequestLine {
  readonly status: number
  readonly [detail: string]: Detail
}

/** Fields that only some lines have: the code of a refusal, or the model and what the request used. */
export interface RequestNotes {
  readonly code?: string
  readonly [detail: string]: Detail
}

type Detail = string | number | null | undefined

/**
 * The line in the format that pino writes. Every request has one, so it is concatenated from its fields: building an
 * object and stringifying it takes twice as long.
 */
export function requestText(line: RequestLine, notes: RequestNotes, now: number): string {
  return `{"level":30,"time":"${isoTime(now)}"${fieldsOf(line)}${fieldsOf(notes)},"msg":"request"}\n`
}

function fieldsOf(object: RequestLine | RequestNotes): string {
  let text = ''
  for (const name in object) {
    const value = object[name]
    if (value !== undefined) text += `,"${name}":${typeof value === 'number' ? value : JSON.stringify(value)}`
  }
  return text
}

let second = Number.NaN
let startOfSecond = ''

/** Equal to `Date.toISOString`. Only the milliseconds differ from line to line. */
function isoTime(now: number): string {
  const current = Math.floor(now / 1000)
  if (current !== second) {
    second = current
    startOfSecond = new Date(now).toISOString().slice(0, -4)
  }
  return `${startOfSecond}${String(now % 1000).padStart(3, '0')}Z`
}
