import { readHead, requireBeginning } from './answer-head.ts'
import { ChunkedBody } from './chunked-body.ts'
import { BLANK_LINE, BrokenMessage, type AnswerHeaders } from './header-lines.ts'

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
