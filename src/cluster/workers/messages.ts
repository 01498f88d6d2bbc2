/** Messages from a worker to the primary process. */
export type FromWorker =
  /** The worker's service is running. */
  | { readonly kind: 'running' }
  /** The worker is ready for connections to this address. */
  | { readonly kind: 'listen'; readonly host: string; readonly port: number; readonly backlog: number }
  /** The worker has taken an offered connection. `open` is its number of open connections, including this one. */
  | { readonly kind: 'taken'; readonly offer: number; readonly open: number }
  /** The worker is leaving, so the connection goes to another. */
  | { readonly kind: 'refused'; readonly offer: number }
  /** Connections have ended; `open` is how many are left. */
  | { readonly kind: 'open'; readonly open: number }
  /** The worker takes no more connections. */
  | { readonly kind: 'leaving' }

/** Messages from the primary process to a worker. An offer comes with a connection. */
export type ToWorker =
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'not listening'; readonly message: string; readonly cause: ListenFailure }
  | { readonly kind: 'offer'; readonly offer: number }

/** The properties of Node's error that the command line needs to explain it. */
export interface ListenFailure {
  readonly code: string | undefined
  readonly syscall: string | undefined
  readonly address: string | undefined
  readonly port: number | undefined
}
