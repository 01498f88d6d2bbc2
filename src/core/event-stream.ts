/** No real event is longer. Without a limit, an engine could make Weir buffer an endless line. */
const MAX_EVENT_BYTES = 8 * 1024 * 1024

/**
 * Splits a server-sent event stream into the data of its events, however it is cut into chunks. Bytes are
 * decoded as latin1, one character per byte, so a chunk can end inside a UTF-8 character and encoding the
 * text as latin1 restores the original bytes. Comments and other fields are dropped.
 */
export function eventSplitter(): (chunk: Buffer) => readonly string[] {
  let rest = ''
  return (chunk) => {
    const text = rest + chunk.toString('latin1')
    const events: string[] = []
    let from = 0
    for (;;) {
      const end = text.indexOf('\n', from)
      if (end < 0) break
      if (text.startsWith('data:', from)) {
        const start = text.charCodeAt(from + 5) === 0x20 ? from + 6 : from + 5
        events.push(text.slice(start, text.charCodeAt(end - 1) === 0x0d ? end - 1 : end))
      }
      from = end + 1
    }
    rest = from === 0 ? text : text.slice(from)
    if (rest.length > MAX_EVENT_BYTES) throw new RangeError('the engine sent an event larger than 8 MiB')
    return events
  }
}
