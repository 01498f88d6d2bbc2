/** No real event is longer. Without a limit, an engine could make Weir buffer an endless line. */
const MAX_EVENT_BYTES = 8 * 1024 * 1024

/** The UTF-8 byte order mark, one character per byte. A stream may start with it. */
const BYTE_ORDER_MARK = '\u00ef\u00bb\u00bf'
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d

/**
 * Receives the data of an event. Returns false if it cannot be parsed, which may mean that the event continues in the
 * next line; `isWhole` says that it does not.
 */
export type ReadData = (data: string, isWhole: boolean) => boolean

/**
 * Splits a server-sent event stream into the data of its events, however it is split into chunks. Bytes are decoded as
 * latin1, one character per byte, so a chunk can end inside a UTF-8 character and encoding the text as latin1 restores
 * the original bytes. Comments and other fields are dropped.
 *
 * A line of data is parsed as soon as it arrives, because an event hardly ever has a second one, and a server may omit
 * the blank line that ends it. Only a line that cannot be parsed alone waits for the rest of its event.
 */
export function eventSplitter(read: ReadData): (chunk: Buffer) => void {
  let rest = ''
  let isFirstLine = true
  let isAfterCarriageReturn = false
  let unread: string[] = []
  let unreadLength = 0

  function takeData(data: string): void {
    if (unread.length === 0 && read(data, false)) return
    unread.push(data)
    unreadLength += data.length + 1
  }

  function endEvent(): void {
    const data = unread.join('\n')
    unread = []
    unreadLength = 0
    read(data, true)
  }

  function takeLine(text: string, start: number, end: number): void {
    const from = isFirstLine && text.startsWith(BYTE_ORDER_MARK, start) ? start + BYTE_ORDER_MARK.length : start
    isFirstLine = false
    if (text.startsWith('data:', from)) {
      takeData(text.slice(text.charCodeAt(from + 5) === 0x20 ? from + 6 : from + 5, end))
    } else if (end - from === 4 && text.startsWith('data', from)) {
      // A name alone is a field without a value.
      takeData('')
    } else if (from === end && unread.length > 0) endEvent()
  }

  return (chunk) => {
    if (chunk.length === 0) return
    const text = rest + chunk.toString('latin1')
    // CR, LF and both together end a line. A CR at the end of a chunk has ended its line already.
    let from = isAfterCarriageReturn && chunk[0] === LINE_FEED ? 1 : 0
    isAfterCarriageReturn = chunk[chunk.length - 1] === CARRIAGE_RETURN
    let feed = placeOf('\n', text, from)
    let carriageReturn = placeOf('\r', text, from)
    while (feed !== Infinity || carriageReturn !== Infinity) {
      const end = Math.min(feed, carriageReturn)
      takeLine(text, from, end)
      from = end + (feed === carriageReturn + 1 ? 2 : 1)
      if (feed < from) feed = placeOf('\n', text, from)
      if (carriageReturn < from) carriageReturn = placeOf('\r', text, from)
    }
    rest = from === 0 ? text : text.slice(from)
    if (rest.length + unreadLength > MAX_EVENT_BYTES) {
      throw new RangeError('the engine sent an event larger than 8 MiB')
    }
  }
}

function placeOf(character: string, text: string, from: number): number {
  const place = text.indexOf(character, from)
  return place < 0 ? Infinity : place
}
