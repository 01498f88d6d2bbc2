import type { AlarmClock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import type { CallEnd, Engine, EngineCall, RunningCall, StartStatus } from '../engine.ts'
import { MAX_SENDS } from '../upstream-call.ts'
import type { ScheduledCall } from './decisions.ts'

/** What happens to the calls that wait for their engine. */
export type WaitingCalls = Map<ScheduledCall, WaitingCall>

interface WaitingCall {
  /** `upstream`: the engine, which is ready. */
  go(upstream: Engine | undefined): void
  refuse(reason: string): void
}

/** How an engine reaches the scheduler. */
export interface SchedulerLink {
  readonly clock: AlarmClock
  readonly calls: WaitingCalls
  /** undefined while it does not run. */
  upstream(): Engine | undefined
  start(): StartStatus | undefined
  newCall(): ScheduledCall
  arrive(call: ScheduledCall): void
  leave(call: ScheduledCall): void
  /** Whether the process has ended, or does within a moment. */
  crashed(): Promise<boolean>
  /** Resolves when its process is gone, or cannot be ended. */
  remove(): Promise<void>
}

/** An engine that starts with its first call. Calls wait until it is ready, in their order. */
export function onDemandEngine(link: SchedulerLink): Engine {
  let retainers = 0
  let onReleased: (() => void) | undefined
  return {
    usable: () => link.upstream()?.usable() ?? true,
    addresses: () => link.upstream()?.addresses() ?? [],
    readLoad: async () => link.upstream()?.readLoad?.(),
    start: link.start,
    retain() {
      retainers++
      return () => {
        retainers--
        if (retainers === 0) onReleased?.()
      }
    },
    run: (call) => runWhenReady(call, link),
    async close() {
      if (retainers > 0) await new Promise<void>((resolve) => (onReleased = resolve))
      await link.remove()
    },
  }
}

function runWhenReady(call: EngineCall, link: SchedulerLink): RunningCall {
  const { clock, calls } = link
  const { promise: ended, resolve } = Promise.withResolvers<CallEnd>()
  let leftMs = Math.max(0, call.maxWaitMs ?? Infinity)
  let waitsSinceMs = 0
  /** Starts of the engine that may have seen the request. */
  let sends = 0
  let scheduled = link.newCall()
  let running: RunningCall | undefined
  let isPaused = false
  let isAborted = false
  let cancelDeadline = (): void => {}

  function leave(): void {
    cancelDeadline()
    calls.delete(scheduled)
    link.leave(scheduled)
  }

  function finish(end: CallEnd): void {
    leave()
    resolve(end)
  }

  function fail(error: ApiError): void {
    finish({ kind: 'failed', error, started: false })
  }

  function wait(): void {
    calls.set(scheduled, { go, refuse: (reason) => fail(couldNotStart(reason)) })
    waitsSinceMs = clock.monotonic()
    if (leftMs < Infinity) cancelDeadline = clock.after(leftMs, () => fail(waitedTooLong()))
    link.arrive(scheduled)
  }

  function go(upstream: Engine | undefined): void {
    cancelDeadline()
    leftMs -= clock.monotonic() - waitsSinceMs
    if (!upstream) return fail(couldNotStart('it ended'))
    running = upstream.run(call)
    if (isPaused) running.pause()
    void running.ended.then(takeEnd)
  }

  /**
   * A call that a crash has cut off before its answer waits for the next start. Whether the engine had seen the request cannot be
   * known, because connections end one after another, so one that was sent is sent once more.
   */
  async function takeEnd(end: CallEnd): Promise<void> {
    if (end.kind !== 'failed' || !end.lost) return finish(end)
    if (end.lost === 'sent') sends++
    if (sends === MAX_SENDS) return finish(end)
    // From here on, a caller that leaves ends the call at once.
    running = undefined
    const hasCrashed = await link.crashed()
    if (isAborted) return
    if (!hasCrashed) return finish(end)
    leave()
    scheduled = link.newCall()
    wait()
  }

  wait()
  return {
    ended,
    isWithEngine: () => running?.isWithEngine() ?? false,
    learn: (cachedTokens) => running?.learn(cachedTokens),
    abort() {
      isAborted = true
      if (running) running.abort()
      else finish({ kind: 'aborted' })
    },
    pause() {
      isPaused = true
      running?.pause()
    },
    resume() {
      isPaused = false
      running?.resume()
    },
  }
}

function couldNotStart(reason: string): ApiError {
  const message = `The engine of this model is not running: ${reason}. Try again in a few seconds.`
  return new ApiError('model_unavailable', message, { param: 'model' })
}

function waitedTooLong(): ApiError {
  const message =
    'The engine of this model was not ready in time: other models use its device, or its start takes long.'
  return new ApiError('model_overloaded', message, { param: 'model' })
}
