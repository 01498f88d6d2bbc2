const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** Printable latin1. A line break would begin another header. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const TARGET = /^[\x21-\x7e]+$/

/** Headers as lines of a request's head. */
export function headerLines(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => {
      if (!NAME.test(name) || !VALUE.test(value)) throw new TypeError(`${name} cannot be sent as a header`)
      return `${name}: ${value}\r\n`
    })
    .join('')
}

/** `lines`: all headers. */
export function requestHead(method: 'GET' | 'POST', target: string, lines: string): string {
  if (!TARGET.test(target)) throw new TypeError(`${target} cannot be the path of a request`)
  return `${method} ${target} HTTP/1.1\r\n${lines}\r\n`
}
