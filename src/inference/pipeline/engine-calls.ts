import type { AlarmClock } from '../../shared/clock.ts'
import type { CallEnd, Engine, EngineCall, Placement, RunningCall } from '../../engines/engine.ts'
import type { Reply } from '../../server/reply.ts'
import type { Admitted } from './admit.ts'

/** The engine calls of one request, one after the other. A call is aborted when the caller disconnects. */
export interface EngineCalls {
  /** Resolves when the call has ended. Starts nothing once the caller has disconnected. */
  run(call: Omit<EngineCall, 'prompt' | 'adapter' | 'trace'>): Promise<CallEnd>
  /** Calls back once no call is running: immediately if none is. */
  whenIdle(react: () => void): void
  /** Aborts the call that is running. */
  abort(): void
  /** Aborts the call that is still running after `ms`. */
  abortAfter(ms: number, clock: AlarmClock): void
  /** Whether the calls were aborted, or none was started, because online requests need the place. */
  isPreempted(): boolean
  /** The answer begins, so it is not preempted any more. False: it already was, so nothing may be sent. */
  keep(): boolean
  /** Stops reading from the engine until the caller has received what was sent. */
  pauseUntilDrained(): void
  /** Whether the latest call was sent to an engine that has not refused it. */
  isWithEngine(): boolean
  /** The bytes of all bodies sent so far. Input that is sent again counts once. */
  sentBytes(): number
  /** Records how many tokens the engine had in its cache. Returns the expected number, if there is one. */
  learn(cachedTokens: number): Placement | undefined
}

export function engineCalls(
  engine: Engine,
  reply: Reply,
  input: Pick<EngineCall, 'prompt' | 'adapter'>,
  { ticket, preemption, leftMs }: Pick<Admitted, 'ticket' | 'preemption' | 'leftMs'>,
): EngineCalls {
  let latest: RunningCall | undefined
  let isRunning = false
  let isCallerBehind = false
  let sentBytes = 0

  preemption.react = abort

  function abort(): void {
    if (isRunning) latest?.abort()
  }

  function whenIdle(react: () => void): void {
    if (latest && isRunning) void latest.ended.then(react)
    else react()
  }

  return {
    async run(call) {
      if (reply.isGone || preemption.isDue) return { kind: 'aborted' }
      const running = engine.run({ ...call, ...input, trace: reply.trace, maxWaitMs: leftMs })
      latest = running
      isRunning = true
      if (isCallerBehind) running.pause()
      if (!call.repeatsInput) sentBytes += call.body.length
      const stopWatching = reply.onGone(() => running.abort())
      const end = await running.ended
      isRunning = false
      stopWatching()
      return end
    },
    whenIdle,
    abort,
    isPreempted: () => preemption.isDue,
    keep: () => ticket.keep(),
    abortAfter(ms, clock) {
      if (isRunning) whenIdle(clock.after(ms, () => latest?.abort()))
    },
    pauseUntilDrained() {
      isCallerBehind = true
      latest?.pause()
      reply.onDrain(() => {
        isCallerBehind = false
        latest?.resume()
      })
    },
    isWithEngine: () => latest?.isWithEngine() ?? false,
    sentBytes: () => sentBytes,
    learn: (cachedTokens) => latest?.learn(cachedTokens),
  }
}
