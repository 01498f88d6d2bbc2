import { connect, type Socket } from 'node:net'

/** One HTTP/1.1 connection that sends any bytes, valid or not, and is opened again when the service closed it. */
export interface Wire {
  /** Sends one request and reads its response. undefined: the service closed the connection without a response. */
  exchange(request: WireRequest): Promise<WireResponse | undefined>
  close(): void
}

export interface WireRequest {
  readonly bytes: Buffer
  readonly method: string
  /** Ends our side after the bytes, because they are only part of a request. */
  readonly isCut?: boolean
  /** Do not use the connection again: the bytes may be more than one request. */
  readonly isLast?: boolean
}

export interface WireResponse {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
  /** The connection closed before the response was complete. */
  readonly isBroken: boolean
}

/** Far more than any request here takes, on any machine. Only a request that is never answered reaches it. */
const HANG_MS = 120_000

export function openWire(url: string): Wire {
  const { hostname, port } = new URL(url)
  let socket: Socket | undefined

  function connected(): Promise<Socket> {
    if (socket && !socket.destroyed && socket.writable) return Promise.resolve(socket)
    return new Promise((resolve, reject) => {
      const next = connect(Number(port), hostname)
      socket = next
      next.once('error', reject)
      next.once('connect', () => {
        next.off('error', reject)
        next.on('error', () => {})
        resolve(next)
      })
    })
  }

  return {
    async exchange(request) {
      const used = await connected()
      const response = await readResponse(used, request)
      const isOver = request.isCut || request.isLast || response?.headers.get('connection') === 'close'
      if (isOver || !response || response.isBroken) used.destroy()
      return response
    },
    close: () => void socket?.destroy(),
  }
}

function readResponse(socket: Socket, request: WireRequest): Promise<WireResponse | undefined> {
  return new Promise((resolve, reject) => {
    let received: Buffer = Buffer.alloc(0)
    const hang = setTimeout(() => settle(() => reject(new Error('the request was never answered'))), HANG_MS)

    function settle(done: () => void): void {
      clearTimeout(hang)
      socket.off('data', take)
      socket.off('close', closed)
      done()
    }
    function take(chunk: Buffer): void {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
      const response = parseResponse(received, request.method)
      if (response) settle(() => resolve(response))
    }
    function closed(): void {
      const head = parseHead(received)
      const broken = head && { ...head, body: received.subarray(head.end), isBroken: true }
      settle(() => resolve(broken))
    }
    socket.on('data', take)
    socket.once('close', closed)
    socket.write(request.bytes)
    if (request.isCut) socket.end()
  })
}

interface Head {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly end: number
}

function parseHead(bytes: Buffer): Head | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1])
  if (status >= 100 && status < 200) {
    const final = parseHead(bytes.subarray(end + 4))
    return final && { ...final, end: final.end + end + 4 }
  }
  const headers = new Map(lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), valueOf(line)]))
  return { status, headers, end: end + 4 }
}

function valueOf(line: string): string {
  return line.slice(line.indexOf(':') + 1).trim()
}

/** The response if all of it is here. */
function parseResponse(bytes: Buffer, method: string): WireResponse | undefined {
  const head = parseHead(bytes)
  if (!head) return undefined
  const { status, headers, end } = head
  const whole = (body: Buffer): WireResponse => ({ status, headers, body, isBroken: false })
  if (method === 'HEAD' || status === 204 || status === 304) return whole(Buffer.alloc(0))
  if (headers.get('transfer-encoding') === 'chunked') {
    const body = joinChunks(bytes, end)
    return body && whole(body)
  }
  const length = Number(headers.get('content-length') ?? 0)
  return bytes.length >= end + length ? whole(bytes.subarray(end, end + length)) : undefined
}

function joinChunks(bytes: Buffer, from: number): Buffer | undefined {
  const pieces: Buffer[] = []
  for (let position = from; ;) {
    const line = bytes.indexOf('\r\n', position)
    if (line < 0) return undefined
    const length = Number.parseInt(bytes.toString('latin1', position, line), 16)
    const start = line + 2
    if (bytes.length < start + length + 2) return undefined
    if (length === 0) return Buffer.concat(pieces)
    pieces.push(bytes.subarray(start, start + length))
    position = start + length + 2
  }
}
