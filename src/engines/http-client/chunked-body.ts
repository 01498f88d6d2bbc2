import { BrokenMessage, eachHeader } from './header-lines.ts'

/** No real line is longer. Without a limit, a server could make us read an endless one. */
const MAX_LINE_BYTES = 4096
const MAX_TRAILER_BYTES = 65_536
/** Larger numbers would no longer be exact integers. */
const MAX_CHUNK_BYTES = 2 ** 48

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const SEMICOLON = 0x3b
const SPACE = 0x20
const TAB = 0x09
const DELETE = 0x7f

type Place = 'size' | 'extension' | 'chunk' | 'after chunk' | 'trailer' | 'over'

/** Finds the bytes of a chunked body, however they are split. */
export class ChunkedBody {
  #place: Place = 'size'
  /** Bytes of the chunk that are still missing. Negative: no digit of its size has arrived. */
  #left = -1
  /** The bytes of a line, or of all trailers, so far. */
  #lineBytes = 0
  #trailers = ''
  /** Whether the current trailer line has any content. */
  #isLineEmpty = true
  #isAfterReturn = false
  /** Where the body bytes of the last read are: its chunks have been moved together. */
  from = 0
  to = 0

  get isOver(): boolean {
    return this.#place === 'over'
  }

  /** Reads part of a buffer, in which it moves bytes. Returns where it stopped, which may be at the end of the body. */
  read(buffer: Buffer, start: number, end: number): number {
    let from = start
    let to = start
    let at = start
    while (at < end && this.#place !== 'over') {
      if (this.#place !== 'chunk') {
        this.#readFraming(buffer[at++] ?? 0)
        continue
      }
      const stop = Math.min(end, at + this.#left)
      this.#left -= stop - at
      if (to === from) from = at
      else buffer.copyWithin(to, at, stop)
      to = from === at ? stop : to + stop - at
      at = stop
      if (this.#left === 0) this.#place = 'after chunk'
    }
    this.from = from
    this.to = to
    return at
  }

  /** A byte between two chunks. */
  #readFraming(byte: number): void {
    if ((byte === LINE_FEED) !== this.#isAfterReturn) throw new BrokenMessage('a line has half an end')
    this.#isAfterReturn = byte === CARRIAGE_RETURN
    switch (this.#place) {
      case 'size':
        this.#countLine(MAX_LINE_BYTES)
        if (byte === LINE_FEED) this.#beginChunk()
        else if (byte === SEMICOLON) this.#place = 'extension'
        else if (byte !== CARRIAGE_RETURN) this.#addDigit(byte)
        break
      case 'extension':
        this.#countLine(MAX_LINE_BYTES)
        if (byte === LINE_FEED) this.#beginChunk()
        else if (isControl(byte)) throw new BrokenMessage('an extension has a character that is not allowed')
        break
      case 'after chunk':
        if (byte === LINE_FEED) {
          this.#place = 'size'
          this.#left = -1
          this.#lineBytes = 0
        } else if (byte !== CARRIAGE_RETURN) throw new BrokenMessage('a chunk is longer than announced')
        break
      default:
        this.#countLine(MAX_TRAILER_BYTES)
        if (byte === LINE_FEED && this.#isLineEmpty) this.#endTrailers()
        else if (byte !== CARRIAGE_RETURN) this.#isLineEmpty = byte === LINE_FEED
        this.#trailers += String.fromCharCode(byte)
    }
  }

  /** Trailers are not used, but they must be valid headers. */
  #endTrailers(): void {
    // Without the blank line, whose line feed has not arrived yet.
    eachHeader(this.#trailers.slice(0, -'\r\n\r'.length), 0, () => {})
    this.#place = 'over'
  }

  #countLine(most: number): void {
    this.#lineBytes++
    if (this.#lineBytes > most) throw new BrokenMessage('a line has no end')
  }

  #addDigit(byte: number): void {
    const digit = hexDigit(byte)
    if (digit < 0 || this.#left > MAX_CHUNK_BYTES) throw new BrokenMessage('a chunk has no size')
    this.#left = Math.max(this.#left, 0) * 16 + digit
  }

  #beginChunk(): void {
    if (this.#left < 0) throw new BrokenMessage('a chunk has no size')
    this.#place = this.#left === 0 ? 'trailer' : 'chunk'
    this.#lineBytes = 0
    this.#isLineEmpty = true
  }
}

function isControl(byte: number): boolean {
  return (byte < SPACE && byte !== TAB && byte !== CARRIAGE_RETURN) || byte === DELETE
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
