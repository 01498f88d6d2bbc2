import type { ApiError } from '../core/errors.ts'
import type { EngineHeaders, EngineRequest } from '../core/job.ts'
import type { Prompt } from '../core/prefix/warm-prefixes.ts'
import type { MissingFiles } from '../core/unavailable-model.ts'

/** One call of an engine. */
export interface EngineCall extends EngineRequest {
  /** Decides which address is best; undefined: any. */
  readonly prompt?: Prompt | undefined
  readonly receiver: EngineReceiver
}

/** Takes an engine's good answer as it comes. Refusals and failures never get here. */
export interface EngineReceiver {
  /** The engine has answered: from here on no other engine is asked. */
  start(headers: EngineHeaders): void
  /** The bytes may be used until this returns. */
  data(chunk: Buffer): void
}

export type CallEnd =
  | { readonly kind: 'ended' }
  | { readonly kind: 'aborted' }
  /** `started`: the receiver had begun to get an answer. */
  | { readonly kind: 'failed'; readonly error: ApiError; readonly started: boolean }

/** How much of a prompt should have been in the cache of an engine, as shares of the prompt. */
export interface Placement {
  /** At the address that the call went to. */
  readonly here: number
  /** At the address that has most of it. */
  readonly anywhere: number
  /** Whether the engine says how many tokens were cached. */
  readonly isTelling: boolean
}

export interface RunningCall {
  /** Resolves, and never rejects, when nothing of the call is left at the engine. */
  readonly ended: Promise<CallEnd>
  /** An engine was sent the request and has not refused it. */
  isWithEngine(): boolean
  /** Takes the tokens that were cached. Returns what was to be expected; undefined: nothing is known of the prompt. */
  learn(cachedTokens: number): Placement | undefined
  abort(): void
  pause(): void
  resume(): void
}

/** An address of an engine, and whether it answers. */
export interface EngineAddressState {
  readonly url: string
  readonly isUp: boolean
  /** Calls that it is working on for this process. */
  readonly inFlight: number
  /** What its cache is taken to hold; undefined if nobody goes by it. */
  readonly cacheTokens?: number | undefined
}

/** Addresses that get no new calls, because an operator said so. */
export interface DrainedAddresses {
  has(url: string): boolean
}

/** The engines behind one deployment. */
export interface Engine {
  /** False while every address is known to be down, or drained, or files are missing. */
  usable(): boolean
  /** Of a model that the service runs itself: undefined once it is downloaded. */
  missingFiles?(): MissingFiles | undefined
  addresses(): readonly EngineAddressState[]
  /**
   * Keeps the engine open for a request that will run here, perhaps after a wait in the queue, even if the catalog
   * replaces the engine meanwhile. Returns the function that lets go of it.
   */
  retain(): () => void
  run(call: EngineCall): RunningCall
  /** Waits until nobody retains the engine, then closes the connections. */
  close(): Promise<void>
}
