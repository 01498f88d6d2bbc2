import type { EngineHeaders } from '../core/job.ts'
import { BrokenAnswer, readHead } from './answer-head.ts'

/** Takes an answer as it is read. */
export interface AnswerTaker {
  answerHead(status: number, headers: EngineHeaders): void
  /** The bytes may be used until this returns. */
  answerBody(bytes: Buffer): void
  /** `isReusable`: the connection may carry another request. */
  answerEnd(isReusable: boolean): void
}

/** No real head or line is longer. Without a limit, an engine could make Weir buffer an endless one. */
const MAX_HEAD_BYTES = 65_536
const MAX_CHUNK_LINE_BYTES = 4096
/** Larger ones would not be whole numbers any more. */
const MAX_CHUNK_BYTES = 2 ** 48

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const SEMICOLON = 0x3b
const BLANK_LINE = '\r\n\r\n'

type Place =
  /** Between two answers. */
  'nowhere' | 'head' | 'body' | 'chunk size' | 'chunk extension' | 'chunk' | 'after chunk' | 'trailer'

/**
 * Reads HTTP/1.1 answers from the bytes of a connection, however they are cut. All that one read brings of a body is
 * handed on as one piece, because every piece costs the callers of a stream a write.
 */
export class AnswerReader {
  readonly #taker: AnswerTaker
  #place: Place = 'nowhere'
  /** The part of a head that has come. */
  #held: Buffer | undefined
  /** Bytes that the body, or the chunk, still has. Less than none: no digit of the chunk's size has come. */
  #left = 0
  /** The bytes of a line of a chunk, or of all trailers, so far. */
  #lineBytes = 0
  /** Whether a line of the trailers has anything in it. */
  #isLineEmpty = true
  #isAfterReturn = false
  #isReusable = false

  constructor(taker: AnswerTaker) {
    this.#taker = taker
  }

  /** The next bytes begin an answer. */
  expect(): void {
    this.#place = 'head'
  }

  /** The answer is not wanted any more. */
  stop(): void {
    this.#place = 'nowhere'
    this.#held = undefined
  }

  /** Takes the first `length` bytes of a buffer, in which it may move them. Throws if they are not part of an answer. */
  read(buffer: Buffer, length: number): void {
    if (this.#place === 'nowhere') throw new BrokenAnswer('the engine sent something that nobody had asked for')
    const at = this.#place === 'head' ? this.#readHead(buffer, length) : 0
    if (at !== undefined) this.#readBody(buffer, at, length)
  }

  /** The engine has closed the connection. Throws if it has not said everything. */
  close(): void {
    if (this.#place === 'nowhere') return
    if (this.#place !== 'body' || this.#left !== Infinity) throw new BrokenAnswer('the engine closed the connection')
    this.#end()
  }

  /** Returns where the body begins; undefined if the head goes on, or nobody wants the answer any more. */
  #readHead(buffer: Buffer, length: number): number | undefined {
    const before = this.#held
    const bytes = before ? Buffer.concat([before, buffer.subarray(0, length)]) : buffer
    const total = (before?.length ?? 0) + length
    let from = 0
    // Heads of informational answers come before the one that counts.
    while (this.#place === 'head') {
      const end = bytes.indexOf(BLANK_LINE, from, 'latin1')
      // What lies behind the bytes that were read is left from another read.
      if (end < 0 || end + BLANK_LINE.length > total) {
        if (total - from > MAX_HEAD_BYTES) throw new BrokenAnswer('the head of the answer is longer than 64 KiB')
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
    if (status === 101) throw new BrokenAnswer('the engine switched protocols')
    if (status < 200) return
    this.#isReusable = isReusable && body.kind !== 'close'
    this.#place = body.kind === 'chunked' ? 'chunk size' : 'body'
    this.#left = body.kind === 'length' ? body.length : body.kind === 'close' ? Infinity : -1
    this.#lineBytes = 0
    this.#isAfterReturn = false
    this.#taker.answerHead(status, headers)
  }

  #readBody(buffer: Buffer, start: number, length: number): void {
    if (this.#place !== 'body') return this.#readChunks(buffer, start, length)
    const end = Math.min(length, start + this.#left)
    this.#left -= end - start
    if (end > start) this.#taker.answerBody(buffer.subarray(start, end))
    if (this.#left === 0) this.#endAt(end, length)
  }

  #readChunks(buffer: Buffer, start: number, length: number): void {
    // What was found of the body so far, moved together.
    let from = start
    let to = start
    let at = start
    let isOver = false
    while (at < length && !isOver) {
      if (this.#place !== 'chunk') {
        isOver = this.#readFraming(buffer[at++] ?? 0)
        continue
      }
      const end = Math.min(length, at + this.#left)
      this.#left -= end - at
      if (to === from) from = at
      else buffer.copyWithin(to, at, end)
      to = from === at ? end : to + end - at
      at = end
      if (this.#left === 0) this.#place = 'after chunk'
    }
    if (to > from) this.#taker.answerBody(buffer.subarray(from, to))
    if (isOver) this.#endAt(at, length)
  }

  /** A byte between two chunks. Returns whether it was the last one of the answer. */
  #readFraming(byte: number): boolean {
    if ((byte === LINE_FEED) !== this.#isAfterReturn) throw new BrokenAnswer('the engine ended a line with half an end')
    this.#isAfterReturn = byte === CARRIAGE_RETURN
    switch (this.#place) {
      case 'chunk size':
        this.#countLine(MAX_CHUNK_LINE_BYTES)
        if (byte === LINE_FEED) this.#beginChunk()
        else if (byte === SEMICOLON) this.#place = 'chunk extension'
        else if (byte !== CARRIAGE_RETURN) this.#addDigit(byte)
        return false
      case 'chunk extension':
        this.#countLine(MAX_CHUNK_LINE_BYTES)
        if (byte === LINE_FEED) this.#beginChunk()
        return false
      case 'after chunk':
        if (byte === LINE_FEED) {
          this.#place = 'chunk size'
          this.#left = -1
          this.#lineBytes = 0
        } else if (byte !== CARRIAGE_RETURN) throw new BrokenAnswer('a chunk of the answer is longer than announced')
        return false
      default:
        this.#countLine(MAX_HEAD_BYTES)
        if (byte === LINE_FEED && this.#isLineEmpty) return true
        if (byte !== CARRIAGE_RETURN) this.#isLineEmpty = byte === LINE_FEED
        return false
    }
  }

  #countLine(most: number): void {
    this.#lineBytes++
    if (this.#lineBytes > most) throw new BrokenAnswer('the engine sent an endless line')
  }

  #addDigit(byte: number): void {
    const digit = hexDigit(byte)
    if (digit < 0 || this.#left > MAX_CHUNK_BYTES) throw new BrokenAnswer('the engine sent a chunk without its size')
    this.#left = Math.max(this.#left, 0) * 16 + digit
  }

  #beginChunk(): void {
    if (this.#left < 0) throw new BrokenAnswer('the engine sent a chunk without its size')
    this.#place = this.#left === 0 ? 'trailer' : 'chunk'
    this.#lineBytes = 0
    this.#isLineEmpty = true
  }

  /** The answer ends there. Anything behind it belongs to no answer, so the connection is not used again. */
  #endAt(end: number, length: number): void {
    if (end < length) this.#isReusable = false
    this.#end()
  }

  #end(): void {
    // Whoever took the last piece may have stopped.
    if (this.#place === 'nowhere') return
    this.#place = 'nowhere'
    this.#taker.answerEnd(this.#isReusable)
  }
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
