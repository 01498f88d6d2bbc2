/** The server sent something that is not HTTP/1.1. */
export class BrokenMessage extends Error {
  override readonly name = 'BrokenMessage'
}

/** The headers of an answer, by lower-case name. The object has no prototype, so no name is special. */
export type AnswerHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** How to find the end of a body. */
export type BodyEnd = { readonly kind: 'length'; readonly length: number } | { readonly kind: 'chunked' | 'close' }

export const BLANK_LINE = '\r\n\r\n'

const SPACE = 0x20
const TAB = 0x09

const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
/** Control characters, and half an end of a line. Either may mean something else to the next server on the way. */
// oxlint-disable-next-line no-control-regex
const NOT_IN_A_HEAD = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n/

/** Passes on each line of a head, from `start`, with its name in lower case. The head has no blank line at the end. */
export function eachHeader(head: string, start: number, take: (name: string, value: string) => void): void {
  requireHeadCharacters(head)
  for (let from = start; from < head.length;) {
    const lineEnd = head.indexOf('\r\n', from)
    const end = lineEnd < 0 ? head.length : lineEnd
    const colon = head.indexOf(':', from)
    // The colon of a later line makes a name with a line end in it.
    const name = colon < 0 ? '' : head.slice(from, colon).toLowerCase()
    if (!NAME.test(name)) throw new BrokenMessage('a line of the head is no header')
    take(name, valueIn(head, colon + 1, end))
    from = end + 2
  }
}

/**
 * Without the spaces and tabs around it. (`trim` would also remove a byte that another server treats as part of it.)
 */
function valueIn(head: string, start: number, end: number): string {
  let [from, to] = [start, end]
  while (from < to && isBlank(head.charCodeAt(from))) from++
  while (from < to && isBlank(head.charCodeAt(to - 1))) to--
  return head.slice(from, to)
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB
}

export function requireHeadCharacters(text: string): void {
  if (NOT_IN_A_HEAD.test(text)) throw new BrokenMessage('the head has a character that is not allowed')
}

export function readLength(text: string): BodyEnd {
  if (!/^\d{1,15}$/.test(text)) throw new BrokenMessage(`the content length ${text} is no number`)
  return { kind: 'length', length: Number(text) }
}
