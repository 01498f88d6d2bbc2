import { AnswerStalled, RequestAborted, type Client } from './http-client/index.ts'

/** A request to a server other than a call. */
export interface EngineQuery {
  /** GET if it is missing. */
  readonly method?: 'GET' | 'POST'
  readonly path: string
  /** Its headers. */
  readonly lines: string
  readonly body?: Buffer | undefined
  /** From the request to the end of its answer. */
  readonly timeoutMs: number
  /** If an answer is longer, the rest is not read. */
  readonly maxBytes: number
  readonly signal?: AbortSignal | undefined
}

export interface EngineQueryAnswer {
  readonly status: number
  /** Whether the answer ends here. */
  readonly isWhole: boolean
  readonly body: string
}

/** Rejects with AnswerStalled if the server accepted the request and did not answer in time. */
export function queryEngine(
  client: Client,
  { method = 'GET', path, lines, body, timeoutMs, maxBytes, signal }: EngineQuery,
): Promise<EngineQueryAnswer> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    let status = 0
    let bytes = 0
    const pieces: Buffer[] = []

    function stop(): void {
      clearTimeout(timer)
      signal?.removeEventListener('abort', leave)
    }
    function leave(): void {
      sending.abort(new RequestAborted('the answer is not wanted any more'))
    }
    function answer(isWhole: boolean): void {
      stop()
      resolve({ status, isWhole, body: Buffer.concat(pieces).toString() })
    }

    const sending = client.send(
      { method, path, lines, body },
      {
        sending() {
          clearTimeout(timer)
          timer = setTimeout(() => sending.abort(new AnswerStalled('no answer in time')), timeoutMs).unref()
        },
        resending() {},
        head(code) {
          status = code
        },
        data(chunk) {
          bytes += chunk.length
          if (bytes <= maxBytes) return void pieces.push(Buffer.from(chunk))
          answer(false)
          sending.abort(new RequestAborted('the answer is too long'))
        },
        ended: () => answer(true),
        failed(cause) {
          stop()
          reject(cause)
        },
      },
    )
    signal?.addEventListener('abort', leave)
  })
}
