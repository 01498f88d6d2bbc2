/** No honest event is longer; an engine that sends one would have Weir hold it in memory. */
const MAX_EVENT_BYTES = 8 * 1024 * 1024

/**
 * Cuts a server-sent event stream into the data of its events, whatever the chunks. Bytes are read as
 * latin1: one character a byte, so nothing splits inside a character, and written back the same way they
 * are the same bytes again. Comments and other fields are dropped.
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
    if (rest.length > MAX_EVENT_BYTES) throw new RangeError('the engine sent an event of over 8 MiB')
    return events
  }
}
