import type { Socket } from 'node:net'
import { STATUS_CODES } from '../../node-http.ts'
import type { RequestHead } from './request-head.ts'

/** How long an idle connection stays open. */
export const KEEP_ALIVE_MS = 75_000

const KEPT = `Connection: keep-alive\r\nKeep-Alive: timeout=${KEEP_ALIVE_MS / 1000}\r\n`
const CLOSED = 'Connection: close\r\n'
/** A line break in a header would let its value write further headers. */
const NOT_IN_A_VALUE = /[^\t\x20-\x7e\x80-\xff]/
/** Up to this size, joining pieces costs less than writing each. */
const JOINED_BYTES = 16_384

export type HeaderList = Readonly<Record<string, string>>

/** The response to one request. Strings that it writes have one character for each byte. */
export class OutgoingResponse {
  readonly #socket: Socket
  #hasNoBody: boolean
  readonly #isNew: boolean
  /** Sent with the first piece. */
  #head = ''
  #isChunked = false
  /** Bytes of the announced length that are not written yet. */
  #left = 0
  isBegun = false
  keepsAlive: boolean
  /** The caller has taken what was written. */
  onTaken: (() => void) | undefined

  constructor(socket: Socket, { method, isNew, keepsAlive }: RequestHead) {
    this.#socket = socket
    this.#hasNoBody = method === 'HEAD'
    this.#isNew = isNew
    this.keepsAlive = keepsAlive
  }

  /** Bytes that the caller has not taken. */
  get unsent(): number {
    return this.#socket.writableLength
  }

  begin(status: number, headers: readonly HeaderList[]): void {
    let lines = ''
    let hasLength = false
    let keepsAlive = this.keepsAlive
    for (const list of headers) {
      for (const name in list) {
        const value = list[name] ?? ''
        if (NOT_IN_A_VALUE.test(value)) throw new Error(`The header ${name} has a character that is not allowed.`)
        if (name === 'Connection') keepsAlive &&= value !== 'close'
        else lines += `${name}: ${value}\r\n`
        if (name === 'Content-Length') {
          hasLength = true
          this.#left = Number(value)
        }
      }
    }
    this.#hasNoBody ||= status === 204 || status === 304
    const isChunked = !hasLength && this.#isNew && !this.#hasNoBody
    // Its end is the end of the connection.
    if (!hasLength && !this.#isNew) keepsAlive = false
    this.#head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n${lines}Date: ${httpDate()}\r\n${
      keepsAlive ? KEPT : CLOSED
    }${isChunked ? 'Transfer-Encoding: chunked\r\n\r\n' : '\r\n'}`
    this.#isChunked = isChunked
    this.keepsAlive = keepsAlive
    this.isBegun = true
  }

  /** Returns whether the caller keeps up. */
  write(piece: string | Buffer): boolean {
    if (this.#hasNoBody || piece.length === 0) return true
    const head = this.#takeHead()
    this.#left -= piece.length
    if (!this.#isChunked) return this.#send(head, piece, '')
    return this.#send(`${head}${piece.length.toString(16)}\r\n`, piece, '\r\n')
  }

  end(piece: string | Buffer): void {
    const head = this.#takeHead()
    this.#left -= piece.length
    if (this.#hasNoBody) this.#send(head, '', '')
    else if (!this.#isChunked) {
      this.#send(head, piece, '')
      // The caller would wait for the rest, and take the next answer for it.
      if (this.#left !== 0) this.keepsAlive = false
    } else if (piece.length === 0) this.#send(head, '', '0\r\n\r\n')
    else this.#send(`${head}${piece.length.toString(16)}\r\n`, piece, '\r\n0\r\n\r\n')
  }

  /** Calls back when everything has left, or never will. */
  whenSent(callback: () => void): void {
    this.#socket.write('', 'latin1', callback)
  }

  #takeHead(): string {
    const head = this.#head
    this.#head = ''
    return head
  }

  #send(before: string, piece: string | Buffer, after: string): boolean {
    const socket = this.#socket
    if (typeof piece === 'string') {
      const text = before + piece + after
      return text === '' || socket.write(text, 'latin1')
    }
    if (piece.length <= JOINED_BYTES) return socket.write(before + piece.toString('latin1') + after, 'latin1')
    socket.cork()
    if (before !== '') socket.write(before, 'latin1')
    const isTaken = socket.write(piece)
    if (after !== '') socket.write(after, 'latin1')
    socket.uncork()
    return isTaken
  }
}

let dateSecond = 0
let dateText = ''

/** Made once a second. */
function httpDate(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== dateSecond) {
    dateSecond = second
    dateText = new Date(second * 1000).toUTCString()
  }
  return dateText
}
