/** What a worker tells the process that started it. */
export type FromWorker =
  /** Its service runs. */
  | { readonly say: 'running' }
  /** It is ready for connections to this address. */
  | { readonly say: 'listen'; readonly host: string; readonly port: number; readonly backlog: number }
  /** A connection that it was offered is its own now. Also says how many it has, this one included. */
  | { readonly say: 'taken'; readonly offer: number; readonly open: number }
  /** It leaves, so the connection goes to another. */
  | { readonly say: 'refused'; readonly offer: number }
  /** Connections have ended. */
  | { readonly say: 'open'; readonly open: number }
  /** It takes no more connections. */
  | { readonly say: 'leaving' }

/** What it is told. A connection comes with an offer. */
export type ToWorker =
  | { readonly tell: 'listening'; readonly port: number }
  | { readonly tell: 'not listening'; readonly message: string; readonly cause: ListenFailure }
  | { readonly tell: 'offer'; readonly offer: number }

/** The properties of Node's error by which the command line explains it. */
export interface ListenFailure {
  readonly code: string | undefined
  readonly syscall: string | undefined
  readonly address: string | undefined
  readonly port: number | undefined
}
