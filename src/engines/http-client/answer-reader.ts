import {
  readHead,
  requireBeginning,
  BLANK_LINE,
  BrokenMessage,
  type AnswerHeaders,
  eachHeader,
} from './message-head.ts'

/** Receives an answer as it is read. */
export interface AnswerTaker {
  answerHead(status: number, headers: AnswerHeaders): void
  /** The bytes are valid until this returns. */
  answerBody(bytes: Buffer): void
  /** `isReusable`: the connection may carry another request. */
  answerEnd(isReusable: boolean): void
}

/** No real head is longer. Without a limit, a server could make us buffer an endless one. */
const MAX_HEAD_BYTES = 65_536

/**
 * Reads HTTP/1.1 answers from the bytes of a connection, however they are split. The body bytes of one read are passed
 * on as one piece, because every piece costs a write for each caller of a stream.
 */
export class AnswerReader {
  readonly #taker: AnswerTaker
  /** `nowhere`: between two answers. */
  #place: 'nowhere' | 'head' | 'body' = 'nowhere'
  /** The part of a head that has arrived. */
  #held: Buffer | undefined
  /** Bytes of the body that are still missing. */
  #left = 0
  #chunks: ChunkedBody | undefined
  #isReusable = false

  constructor(taker: AnswerTaker) {
    this.#taker = taker
  }

  /** The next bytes begin an answer. */
  expect(): void {
    this.#place = 'head'
  }

  /** The answer is no longer needed. */
  stop(): void {
    this.#place = 'nowhere'
    this.#held = undefined
    this.#chunks = undefined
  }

  /**
   * Reads the first `length` bytes of a buffer, in which it may move them. Throws if they are not part of an answer.
   */
  read(buffer: Buffer, length: number): void {
    if (this.#place === 'nowhere') throw new BrokenMessage('the server sent something that was not requested')
    const at = this.#place === 'head' ? this.#readHead(buffer, length) : 0
    if (at === undefined) return
    if (this.#chunks) this.#readChunks(this.#chunks, buffer, at, length)
    else this.#readBody(buffer, at, length)
  }

  /** The server has closed the connection. Throws if its answer is incomplete. */
  close(): void {
    if (this.#place === 'nowhere') return
    if (this.#place !== 'body' || this.#left !== Infinity) throw new BrokenMessage('the server closed the connection')
    this.#end()
  }

  /** Returns where the body begins; undefined if the head is incomplete, or the answer is no longer needed. */
  #readHead(buffer: Buffer, length: number): number | undefined {
    const before = this.#held
    const bytes = before ? Buffer.concat([before, buffer.subarray(0, length)]) : buffer
    const total = (before?.length ?? 0) + length
    let from = 0
    // Informational answers precede the final one.
    while (this.#place === 'head') {
      const end = bytes.indexOf(BLANK_LINE, from, 'latin1')
      // Bytes after those that were read are left over from another read.
      const isWhole = end >= 0 && end + BLANK_LINE.length <= total
      if ((isWhole ? end : total) - from > MAX_HEAD_BYTES) {
        throw new BrokenMessage('the head of the answer is longer than 64 KiB')
      }
      if (!isWhole) {
        // `before` was checked, unless it has become the head of an informational answer.
        requireBeginning(bytes.toString('latin1', from, total), from === 0 ? (before?.length ?? 0) : 0)
        this.#held = Buffer.from(bytes.subarray(from, total))
        return undefined
      }
      this.#held = undefined
      this.#takeHead(bytes.toString('latin1', from, end))
      from = end + BLANK_LINE.length
    }
    return this.#isWanted() ? from - (total - length) : undefined
  }

  #isWanted(): boolean {
    return this.#place !== 'nowhere'
  }

  #takeHead(text: string): void {
    const { status, headers, body, isReusable } = readHead(text)
    if (status === 101) throw new BrokenMessage('the server switched protocols')
    if (status < 200) return
    this.#isReusable = isReusable && body.kind !== 'close'
    this.#place = 'body'
    this.#chunks = body.kind === 'chunked' ? new ChunkedBody() : undefined
    this.#left = body.kind === 'length' ? body.length : body.kind === 'close' ? Infinity : 0
    this.#taker.answerHead(status, headers)
  }

  #readBody(buffer: Buffer, start: number, length: number): void {
    const end = Math.min(length, start + this.#left)
    this.#left -= end - start
    if (end > start) this.#taker.answerBody(buffer.subarray(start, end))
    if (this.#left === 0) this.#endAt(end, length)
  }

  #readChunks(chunks: ChunkedBody, buffer: Buffer, start: number, length: number): void {
    const at = chunks.read(buffer, start, length)
    if (chunks.to > chunks.from) this.#taker.answerBody(buffer.subarray(chunks.from, chunks.to))
    if (chunks.isOver) this.#endAt(at, length)
  }

  /** The answer ends here. Anything after it belongs to no answer, so the connection is not reused. */
  #endAt(end: number, length: number): void {
    if (end < length) this.#isReusable = false
    this.#end()
  }

  #end(): void {
    // The receiver of the last piece may have aborted.
    if (this.#place === 'nowhere') return
    this.#place = 'nowhere'
    this.#chunks = undefined
    this.#taker.answerEnd(this.#isReusable)
  }
}

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
class ChunkedBody {
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
