/** The trace of a request: what engines receive of it, and what is recorded about the calls. */
export interface RequestTrace {
  readonly requestId: string
  /** Called before each attempt to send the request to an engine. */
  engineCall(url: string): EngineCallTrace
}

/** One attempt. Exactly one of its functions is called at the end. */
export interface EngineCallTrace {
  /** Headers for the engine, as lines: the trace that the request belongs to. */
  readonly lines: string
  ended(status: number): void
  failed(cause: Error): void
}
