import type { ApiError } from '../shared/errors.ts'
import type { RequestTrace } from '../shared/request-trace.ts'
import type { RunState } from './on-demand/decisions.ts'
import type { EngineHeaders, EngineRequest } from './job.ts'
import type { Prompt } from './prefix/warm-prefixes.ts'
import type { MissingFiles } from '../catalog/unavailable-model.ts'
import type { Adapter, ReportedLoad } from '../catalog/model.ts'

/** One call of an engine. */
export interface EngineCall extends EngineRequest {
  /** Decides which address is best; undefined: any. */
  readonly prompt?: Prompt | undefined
  /** What the engine has to apply to its model. */
  readonly adapter?: Adapter | undefined
  readonly receiver: EngineReceiver
  readonly trace: RequestTrace
  /** How long it may wait for an engine that has to start first; undefined: as long as it takes. */
  readonly maxWaitMs?: number | undefined
}

/** Receives an engine's successful answer as it arrives. Refusals and failures are not passed to it. */
export interface EngineReceiver {
  /** The engine has answered: from here on no other engine is tried. */
  start(headers: EngineHeaders): void
  /** The bytes are valid until this returns. */
  data(chunk: Buffer): void
}

export type CallEnd =
  | { readonly kind: 'ended' }
  | { readonly kind: 'aborted' }
  /**
   * `started`: the receiver had begun to receive an answer. `lost`: the engine could not be reached, or broke off before
   * its answer; `sent`: one may have seen the request.
   */
  | { readonly kind: 'failed'; readonly error: ApiError; readonly started: boolean; readonly lost?: 'unsent' | 'sent' }

/** How much of a prompt was expected to be in the cache of an engine, as shares of the prompt. */
export interface Placement {
  /** At the address that the call went to. */
  readonly here: number
  /** At the address that has most of it. */
  readonly anywhere: number
  /** Whether the engine reports how many tokens were cached. */
  readonly isTelling: boolean
}

export interface RunningCall {
  /** Resolves, and never rejects, when the engine is no longer working on the call. */
  readonly ended: Promise<CallEnd>
  /** The request was sent to an engine, which has not refused it. */
  isWithEngine(): boolean
  /** Records the tokens that were cached. Returns what was expected; undefined: nothing is known about the prompt. */
  learn(cachedTokens: number): Placement | undefined
  abort(): void
  pause(): void
  resume(): void
}

/** An address of an engine, and whether it is up. */
export interface EngineAddressState {
  readonly url: string
  readonly isUp: boolean
  /** Calls that it is working on for this process. */
  readonly inFlight: number
  /** The assumed size of its cache; undefined if it is not used for routing. */
  readonly cacheTokens?: number | undefined
  /** By the count of the server itself; undefined if it does not report it. */
  readonly load?: ReportedLoad | undefined
}

/** How far an engine is that starts when it is needed. */
export interface StartStatus {
  readonly state: RunState
  /** Calls that wait for it. */
  readonly waiting: number
  /** When it is expected to be ready, from now; undefined: unknown, or it is ready. */
  readonly readyInMs: number | undefined
}

/** The engines behind one deployment. */
export interface Engine {
  /** False while every address is known to be down, or drained, or files are missing. */
  usable(): boolean
  /** For a model that the service runs itself: undefined once it is downloaded. */
  missingFiles?(): MissingFiles | undefined
  /** For an engine that starts when it is needed. */
  start?(): StartStatus | undefined
  addresses(): readonly EngineAddressState[]
  /** Asks the servers for their load, for `addresses`. Missing if this kind does not report it. */
  readLoad?(): Promise<void>
  /**
   * Keeps the engine open for a request that will run here, perhaps after waiting in the queue, even if the catalog
   * replaces the engine in the meantime. Returns a function that releases it.
   */
  retain(): () => void
  run(call: EngineCall): RunningCall
  /** Waits until no request retains the engine, then closes the connections. */
  close(): Promise<void>
}
